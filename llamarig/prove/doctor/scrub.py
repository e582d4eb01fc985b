"""Take secrets out of a bundle before it leaves the machine."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "<removed>"

_SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?i)\b(?:authorization\s*:\s*)?bearer\s+[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"\b(?:sk|hf|ghp|gho|github_pat|glpat|xox[abp])[-_][A-Za-z0-9_-]{16,}"),
    re.compile(r"(?i)((?:api[-_ ]?key|token|password|passwd|secret)[\"']?\s*[=:\s]\s*[\"']?)[^\s\"',;]{6,}"),
    re.compile(r"(?i)\bGPU-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"),
    re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b"),
    re.compile(r"\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b", re.IGNORECASE),
)
"""Private keys, tokens of known forms, values of telling names, cards' own ids, mail and hardware addresses."""

_ADDRESS = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
LOGS = ("kernel-log", "server-log")
"""Where four numbers with dots are an address and not the version of a package."""

_KEPT_NAME = 3
"""The pattern that keeps the name and removes the value."""


def scrub_text(text: str) -> str:
    """The text without what identifies or opens something."""
    for number, pattern in enumerate(_SECRETS):
        text = pattern.sub(rf"\1{HIDDEN}" if number == _KEPT_NAME else HIDDEN, text)
    return text


def scrub(document: dict[str, Any]) -> dict[str, Any]:
    """The same for every string of a bundle; addresses go from its logs."""
    clean: dict[str, Any] = _each(document)
    parts = clean.get("parts")
    for name in LOGS:
        log = parts.get(name) if isinstance(parts, dict) else None
        if isinstance(log, dict) and isinstance(log.get("text"), str):
            log["text"] = _ADDRESS.sub(HIDDEN, log["text"])
    return clean


def _each(value: Any) -> Any:
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, dict):
        return {name: _each(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_each(each) for each in value]
    return value
