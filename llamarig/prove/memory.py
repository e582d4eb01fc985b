"""The planned memory of a running service against three accounts of it: engine, fit tool, kernel and driver.

A plan may be too careful by a little, but never too low: buffers are held to ``planned - 3 % <= seen <= planned``,
caches to equality.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from llamarig.plan.measured import MeasuredCard, MeasuredService
from llamarig.plan.types import Plan
from llamarig.prove.check import Check
from llamarig.prove.fit_settings import FitColumns
from llamarig.prove.fit_tool import FitRow, read_fit
from llamarig.prove.hostile import integer, mapping, number, sequence, show, text
from llamarig.prove.journal import StartLines, read_start

CLOSE = 0.03
"""Part of a planned figure that the engine may stay below it."""
SMALL_MIB = 2.0
"""MiB that are no difference in a buffer, whatever its size."""
LINE_MIB = 0.011
"""What the rounding of one printed line to two decimals may hide, and a little."""
KIB = 1024
MOST_MIB = 1 << 23
"""No process has more; what a host says beyond it is not taken."""

_CACHES = {"KV": ("kv-cache", "draft-kv-cache"), "RS": ("recurrent-state",)}
_BUFFERS = {"model": ("weights", "draft-weights"), "compute": ("compute", "draft-compute")}


@dataclass(frozen=True, slots=True)
class Account:
    """All that was seen of one service's memory; hostile text until it is read here."""

    journal: StartLines
    fit: tuple[FitRow, ...]
    fit_error: str
    peak_kib: int | None
    driver: dict[str, float]
    """MiB that the driver counts for the process, by the card's name in the spec."""
    driver_error: str


def read_account(name: str, answer: Mapping[str, Any]) -> Account:
    """What rig_prove returned of the service ``name``."""
    seen = mapping(answer, "services", name)
    pid = integer(mapping(answer, "pids"), name) or 0
    names = {uuid: card for card, uuid in mapping(answer, "cards").items() if isinstance(uuid, str)}
    peak = integer(mapping(seen, "process"), "VmHWM")
    driver: dict[str, float] = {}
    for entry in sequence(answer, "vram", "processes"):
        card, mib = names.get(text(entry, "uuid")), number(entry, "mib")
        if pid and integer(entry, "pid") == pid and card is not None and mib is not None and 0 <= mib < MOST_MIB:
            driver[card] = driver.get(card, 0.0) + mib
    return Account(
        journal=read_start(sequence(seen, "journal", "lines")),
        fit=tuple(read_fit(sequence(seen, "fit", "lines"))),
        fit_error=text(seen, "fit", "error"),
        peak_kib=peak if peak is not None and 0 < peak < MOST_MIB * KIB else None,
        driver=driver,
        driver_error=text(answer, "vram", "error"),
    )


def memory_checks(
    plan: Plan, name: str, account: Account, cpu: FitColumns | None, late_mib: float = 0.0
) -> list[Check]:
    """Each account that there is against the plan.

    ``cpu`` is what the fit tool must print; ``late_mib`` is planned, but not yet there when the engine prints its lines
    (:mod:`llamarig.prove.late_rows`).
    """
    return [
        *_engine(plan, name, account.journal, late_mib),
        *_fit(name, account, cpu),
        *_driver(plan, name, account),
        *_ram(plan, name, account),
    ]


def _planned(plan: Plan, name: str, terms: tuple[str, ...]) -> float:
    """MiB over all cards and RAM."""
    places = [device.services.get(name, {}) for device in plan.devices]
    return sum(place.get(term, 0.0) for place in (*places, plan.ram.services.get(name, {})) for term in terms)


