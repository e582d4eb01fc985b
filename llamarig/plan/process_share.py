"""Whether what fits narrowly would still fit with what processes were reported to take on such cards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llamarig.catalog import gpus
from llamarig.plan.measured import Measured
from llamarig.plan.short import asked_mib
from llamarig.plan.types import DevicePlan, Finding
from llamarig.spec.host import HostSpec

REPORTED_MIB = {"blackwell": (292, 510)}
"""MiB that one process was reported to take on a card beside its buffers, by the card's generation.

Source: docs/explanation/memory/measured.md lists the reports.
"""
REPORTED_ELSEWHERE_MIB = (299, 368)
"""On 24 GB Ampere cards; nobody published figures of later ones before Blackwell."""


def process_findings(spec: HostSpec, devices: Sequence[DevicePlan], measured: Measured | None) -> Iterator[Finding]:
    """A note for each card that fits by less than its processes may take above the fitted share."""
    for device in devices:
        shares = [
            terms["process"]
            for name, terms in device.services.items()
            if "process" in terms and not _is_measured(measured, name, device.gpu)
        ]
        card = gpus.card(spec.gpus[device.gpu].model)
        spare = device.free_mib - asked_mib(spec, device.services)
        if card is None or not shares or spare < 0:
            continue
        least, most = REPORTED_MIB.get(card.generation, REPORTED_ELSEWHERE_MIB)
        more = sum(max(most - share, 0.0) for share in shares)
        if spare < more:
            yield Finding(
                "process-unmeasured",
                "note",
                f"{device.gpu} fits by {spare:,.0f} MiB, and processes of {least} to {most} MiB were reported on such "
                f"cards, where {', '.join(f'{share:,.0f}' for share in shares)} are planned: up to {more:,.0f} more",
                f"measure this host's own with `llamarig verify {spec.host} --memory`, or leave that much free",
                device.gpu,
            )


def _is_measured(measured: Measured | None, service: str, card: str) -> bool:
    found = measured.services.get(service) if measured is not None else None
    return found is not None and card in found.cards
