"""The plan as one page that needs nothing else: no script, no request, all that comes from outside escaped."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from llamarig.cli.plan_view.arguments import unlearned_words
from llamarig.cli.plan_view.basis import KEYS, PROCESS_PARTS, Basis, process_parts
from llamarig.cli.plan_view.figures import OTHERS, PLOT, Bar, bar_of_card, bar_of_ram, charts, tokens
from llamarig.cli.plan_view.formulas import PAGES, explanations
from llamarig.cli.plan_view.words import change_words, of_worst_first, ram_words, refusal_words, speed_words
from llamarig.compare.text import printable
from llamarig.paths import data_root
from llamarig.plan import Plan, plan_host
from llamarig.plan.curves import LONGEST_DRAFT, Curve, curves
from llamarig.plan.load import Headers
from llamarig.plan.short import memory_fits
from llamarig.plan.speed import speed_json
from llamarig.spec.host import HostSpec

TEMPLATES = Path(__file__).resolve().parent / "page"
_POINTS = 48
"""Of all windows' curves together; each one is a plan."""
_FEWEST = 4
_FEW = 3
"""Services up to which all lengths of a draft are planned: a page is to be there at once."""
_LONGEST_NAME = 120
_LISTED = re.compile(r"^\| `([a-z-]+)` \| \[[^\]]*\]\(([a-z-]+\.md)\) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a budget's table."""

    term: str
    key: str
    cells: tuple[float | None, ...]
    mib: float
    share: float | None
    basis: str
    part: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """A card or the RAM: its bar, its table and its figures in words."""

    name: str
    words: str
    state: str
    """``fits``, ``thin``, ``short``, ``bound`` (at least so much) or ``unknown``."""
    bar: Bar
    services: tuple[str, ...]
    rows: tuple[Row, ...]
    sums: tuple[float, ...]
    """MiB by service."""
    used: float


def page(
    plan: Plan,
    spec: HostSpec,
    headers: Headers,
    *,
    planner: Callable[..., Plan] = plan_host,
) -> str:
    """The page of a plan, as HTML; ``planner`` plans the host with changed settings for the curves.

    It names pages of the documentation and links to none: a page is mailed, and the way to a checkout ends there.
    """
    steps = max(_FEWEST, _POINTS // max(len(spec.services), 1) // 2)
    drafts = LONGEST_DRAFT if len(spec.services) <= _FEW else LONGEST_DRAFT // 2
    found = curves(spec, headers, planner=planner, steps=steps, drafts=drafts)
    basis = Basis(plan)
    style = (TEMPLATES / "plan.css").read_text(encoding="utf-8")
    return (
        _environment()
        .get_template("plan.html.j2")
        .render(
            plan=plan,
            spec=spec,
            missing=basis.missing(),
            composed=basis.composed,
            refusal=refusal_words(plan.findings),
            budgets=list(_budgets(plan, basis)),
            charts=[(curve, chart) for curve in found for chart in charts(curve)],
            fitting=_fitting(found),
            explained=explanations(plan, spec, headers, found),
            findings=of_worst_first(plan.findings),
            models=_models(spec, headers),
            memory_fits=memory_fits(plan),
            speeds={name: speed_json(speed) for name, speed in plan.speeds.items()},
            style=style,
            policy=_policy(style),
            refusals=_refusals(),
            pages=PAGES,
            plot=PLOT,
            others=OTHERS,
            keys=KEYS,
        )
    )


def _policy(style: str) -> str:
    """What a browser may load for this page: its own style alone."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def _refusals() -> dict[str, str]:
    """The page of each code of a finding, below docs/refusals, as its index lists them; empty where there are none."""
    try:
        index = (data_root() / "docs/refusals/README.md").read_text(encoding="utf-8")
    except OSError:
        return {}
    return dict(_LISTED.findall(index))


def _models(spec: HostSpec, headers: Headers) -> dict[str, str]:
    """What each service's model calls itself; any text may stand in a file."""
    named = {}
    for name, service in spec.services.items():
        header = headers.get(service.model)
        said = "" if header is None else f"{printable(header.name, _LONGEST_NAME)}, {printable(header.architecture)}"
        named[name] = f"{service.model}: {said}" if said else service.model
    return named


def _fitting(found: tuple[Curve, ...]) -> dict[tuple[str, str], str]:
    """What the points of each curve say of what fits; nothing is claimed between them."""
    said: dict[tuple[str, str], str] = {}
    for curve in found:
        fits = [point.value for point in curve.points if point.fits]
        name = "window" if curve.setting == "context" else "n-max"
        if len(fits) == len(curve.points):
            words = f"every {name} shown fits"
        elif fits and not any(fits):
            words = "only without speculation does it fit"
        elif fits:
            words = f"of the values shown, the largest that fits is {max(fits):,}"
        else:
            words = f"no {name} shown fits"
        said[curve.service, curve.setting] = words
    return said


def _budgets(plan: Plan, basis: Basis) -> Iterator[Budget]:
    for device in plan.devices:
        told, open_ = basis.usable(device.gpu), basis.undecided(device.gpu)
        used, usable, free = device.used_mib, device.usable_mib, device.free_mib
        if not device.total_mib:
            state, left = "unknown", "its memory is not known"
        elif free < 0:
            state, left = "short", f"{-free:,.0f} MiB too many{open_}"
        else:
            state = "fits" if free >= device.margin_mib or not device.services else "thin"
            kept = "" if state == "fits" else f", which is not kept{open_}"
            left = f"{free:,.0f} MiB free, margin {device.margin_mib:,.0f}{kept}"
        assumed = f" ({told})" if told else ""
        words = f"{used:,.0f} of {usable:,.0f} MiB usable{assumed}, {device.total_mib:,.0f} reported; {left}"
        rows = _rows(device.services, partial(basis.term, gpu=device.gpu), {})
        shown = "unknown" if open_ else _bound(state, basis)
        bar = bar_of_card(device, told)
        yield Budget(device.gpu, words, shown, bar, tuple(device.services), rows, _sums(device.services), used)
    yield _ram(plan, basis)


def _bound(state: str, basis: Basis) -> str:
    """What is not all known cannot be said to fit."""
    return "bound" if state == "fits" and basis.missing() else state


def _sums(services: Mapping[str, Mapping[str, float]]) -> tuple[float, ...]:
    return tuple(sum(held.values()) for held in services.values())


def _ram(plan: Plan, basis: Basis) -> Budget:
    ram = plan.ram
    limit, used = ram.total_mib - ram.reserve_mib, ram.used_mib
    if not ram.total_mib:
        state, words = "unknown", f"{used:,.0f} MiB; the spec does not say how much there is"
    else:
        state = "fits" if used <= limit else "short"
        left = f"{limit - used:,.0f} MiB free" if used <= limit else f"{used - limit:,.0f} MiB too many"
        words = f"{used:,.0f} of {ram.total_mib:,.0f} MiB, {ram.reserve_mib:,.0f} reserved; {left}"
    rows = _rows(ram.services, basis.term, plan.ram_detail)
    shown = _bound(state, basis)
    return Budget("RAM", words, shown, bar_of_ram(ram), tuple(ram.services), rows, _sums(ram.services), used)


def _rows(
    services: Mapping[str, Mapping[str, float]],
    told: Callable[[str, tuple[str, ...]], str],
    detail: Mapping[str, Mapping[str, float]],
) -> tuple[Row, ...]:
    used = sum(sum(held.values()) for held in services.values()) or 1.0
    rows = []
    for term, key in KEYS.items():
        cells = tuple(held.get(term) for held in services.values())
        mine = tuple(name for name, held in services.items() if term in held)
        if not mine:
            continue
        mib = sum(cell or 0.0 for cell in cells)
        parts = process_parts(services, detail) if term == "process" else ()
        rows.append(Row(term, key, cells, mib, mib / used, "" if parts else told(term, mine)))
        for part in parts:
            held = tuple(detail.get(name, {}).get(part) or None for name in services)
            basis = told(term, mine) if part == "base" else ""
            rows.append(Row(PROCESS_PARTS[part], "", held, sum(mib or 0.0 for mib in held), None, basis, part=True))
    return tuple(rows)


def _coded(text: str) -> Markup:
    """What stands between backticks as code, all of it escaped."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    )


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "mib": lambda value: f"{value:,.2f}",
        "whole": lambda value: f"{value:,.0f}",
        "percent": lambda value: f"{value:.1%}",
        "at": lambda value: f"{value:.3f}",
        "shell": shlex.join,
        "word": shlex.quote,
        "coded": _coded,
        "unlearned": unlearned_words,
        "change": change_words,
        "ram": ram_words,
        "speed": speed_words,
        "tokens": tokens,
        "times": lambda text: text.replace(" x ", " \N{MULTIPLICATION SIGN} "),
    }
    return made
