"""From what was seen to verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.plan.types import Plan
from llamarig.prove.gpu import SHARE
from llamarig.prove.journal import StartLines, read_start
from llamarig.prove.memory import memory_checks, read_account
from scripts.gpu_check import report
from scripts.gpu_check.asking import Seen
from scripts.gpu_check.project import GPU, Prepared
from scripts.gpu_check.report import Verdict

UNAUTHORIZED = 401
_KIB = 1024


def verdict(question: str, ok: bool, detail: str) -> Verdict:
    """A yes or a no."""
    return Verdict(question=question, answer="yes" if ok else "no", detail=detail)


def skipped(question: str, why: str) -> Verdict:
    """A question that was not asked."""
    return Verdict(question=question, answer="not-asked", detail=why)


def service(prepared: Prepared, name: str, seen: Seen, uuid: str | None, *, drafts: bool) -> Iterator[Verdict]:
    """Everything about one server; ``uuid`` of the card, None on the cpu backend."""
    yield verdict(f"{name}/serves", not seen.error and bool(seen.text), seen.error or f"it says {seen.text[:120]!r}")
    if seen.error:
        return
    yield verdict(
        f"{name}/asks-for-a-key", seen.open_status == UNAUTHORIZED, f"{seen.open_status} without one, text with it"
    )
    if drafts:
        drafted, accepted = figure(seen, "draft_n"), figure(seen, "draft_n_accepted")
        yield verdict(f"{name}/drafts-are-accepted", bool(accepted), f"{accepted or 0:g} of {drafted or 0:g} drafts")
    start = read_start(seen.lines)
    if uuid is not None:
        yield from _on_card(prepared.plan, name, seen, start)
    yield from _memory(prepared, name, seen, uuid)


def figure(seen: Seen, key: str) -> float | None:
    """A number of the answer's timings."""
    value = seen.timings.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _on_card(plan: Plan, name: str, seen: Seen, start: StartLines) -> Iterator[Verdict]:
    """Weights on the card by the engine's own lines, and memory there by the driver."""
    done, of = start.offloaded[0] if start.offloaded else (0, 0)
    on_card = start.mib("model", on_gpu=True)
    words = f"{done} of {of} layers offloaded, {on_card:,.2f} MiB of weights on the card"
    yield verdict(f"{name}/on-the-card", bool(of) and done >= of and on_card > 0, start.broken or words)
    held = seen.driver_mib if seen.driver_mib is not None else seen.card_grew_mib
    terms = [device.services.get(name, {}) for device in plan.devices]
    planned = sum(mib for each in terms for term, mib in each.items() if term != "process")
    if held is None:
        yield skipped(f"{name}/memory-on-the-card", "the driver tells neither of the process nor of the card")
    else:
        by = "the driver for this process" if seen.driver_mib is not None else "the card's total before and after"
        words = f"{held:,.0f} MiB by {by}, {planned:,.0f} planned without the process's own share"
        yield verdict(f"{name}/memory-on-the-card", held >= SHARE * planned, words)


def _memory(prepared: Prepared, name: str, seen: Seen, uuid: str | None) -> Iterator[Verdict]:
    """Planned against measured, by the rules of `llamarig verify --memory`."""
    held = seen.driver_mib if seen.driver_mib is not None else seen.card_grew_mib
    answer = {
        "pids": {name: seen.pid},
        "cards": {GPU: uuid} if uuid else {},
        "services": {
            name: {
                "journal": {"lines": seen.lines},
                "process": {"VmHWM": int(seen.ram_peak_mib * _KIB)} if seen.ram_peak_mib else {},
            }
        },
        "vram": {"processes": [{"pid": seen.pid, "uuid": uuid, "mib": held}] if uuid and held else [], "error": ""},
    }
    for check in memory_checks(prepared.plan, name, read_account(name, answer), None, prepared.late_mib[name]):
        # The fit tool's row is of the CPU backend, which every host test asks.
        if not check.name.endswith("/memory-fit-tool"):
            yield verdict(check.name, check.ok, check.detail)


def service_report(plan: Plan, name: str, argv: tuple[str, ...], seen: Seen) -> report.Service:
    """The figures behind the verdicts."""
    places = {device.gpu: device.services.get(name, {}) for device in plan.devices}
    places["ram"] = plan.ram.services.get(name, {})
    start = read_start(seen.lines)
    drafted, accepted = figure(seen, "draft_n"), figure(seen, "draft_n_accepted")
    return report.Service(
        argv=list(argv),
        planned_mib={place: {term: round(mib, 2) for term, mib in terms.items()} for place, terms in places.items()},
        engine_mib=start.buffers,
        driver_mib=seen.driver_mib,
        card_grew_mib=seen.card_grew_mib,
        ram_peak_mib=None if seen.ram_peak_mib is None else round(seen.ram_peak_mib, 2),
        drafted=None if drafted is None else int(drafted),
        accepted=None if accepted is None else int(accepted),
        decode_tok_s=figure(seen, "predicted_per_second"),
        sandboxed=seen.sandboxed,
    )
