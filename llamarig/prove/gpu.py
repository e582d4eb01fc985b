"""Proof that a CUDA service is on its GPU.

A server that found no GPU, or was built without CUDA, serves from the CPU with /health 200. Four accounts tell the
difference: what the loader mapped, which device files the process has open, what the engine wrote at its start, and
what the driver says the process holds. At least two must speak for the GPU, one of them must show memory there
(a linked libcuda alone puts no weight anywhere), and none may speak against it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from llamarig.prove.check import Outcome, Rule
from llamarig.prove.hostile import integer, number, sequence, show, text
from llamarig.prove.journal import StartLines, read_start
from llamarig.prove.services import View

SHARE = 0.9
"""Share of the planned memory that the driver must report for the process."""
PROOFS = 2
ALL_LAYERS = 999
_CARD = re.compile(r"/dev/nvidia[0-9]+")

Voice = Literal["for", "against", "silent"]


@dataclass(frozen=True, slots=True)
class Account:
    """One account: what it says, and whether it shows memory on the card."""

    voice: Voice
    words: str
    of_memory: bool = False


def _library(view: View) -> Account:
    if view.process.get("libcuda") is True:
        return Account("for", "libcuda is mapped")
    return Account("against", "libcuda is not mapped: a build or a start without CUDA")


def _devices(view: View) -> Account:
    cards = [
        show(path) for path in sequence(view.process, "devices") if isinstance(path, str) and _CARD.fullmatch(path)
    ]
    if cards:
        return Account("for", f"{', '.join(cards[:8])} open")
    return Account("against", "no /dev/nvidiaN is open")


def _planned_layers(view: View, of: int) -> int:
    argv = list(view.service["argv"])
    for flag in ("--n-gpu-layers", "--gpu-layers", "-ngl"):
        if flag in argv[:-1]:
            value = argv[argv.index(flag) + 1]
            return min(int(value), of) if value.isascii() and value.isdigit() else of
    return of


def _engine(view: View, start: StartLines) -> Account:
    if start.broken:
        return Account("against", f"the engine wrote {show(start.broken, 120)!r}")
    if start.offloaded:
        done, of = start.offloaded[0]
        planned = _planned_layers(view, of)
        words = f"the engine offloaded {done} of {of} layers, planned {planned}"
        return Account("for" if done >= planned and done else "against", words, of_memory=True)
    if not start.buffers.get("model"):
        return Account("silent", "the engine's lines of this start are not in the journal")
    on_gpu = start.mib("model", on_gpu=True)
    return Account(
        "for" if on_gpu else "against", f"the engine put {on_gpu:.0f} MiB of weights on the GPU", of_memory=True
    )


def _split_over(view: View) -> tuple[str, ...]:
    """UUIDs of the cards that a model is split over; none for a model on one."""
    argv = list(view.service["argv"])
    names = argv[argv.index("--device") + 1].split(",") if "--device" in argv[:-1] else []
    visible = str(view.service["environment"].get("CUDA_VISIBLE_DEVICES", "")).split(",")
    return tuple(visible[: len(names)]) if len(names) > 1 else ()


def _driver(view: View) -> Account:
    """The plan's sum is over all cards of the service; each that the model is split over holds a part of it, and the
    only one of another model holds the most."""
    held = [entry for entry in sequence(view.vram, "processes") if integer(entry, "pid") == view.pid]
    planned = float(view.service["vram_mib"])
    trouble = text(view.vram, "error")
    if trouble:
        return Account("silent", f"the driver could not be asked: {show(trouble, 120)}")
    if not held:
        return Account("against", "the driver knows no memory of this process")
    sizes = [number(entry, "mib") for entry in held]
    if None in sizes:
        return Account("silent", "the driver does not tell a process's memory here")
    by_card: dict[str, float] = {}
    for entry in held:
        uuid = text(entry, "uuid")
        by_card[uuid] = by_card.get(uuid, 0.0) + (number(entry, "mib") or 0.0)
    total, card = sum(by_card.values()), view.service["gpu_uuid"]
    words = f"the driver counts {total:.0f} MiB, planned {planned:.0f}"
    several = _split_over(view)
    idle = [name for name in several if name.startswith("GPU-") and not by_card.get(name)]
    if idle:
        return Account("against", f"{words}, and none of it on {', '.join(idle)}", of_memory=True)
    if not several and card is not None and by_card.get(card, 0.0) < max(by_card.values()) / 2:
        return Account("against", f"{words}, but not on the planned card {card}", of_memory=True)
    return Account("for" if total and total >= SHARE * planned else "against", words, of_memory=True)


def on_gpu(view: View) -> Outcome:
    """At least two independent accounts put the process on its card, and none contradicts."""
    start = read_start(sequence(view.probe, "journal", "lines"))
    accounts = [_library(view), _devices(view), _engine(view, start), _driver(view)]
    speaking = [account for account in accounts if account.voice == "for"]
    against = [account.words for account in accounts if account.voice == "against"]
    if against:
        return False, f"{len(speaking)} of 4 proofs hold; " + "; ".join(against)
    words = "; ".join(account.words for account in accounts)
    if len(speaking) < PROOFS or not any(account.of_memory for account in speaking):
        return False, f"nothing shows the model's memory on the card: {words}"
    return True, f"{len(speaking)} of 4 proofs: {words}"


def projector(view: View) -> Outcome:
    """A projector that the plan puts on a card is not on the CPU."""
    start = read_start(sequence(view.probe, "journal", "lines"))
    planned = str(view.service["environment"].get("MTMD_BACKEND_DEVICE", ""))
    if not start.clip:
        return True, "the engine's line of the projector is not in the journal"
    wrong = start.clip != planned if planned else not start.clip.startswith("CUDA")
    return not wrong, f"on {show(start.clip)}, planned {show(planned) or 'a CUDA device'}"


def _cuda(view: View) -> bool:
    return bool(view.service["backend"] == "cuda")


def _sees_on_a_card(view: View) -> bool:
    return set(view.service["modalities"]) > {"text"} and "--no-mmproj-offload" not in view.service["argv"]


RULES: tuple[Rule[View], ...] = (
    Rule("gpu", on_gpu, needs=("unit",), when=_cuda),
    Rule(
        "projector",
        projector,
        needs=("unit",),
        when=lambda view: _cuda(view) and _sees_on_a_card(view),
    ),
)
