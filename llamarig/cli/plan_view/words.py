"""Findings and alternatives in words, the same on a terminal and on a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from llamarig.plan.short import MEMORY_CODES

if TYPE_CHECKING:
    from llamarig.plan import Finding

_ORDER = ("error", "warning", "note")


def of_worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes, each in the plan's order."""
    return sorted(findings, key=lambda finding: _ORDER.index(finding.severity))


def refusal_words(findings: Iterable[Finding]) -> str:
    """What is wrong with a plan: that it does not fit, or what else refuses it."""
    codes = list(dict.fromkeys(finding.code for finding in findings if finding.severity == "error"))
    others = ", ".join(code for code in codes if code not in MEMORY_CODES)
    if not others:
        return "does not fit"
    return f"refused: {others}" if len(others.split(", ")) == len(codes) else f"does not fit, and is refused: {others}"


def flow(value: Any) -> str:
    """A value as one writes it in a spec, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(each) for each in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    # A hash of digits alone would be read as a number.
    return f'"{value}"' if isinstance(value, str) and _NUMBER.fullmatch(value) else str(value)


_NUMBER = re.compile(r"[\d.e+_-]+")


def change_words(change: Mapping[str, Any]) -> str:
    """The keys that an alternative changes, as one writes them: those of the service, and ``models`` of the host."""
    return ", ".join(f"{key}: {flow(value)}" for key, value in change.items())


def change_yaml(service: str, change: Mapping[str, Any]) -> str:
    """The same as a piece of the host's spec, every key in its place."""
    own = {key: value for key, value in change.items() if key != "models"}
    piece = {"models": change["models"]} if "models" in change else {}
    if own:
        piece["services"] = {service: own}
    return yaml.safe_dump(piece, sort_keys=False, width=1_000_000)


def effect_words(entry: Mapping[str, Any]) -> str:
    """What an alternative costs, and what stays free then."""
    free = (f"{mib:,.0f} MiB free on {gpu}" for gpu, mib in entry["free-mib"].items())
    return "; ".join(filter(None, (entry["harm"], rate_words(entry), ", ".join(free), ram_words(entry))))


def rate_words(entry: Mapping[str, Any]) -> str:
    """How fast the service generates with an alternative, where that changes and is predicted."""
    speed = entry.get("speed")
    if speed is None:
        return ""
    return f"decode {speed['decode-tok-s']:,.1f} tokens/s with an empty window, {speed['decode-tok-s-full']:,.1f} full"


def ram_words(entry: Mapping[str, Any]) -> str:
    """What an alternative changes in RAM; nothing where it does not."""
    saved = entry.get("saves-ram-mib", 0.0)
    words = f"{abs(saved):,.0f}"
    return "" if words == "0" else f"{words} MiB of RAM {'less' if saved > 0 else 'more'}"


def speed_words(speed: Mapping[str, Any] | None, unknown: str | None = None, *, fits: bool = True) -> str:
    """What a service's ``speed`` says (docs/reference/json.md), with what it rests on; or why there is none."""
    if speed is None:
        return f"speed not predicted: {unknown or 'nothing is known'}"
    drafts = speed["tokens-per-pass"]
    passes = f" at {drafts:,.2f} tokens a pass" if drafts > 1 else ""
    full = speed["at-depth"][-1]["depth"] if speed["at-depth"] else 0
    decode = (
        f"decode {speed['decode-tok-s']:,.1f} tokens/s with an empty window, {speed['decode-tok-s-full']:,.1f} with it "
        f"full ({full:,} tokens){passes}{_most(speed, 'decode-tok-s')}"
    )
    prefill = speed["prefill-tok-s"]
    read = "" if prefill is None else _prefill(speed, full)
    basis = "predicted from runs of this card"
    if speed["basis"] != "runs-of-this-card":
        basis = "predicted from runs of other cards"
    words = "; ".join(filter(None, (decode, read, basis)))
    return words if fits else f"if it fitted, {words}"


def _prefill(speed: Mapping[str, Any], full: int) -> str:
    prompt = speed["prefill-prompt"]
    words = f"prefill {speed['prefill-tok-s']:,.1f} over a prompt of {prompt:,} tokens"
    whole = speed["at-depth"][-1]["prefill-tok-s"] if full > prompt else None
    if whole is not None:
        words += f", {whole:,.1f} over one of {full:,}"
    return f"{words}{_most(speed, 'prefill-tok-s')}"


def _most(speed: Mapping[str, Any], key: str) -> str:
    most = speed["limit"][key]
    return "" if most is None else f" (the card's limit is {most:,.1f})"
