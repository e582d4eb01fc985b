"""A machine's own words, as they were collected or saved. All of it is hostile text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llamarig.errors import RigError
from llamarig.prove.hostile import integer, mapping, sequence, text

SCHEMA = 1
MAX_BYTES = 8 << 20
MAX_PART = 1 << 20
_LINK_KEYS = (
    "bus-id",
    "device",
    "driver",
    "current_link_width",
    "max_link_width",
    "current_link_speed",
    "max_link_speed",
)
NOT_THERE = 127
"""Status of a tool that is not installed."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that could boot."""

    version: str
    headers: bool
    modules: tuple[str, ...]
    """Paths of NVIDIA modules that lie below its directory."""
    info: dict[str, str]
    """Of the module ``nvidia``: version, license, sig_key, signer; or ``error``."""


@dataclass(frozen=True, slots=True)
class Link:
    """A card on the bus: who drives it, and how wide and fast its link is and could be."""

    bus_id: str
    device: str
    driver: str
    width: str
    max_width: str
    speed: str
    max_speed: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """What was collected of one machine."""

    parts: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Status and text of every tool and file."""
    kernels: tuple[Kernel, ...] = ()
    links: tuple[Link, ...] = ()
    nodes: tuple[str, ...] = ()

    def text(self, part: str) -> str:
        """What a tool or file said; empty when it was not asked, or is not there."""
        status, said = self.parts.get(part, (NOT_THERE, ""))
        return "" if status == NOT_THERE else said

    def status(self, part: str) -> int:
        """How a tool ended; 127 when it is not there."""
        return self.parts.get(part, (NOT_THERE, ""))[0]

    def lines(self, part: str) -> list[str]:
        """The lines of a part."""
        return self.text(part).splitlines()

    def table(self, part: str) -> list[dict[str, str]]:
        """Rows of a tool that prints CSV with a heading; units in the heading's names are dropped."""
        rows = [[cell.strip() for cell in line.split(",")] for line in self.lines(part) if line.strip()]
        if self.status(part) != 0 or not rows:
            return []
        names = [name.partition(" [")[0] for name in rows[0]]
        return [dict(zip(names, row, strict=True)) for row in rows[1:] if len(row) == len(names)]

    @property
    def kernel(self) -> str:
        """The kernel that runs."""
        return self.text("uname").strip()


def read_bundle(document: Any) -> Bundle:
    """A bundle from what a host or file holds; what has the wrong type is left out."""
    parts = {
        str(name)[:64]: (integer(part, "status") or 0, text(part, "text")[:MAX_PART])
        for name, part in list(mapping(document, "parts").items())[:128]
        if isinstance(part, dict)
    }
    kernels = tuple(_kernel(each) for each in sequence(document, "kernels")[:64] if isinstance(each, dict))
    links = tuple(_link(each) for each in sequence(document, "links")[:64] if isinstance(each, dict))
    nodes = tuple(each[:200] for each in sequence(document, "nodes")[:256] if isinstance(each, str))
    return Bundle(parts, kernels, links, nodes)


def _kernel(each: Mapping[str, Any]) -> Kernel:
    info = {str(name): value[:500] for name, value in mapping(each, "info").items() if isinstance(value, str)}
    modules = tuple(path[:500] for path in sequence(each, "modules") if isinstance(path, str))
    return Kernel(text(each, "version")[:200], each.get("headers") is True, modules, info)


def _link(each: Mapping[str, Any]) -> Link:
    return Link(*(text(each, name)[:64] for name in _LINK_KEYS))


def load_bundle(path: Path) -> Bundle:
    """A bundle that ``llamarig doctor --save`` wrote. Raises :class:`RigError` for anything else."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it is longer than {MAX_BYTES} bytes")
        document = json.loads(data)
        if not isinstance(document, dict) or document.get("schema") != SCHEMA or "parts" not in document:
            raise ValueError(f"it is no bundle of schema {SCHEMA}")
    except (OSError, ValueError, RecursionError) as error:
        raise RigError(
            what="the bundle cannot be read",
            where=str(path),
            why=str(error),
            fix="write one with `llamarig doctor HOST --save FILE`",
        ) from error
    return read_bundle(document)
