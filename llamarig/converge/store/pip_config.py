"""Where this machine takes Python distributions from: what pip itself is configured with, asked at run time."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

from llamarig.errors import RigError

_SECTIONS = ("global", "download", "install", ":env:")
"""Later ones win, as in pip."""
_DEFAULT = re.compile(r"--index-url\s+<url>.*?\(default\s+(\S+?)\)", re.DOTALL)


@dataclass(frozen=True)
class PipConfig:
    """Indexes in the order in which they are asked, and how they are reached."""

    indexes: tuple[str, ...]
    find_links: tuple[str, ...] = ()
    cert: str | None = None
    proxy: str | None = None


def _pip(*words: str) -> str:
    environment = {**os.environ, "COLUMNS": "1000", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(  # noqa: S603 - this interpreter, fixed words
        [sys.executable, "-m", "pip", *words],
        capture_output=True, text=True, errors="replace", check=False, env=environment,
    )  # fmt: skip
    if done.returncode != 0:
        raise RigError(
            what="pip does not say where Python distributions come from",
            where=f"{sys.executable} -m pip {' '.join(words)}",
            why=done.stderr.strip()[-500:],
            fix="install pip for this interpreter (python -m ensurepip)",
        )
    return done.stdout


def parse_config_list(text: str) -> dict[str, str]:
    """``pip config list`` as a mapping of option to value, the strongest section first served."""
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.strip().rpartition(".")
        if section in found:
            try:
                found[section][option] = str(ast.literal_eval(value.strip()))
            except (ValueError, SyntaxError):
                continue
    merged: dict[str, str] = {}
    for section in _SECTIONS:
        merged.update(found[section])
    return merged


def parse_default_index(help_text: str) -> str | None:
    """pip's own default index, as its help names it."""
    found = _DEFAULT.search(help_text)
    return found[1] if found else None


@cache
def pip_config() -> PipConfig:
    """What pip on this machine would ask. Raises :class:`RigError` when pip cannot be asked."""
    options = parse_config_list(_pip("config", "list"))
    index = options.get("index-url") or parse_default_index(_pip("download", "--help"))
    indexes = [index] if index and options.get("no-index", "").lower() not in ("1", "true", "yes", "on") else []
    return PipConfig(
        indexes=tuple(entry.rstrip("/") for entry in [*options.get("extra-index-url", "").split(), *indexes]),
        find_links=tuple(options.get("find-links", "").split()),
        cert=options.get("cert"),
        proxy=options.get("proxy"),
    )
