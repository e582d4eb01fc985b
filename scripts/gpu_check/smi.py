"""What nvidia-smi tells: cards, their memory, and the programs on them. Sizes are MiB."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from llamarig.prove.hostile import show
from scripts.gpu_check.words import CannotAskError

SECONDS = 20
_CARD = (
    "uuid",
    "name",
    "pci.bus_id",
    "driver_version",
    "compute_cap",
    "memory.total",
    "memory.reserved",
    "memory.used",
)
_APP = ("pid", "gpu_uuid", "used_memory")
_LONGEST = 120
_FIGURE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_PID = re.compile(r"[0-9]{1,10}")

Ask = Callable[[str], str]
"""Answers one ``--query-…`` option with rows of values without headings."""


@dataclass(frozen=True, slots=True)
class Card:
    """One card as the driver tells it."""

    uuid: str
    name: str
    bus_id: str
    """``0000:01:00.0``, as the kernel writes it."""
    driver: str
    capability: str
    """``8.9``."""
    total_mib: float
    reserved_mib: float
    used_mib: float

    @property
    def architecture(self) -> str:
        """As CMake names it, without a suffix: ``89``."""
        return self.capability.replace(".", "")


@dataclass(frozen=True, slots=True)
class App:
    """One program on a card; ``mib`` is None where the driver does not tell."""

    pid: int
    uuid: str
    mib: float | None


def nvidia_smi(query: str) -> str:
    """Ask the real one. Raises :class:`CannotAskError` when it is not there or has no answer."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        raise CannotAskError(
            "there is no nvidia-smi on this machine",
            "run it where an NVIDIA driver is installed, or rehearse everything but the card with --backend cpu",
        )
    try:
        done = subprocess.run(
            [tool, query, "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotAskError(f"nvidia-smi gave no answer within {SECONDS} s", "look at dmesg for Xid lines") from None
    except OSError as error:
        raise CannotAskError(f"{tool} cannot be run: {error.strerror}", "install the driver's own again") from None
    if done.returncode != 0:
        words = show((done.stderr + done.stdout).strip(), 400)
        raise CannotAskError(
            f"nvidia-smi ended with {done.returncode}: {words}",
            "`llamarig doctor --error 'TEXT'` knows most of its texts",
        )
    return done.stdout


def _rows(text: str, width: int) -> list[list[str]]:
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    return [row for row in rows if len(row) == width]


def mib(cell: str) -> float | None:
    """A figure of nvidia-smi; None for [N/A]."""
    return float(cell) if _FIGURE.fullmatch(cell) else None


def kernel_bus_id(text: str) -> str:
    """``0000:01:00.0`` of nvidia-smi's ``00000000:01:00.0``."""
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]:0>4}:{rest}"


def cards(ask: Ask = nvidia_smi) -> list[Card]:
    """Every card. Raises :class:`CannotAskError` when there is none that tells its memory."""
    found = []
    for row in _rows(ask(f"--query-gpu={','.join(_CARD)}"), len(_CARD)):
        total, reserved, used = (mib(cell) for cell in row[5:])
        if total is None or used is None:
            continue
        uuid, name, bus_id, driver, capability = (show(cell, _LONGEST) for cell in row[:5])
        found.append(Card(uuid, name, kernel_bus_id(bus_id), driver, capability, total, reserved or 0.0, used))
    if not found:
        raise CannotAskError(
            "the driver tells of no card with memory of its own",
            "look at `nvidia-smi`; a card that is divided (MIG) or shares the machine's memory cannot be asked here",
        )
    return found


def apps(ask: Ask = nvidia_smi) -> list[App]:
    """The programs on all cards."""
    rows = _rows(ask(f"--query-compute-apps={','.join(_APP)}"), len(_APP))
    return [App(int(row[0]), show(row[1], _LONGEST), mib(row[2])) for row in rows if _PID.fullmatch(row[0])]


def used_mib(uuid: str, ask: Ask = nvidia_smi) -> float:
    """MiB in use on one card."""
    return next((card.used_mib for card in cards(ask) if card.uuid == uuid), 0.0)


def chosen(found: list[Card], wanted: str | None) -> Card:
    """The card to ask: the one whose UUID or bus id is ``wanted``, else the one with the most free memory."""
    if wanted is None:
        return max(found, key=lambda card: card.total_mib - card.used_mib)
    for card in found:
        if wanted in (card.uuid, card.bus_id, card.bus_id.removeprefix("0000:")):
            return card
    listed = ", ".join(f"{card.bus_id} ({card.name})" for card in found)
    raise CannotAskError(f"there is no card {wanted!r}", f"name one of {listed}, or leave --card out")