def _engine(plan: Plan, name: str, start: StartLines, late_mib: float) -> Iterator[Check]:
    if not start.buffers:
        yield Check(f"{name}/memory-engine", False, "the engine's lines of this start are not in the journal")
        return
    for kind, terms in _CACHES.items():
        planned, sizes = _planned(plan, name, terms), start.buffers.get(kind, {})
        if planned or sizes:
            seen = sum(sizes.values())
            ok = abs(seen - planned) <= LINE_MIB * max(len(sizes), 1) * len(terms)
            yield Check(f"{name}/memory-{terms[0]}", ok, _words(planned, seen, "the engine's lines"))
    for kind, terms in _BUFFERS.items():
        sizes = start.buffers.get(kind, {})
        if sizes:
            planned, seen = _planned(plan, name, terms), sum(sizes.values())
            if kind == "compute":
                planned -= late_mib
                seen += sum(start.buffers.get("output", {}).values())
            yield Check(f"{name}/memory-{terms[0]}", _close(planned, seen), _words(planned, seen, "the engine's lines"))


def _close(planned: float, seen: float) -> bool:
    """Whether a plan is not below what was seen, and not far above it."""
    return planned - seen + LINE_MIB >= -LINE_MIB and planned - seen <= max(CLOSE * planned, SMALL_MIB)


def _words(planned: float, seen: float, by: str) -> str:
    return f"planned {planned:,.2f} MiB, {seen:,.2f} by {by}"


def _fit(name: str, account: Account, cpu: FitColumns | None) -> Iterator[Check]:
    row = next((row for row in account.fit if row.device == "Host"), None)
    if row is None or cpu is None:
        why = account.fit_error or ("it printed no row of the host" if cpu else "the model's header is not at hand")
        yield Check(f"{name}/memory-fit-tool", False, f"no cross-check with llama-fit-params: {show(why, 300)}")
        return
    same = (cpu.weights, cpu.context) == (row.model, row.context)
    close = cpu.compute is None or 0 <= cpu.compute - row.compute <= max(CLOSE * row.compute, SMALL_MIB)
    yield Check(
        f"{name}/memory-fit-tool",
        same and close,
        f"on the CPU backend: planned {cpu} MiB of weights, caches and compute, "
        f"{row.model:,} + {row.context:,} + {row.compute:,} by llama-fit-params",
    )


def _without_process(plan: Plan, name: str) -> Iterator[tuple[str, float, float]]:
    """(card, planned MiB without the process's share, that share) of every card of a service."""
    for device in plan.devices:
        terms = device.services.get(name)
        if terms:
            share = terms.get("process", 0.0)
            yield device.gpu, sum(terms.values()) - share, share


def _driver(plan: Plan, name: str, account: Account) -> Iterator[Check]:
    for card, planned, share in _without_process(plan, name):
        seen = account.driver.get(card)
        if seen is None:
            why = account.driver_error or "the driver names no memory of this process there"
            yield Check(f"{name}/memory-driver-{card}", False, f"not measured: {show(why, 300)}")
        else:
            words = (
                f"planned {planned:,.0f} and {share:,.0f} of the process, {seen:,.0f} MiB by the driver: the process "
            )
            yield Check(
                f"{name}/memory-driver-{card}", seen <= planned + share + 1, f"{words}takes {seen - planned:,.0f}"
            )


def _ram(plan: Plan, name: str, account: Account) -> Iterator[Check]:
    planned = sum(plan.ram.services.get(name, {}).values())
    if account.peak_kib is None:
        yield Check(f"{name}/memory-ram", False, "the kernel does not tell how much RAM the process took")
        return
    seen = account.peak_kib / KIB
    yield Check(f"{name}/memory-ram", seen <= planned, f"planned {planned:,.0f} MiB, at most {seen:,.0f} so far")


def measured_service(plan: Plan, name: str, account: Account) -> MeasuredService:
    """What later plans of this host use."""
    cards = {
        card: MeasuredCard.model_validate(
            {"driver-mib": round(account.driver[card], 2), "planned-mib": round(planned, 2)}
        )
        for card, planned, _ in _without_process(plan, name)
        if card in account.driver
    }
    ram: dict[str, float] = {}
    if account.peak_kib is not None:
        parts = plan.ram.services.get(name, {})
        base = plan.ram_detail.get(name, {}).get("base", 0.0)
        ram = {
            "ram-peak-mib": round(account.peak_kib / KIB, 2),
            "ram-planned-mib": round(sum(parts.values()) - base, 2),
        }
    return MeasuredService.model_validate({"cards": cards, **ram})
