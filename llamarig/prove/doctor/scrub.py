"""Take secrets out of a bundle before it leaves the machine.

Lines are cut first and every pattern has bounds, so that the time is linear in the text, whatever it says.
"""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "<removed>"
MAX_LINE = 4000
"""Characters of a line that are kept."""

_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")

_NAMES = (
    r"api[-_ ]?key|access[-_ ]?key|secret|token|password|passwd|passphrase|pwd|psk|pin|credentials?|cookie|session|"
    r"auth"
)
_VALUE = re.compile(
    rf"(?i)((?<![a-z])(?:{_NAMES})(?:[-_][a-z]{{1,20}})?\\?[\"']?[ \t]{{0,3}}[=:][ \t]{{0,3}})"
    r"(?:\\?\"[^\"]{0,2000}\"?|'[^']{0,2000}'?|[^\s\"']{1,2000})"
)
"""Names that tell of a secret with what follows ``=`` or ``:``, in quotes or up to the next blank."""
_FOLLOWING = re.compile(r"(?i)((?<![a-z])(?:--api-key|--token|--password)[ =])\S{1,2000}")

_SECRETS = (
    re.compile(r"(?i)\b(?:bearer|basic|digest|token)[ \t]{1,3}[A-Za-z0-9._~+/=-]{6,2000}"),
    re.compile(r"(?i)\b(authorization|cookie|set-cookie)\\?[\"']?[ \t]{0,3}:[^\r\n]{1,2000}"),
    re.compile(r"(?<=://)[^\s/@:]{1,200}:[^\s/@]{1,200}(?=@)"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{5,2000}(?:\.[A-Za-z0-9_-]{1,2000}){1,2}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,20}\b"),
    re.compile(r"\b(?:sk|hf|ghp|gho|ghs|github_pat|glpat|xox[abp])[-_][A-Za-z0-9_-]{16,400}"),
    re.compile(r"(?i)\bGPU-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"),
    re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}"),
    re.compile(r"(?i)\b[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}\b"),
)
"""Headers, passwords in addresses, tokens of known forms, cards' own ids, mail and hardware addresses."""

_IPV4 = re.compile(r"(?<![0-9.])(?:\d{1,3}\.){3}\d{1,3}(?![0-9.])")
_COLONS = re.compile(r"(?i)(?<![0-9a-z:.])[0-9a-f:]{3,39}(?![0-9a-z:.])")
_MOST_OF_A_TIME = 3
"""Colons that a time of day has at most; an IPv6 address has more, or two in a row."""
LOGS = ("kernel-log", "server-log")
"""Where numbers with dots or colons are an address and not the version of a package or a place on the bus."""
_BUS = re.compile(r"(?i)\b(?:PCI:)?[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?\b")


def scrub_text(text: str) -> str:
    """The text without what identifies or opens something."""
    kept: list[str] = []
    hiding = False
    for line in text.split("\n"):
        if hiding:
            hiding = _KEY_END.search(line) is None
            continue
        if begin := _KEY_BLOCK.search(line[:MAX_LINE]):
            hiding = _KEY_END.search(line) is None
            kept.append(line[: begin.start()] + HIDDEN)
            continue
        kept.append(_line(line[:MAX_LINE]))
    return "\n".join(kept)


def _line(line: str) -> str:
    for pattern in _SECRETS:
        line = pattern.sub(HIDDEN, line)
    line = _FOLLOWING.sub(rf"\1{HIDDEN}", line)
    return _VALUE.sub(rf"\1{HIDDEN}", line)


def scrub(document: dict[str, Any]) -> dict[str, Any]:
    """The same for every string of a bundle, names of its keys too; addresses go from its logs."""
    clean: dict[str, Any] = _each(document)
    parts = clean.get("parts")
    for name in LOGS:
        log = parts.get(name) if isinstance(parts, dict) else None
        if isinstance(log, dict) and isinstance(log.get("text"), str):
            log["text"] = "\n".join(_without_addresses(line) for line in log["text"].split("\n"))
    return clean


def _without_addresses(line: str) -> str:
    """Places on the bus look like a part of an address, and stay."""
    pieces, at = [], 0
    for place in _BUS.finditer(line):
        pieces += [_hide(line[at : place.start()]), place[0]]
        at = place.end()
    return "".join([*pieces, _hide(line[at:])])


def _hide(text: str) -> str:
    return _COLONS.sub(_unless_a_time, _IPV4.sub(HIDDEN, text))


def _unless_a_time(found: re.Match[str]) -> str:
    word = found[0]
    return HIDDEN if "::" in word or word.count(":") > _MOST_OF_A_TIME else word


def _each(value: Any) -> Any:
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, dict):
        return {scrub_text(str(name)): _each(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_each(each) for each in value]
    return value
