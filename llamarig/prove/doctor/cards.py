"""The cards: faults that the kernel logged, links, power, heat, and who else takes their memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llamarig.catalog import xids as catalog
from llamarig.prove.doctor.bundle import Bundle
from llamarig.prove.doctor.diagnosis import Diagnosis
from llamarig.prove.hostile import show

_XID = re.compile(r"\bXid \(PCI:(?P<bus>[0-9A-Fa-f:.]{1,20})[^)]{0,40}\): (?P<number>\d+)")

FOREIGN_MIB = 512
"""MiB of other programs that a plan does not know of."""


def xids(bundle: Bundle) -> Iterator[Diagnosis]:
    """Each kind of Xid once a card, with how often it came."""
    seen: dict[tuple[str, int], list[str]] = {}
    for line in bundle.lines("kernel-log"):
        if match := _XID.search(line):
            seen.setdefault((match["bus"], int(match["number"][:6])), []).append(line.strip())
    for (bus, number), lines in seen.items():
        known = catalog.xids().get(number, catalog.UNKNOWN)
        times = "once" if len(lines) == 1 else f"{len(lines)} times"
        yield Diagnosis(
            "xid",
            "warning" if known.gentle else "error",
            f"the driver logged Xid {number} for the card at {show(bus, 20)}, {times} since the boot",
            known.cause,
            known.fix,
            show(lines[-1], 200),
        )


def link(bundle: Bundle) -> Iterator[Diagnosis]:
    """A link narrower than the card could; its speed falls on purpose while the card is idle, its width does not."""
    for each in bundle.links:
        if 0 < _lanes(each.width) < _lanes(each.max_width):
            yield Diagnosis(
                "link-narrow",
                "warning",
                f"the card at {show(each.bus_id, 20)} runs on {_lanes(each.width)} of {_lanes(each.max_width)} lanes",
                "the slot has fewer lanes, shares them, or a contact or riser is bad",
                "reseat the card or use another slot; loading and a split over cards are slower until then",
                f"{show(each.speed, 40)}, at most {show(each.max_speed, 40)}",
            )


def _lanes(width: str) -> int:
    """Lanes of a link; 0 for what is no number."""
    return int(width) if width.isascii() and width.isdigit() and len(width) < 4 else 0  # noqa: PLR2004 - three digits


def persistence(bundle: Bundle) -> Iterator[Diagnosis]:
    """Without persistence limits and state are lost whenever nobody uses a card."""
    for row in bundle.table("nvidia-smi-cards"):
        if row.get("persistence_mode") == "Disabled":
            yield Diagnosis(
                "persistence-off",
                "warning",
                f"persistence mode is off on card {show(row.get('pci.bus_id', ''), 30)}",
                "nvidia-persistenced is not running, so the driver forgets limits and starts slowly each time",
                "enable nvidia-persistenced.service",
                show(bundle.text("persistence-daemon").strip(), 60),
            )


def power(bundle: Bundle, limits: dict[str, float]) -> Iterator[Diagnosis]:
    """A power limit that is not the wanted one; ``limits`` are W by bus id as ``01:00.0``."""
    for row in bundle.table("nvidia-smi-cards"):
        bus = row.get("pci.bus_id", "").lower()
        wanted = next((watts for place, watts in limits.items() if place and bus.endswith(place.lower())), None)
        try:
            now = float(row.get("power.limit", ""))
        except ValueError:
            continue
        if wanted is not None and abs(now - wanted) >= 1:
            lowest, highest = row.get("power.min_limit", "?"), row.get("power.max_limit", "?")
            yield Diagnosis(
                "power-limit-lost",
                "warning",
                f"the power limit of the card at {show(bus, 30)} is {now:g} W, and the spec says {wanted:g}",
                "limits are gone after a reboot or a reload of the driver, and other programs set them too",
                "apply again; look for another program that sets limits",
                f"between {show(lowest, 20)} and {show(highest, 20)} W",
            )


def throttling(bundle: Bundle) -> Iterator[Diagnosis]:
    """A card that slows itself down at this moment (ollama issue 13552)."""
    for row in bundle.table("nvidia-smi-throttle"):
        for name in ("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"):
            if row.get(f"clocks_event_reasons.{name}") == "Active":
                yield Diagnosis(
                    "throttled",
                    "warning",
                    f"a card is slowed down: {name.replace('_', ' ')}",
                    "heat or power: measured speeds do not count while this lasts",
                    "clean filters and fans, lower the power limit, check the supply; measure for two minutes or more",
                    "",
                )


def foreign_memory(bundle: Bundle) -> Iterator[Diagnosis]:
    """Programs beside the servers that hold memory of a card (egl-wayland issue 126)."""
    held: dict[str, list[tuple[float, str]]] = {}
    for row in bundle.table("nvidia-smi-processes"):
        name = row.get("process_name", "")
        try:
            mib = float(row.get("used_gpu_memory", ""))
        except ValueError:
            continue
        if not name.startswith("/opt/llamarig/"):
            held.setdefault(row.get("gpu_uuid", ""), []).append((mib, name))
    for programs in held.values():
        total = sum(mib for mib, _ in programs)
        if total >= FOREIGN_MIB:
            biggest = max(programs)
            yield Diagnosis(
                "foreign-vram",
                "warning",
                f"programs that llamarig does not know of hold {total:,.0f} MiB of a card",
                "desktops and browsers grow over days; a plan has only the reserve of the spec for them",
                "end them, move the display to another card, or raise gpus.NAME.reserve-mib",
                f"{show(biggest[1], 80)}: {biggest[0]:,.0f} MiB",
            )


RULES = (xids, link, persistence, throttling, foreign_memory)
