"""Geometry of the page's charts: percentages across, so that they fit any width, and pixels up."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from llamarig.cli.plan_view.basis import KEYS, in_order
from llamarig.plan import DevicePlan, RamPlan
from llamarig.plan.curves import Curve, Point

PLOT = 240
"""Pixels from the top of a chart to its base line."""
_TOP = 14
"""Pixels that stay free above the highest value."""
_WIDE_ENOUGH = 4.5
"""Percent of the width from which a stretch has room for its letter."""
_TICKS = 5

OTHERS = "others"
"""What the host's other services have on the same card, as one stretch at the bottom."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One term in a bar, percent of the width."""

    term: str
    key: str
    x: float
    width: float
    mib: float
    lettered: bool


@dataclass(frozen=True, slots=True)
class Limit:
    """A capacity line: across a bar ``at`` percent, up a chart ``at`` pixels from the top."""

    kind: str
    label: str
    at: float
    mib: float

    @property
    def left(self) -> bool:
        """Whether the label of a bar's line has its room on the left."""
        return self.at > 50  # noqa: PLR2004 - percent: the wider side


@dataclass(frozen=True, slots=True)
class Bar:
    """A budget as a stacked bar; ``over`` is where it is more than there may be, from and width in percent."""

    stretches: tuple[Stretch, ...]
    limits: tuple[Limit, ...]
    track: float
    """Percent of the width that stand for the total."""
    over: tuple[float, float] | None


def bar_of_card(device: DevicePlan, assumed: str) -> Bar:
    """A card's bar: its total, what is usable of it, and that less the margin."""
    told = f" ({assumed})" if assumed else ""
    limits = [("usable", f"usable{told}", device.usable_mib)]
    if device.margin_mib:
        limits.insert(0, ("kept", "usable less the margin", device.usable_mib - device.margin_mib))
    return _bar(device.components, device.total_mib, limits)


def bar_of_ram(ram: RamPlan) -> Bar:
    """The host's RAM; no lines where the spec does not say how much there is."""
    if not ram.total_mib:
        return _bar(ram.components, 0.0, [])
    return _bar(ram.components, ram.total_mib, [("kept", "total less the reserve", ram.total_mib - ram.reserve_mib)])


def _bar(components: Mapping[str, float], total: float, limits: Sequence[tuple[str, str, float]]) -> Bar:
    used = sum(components.values())
    whole = max(total, used, 1.0)
    stretches, edge = [], 0.0
    for term, mib in in_order(components).items():
        width = mib / whole * 100
        stretches.append(Stretch(term, KEYS.get(term, "?"), edge, width, mib, width >= _WIDE_ENOUGH))
        edge += width
    hard = limits[-1][2] if limits else used
    over = (max(hard, 0.0) / whole * 100, (used - max(hard, 0.0)) / whole * 100) if used > hard else None
    lines = tuple(Limit(kind, label, max(mib, 0.0) / whole * 100, mib) for kind, label, mib in limits)
    return Bar(tuple(stretches), lines, total / whole * 100, over)


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis: percent across, or pixels from the top."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Layer:
    """One term over all points: an area's corners in a box of 1,000 by PLOT, or one column a point."""

    term: str
    corners: str
    columns: tuple[tuple[float, float], ...]
    """Top and height of each column, pixels."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One point: its middle and width in percent, the top of its stack in pixels."""

    x: float
    left: float
    width: float
    top: float
    value: int
    used: float
    fits: bool
    present: bool
    terms: dict[str, float]
    free: float | None


@dataclass(frozen=True, slots=True)
class Chart:
    """Memory on one card, or in RAM, over one setting."""

    service: str
    setting: str
    place: str
    terms: tuple[str, ...]
    layers: tuple[Layer, ...]
    spots: tuple[Spot, ...]
    limits: tuple[Limit, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]

    @property
    def columns(self) -> bool:
        """Whether the values are counted, so that nothing lies between two of them."""
        return self.setting == "n-max"

    @property
    def present(self) -> Spot:
        """The point of the spec as it is."""
        return next(spot for spot in self.spots if spot.present)


def charts(curve: Curve) -> list[Chart]:
    """A chart for each card on which the curve's service takes more or less with the setting; else one of RAM."""
    cards = [device.gpu for device in curve.here.devices if _varies(curve, device.gpu)]
    return [_chart(curve, card) for card in cards] or ([_chart(curve, None)] if _varies(curve, None) else [])


def _held(point: Point, place: str | None) -> Mapping[str, Mapping[str, float]]:
    if place is None:
        return point.ram.services
    return next(device.services for device in point.devices if device.gpu == place)


def _own(point: Point, place: str | None, service: str) -> dict[str, float]:
    """The service's own terms, above what all others have there."""
    held = _held(point, place)
    others = sum(sum(terms.values()) for name, terms in held.items() if name != service)
    return ({OTHERS: others} if others else {}) | dict(held.get(service, {}))


def _varies(curve: Curve, place: str | None) -> bool:
    sums = [sum(_held(point, place).get(curve.service, {}).values()) for point in curve.points]
    return max(sums) - min(sums) > 0.01  # noqa: PLR2004 - MiB: what two decimals show


def _limits(point: Point, place: str | None) -> list[tuple[str, str, float]]:
    if place is None:
        ram = point.ram
        return [("kept", "total less the reserve", ram.total_mib - ram.reserve_mib)] if ram.total_mib else []
    device = next(device for device in point.devices if device.gpu == place)
    if not device.total_mib:
        return []
    margin = [("kept", "less the margin", device.usable_mib - device.margin_mib)] if device.margin_mib else []
    return [("usable", "usable", device.usable_mib), *margin]


def _chart(curve: Curve, place: str | None) -> Chart:
    stacks = [_own(point, place, curve.service) for point in curve.points]
    terms = [term for term in (OTHERS, *KEYS) if any(term in stack for stack in stacks)]
    limits = _limits(curve.here, place)
    highest = max(*(sum(stack.values()) for stack in stacks), *(mib for _, _, mib in limits), 1.0)

    def height(mib: float) -> float:
        return mib / highest * (PLOT - _TOP)

    count = len(curve.points)
    first, last = curve.points[0].value, curve.points[-1].value
    if curve.setting == "n-max":
        middles = [(number + 0.5) / count * 100 for number in range(count)]
    else:
        middles = [(point.value - first) / max(last - first, 1) * 100 for point in curve.points]
    bounds = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(middles)), 100.0]
    hard = limits[0][2] if limits else None
    spots = []
    for number, (point, stack) in enumerate(zip(curve.points, stacks, strict=True)):
        used = sum(stack.values())
        spots.append(
            Spot(
                x=middles[number],
                left=bounds[number],
                width=bounds[number + 1] - bounds[number],
                top=PLOT - height(used),
                value=point.value,
                used=used,
                fits=point.fits,
                present=point.value == curve.present,
                terms=stack,
                free=None if hard is None else hard - used,
            )
        )
    return Chart(
        service=curve.service,
        setting=curve.setting,
        place="RAM" if place is None else place,
        terms=tuple(terms),
        layers=_layers(terms, stacks, middles, height),
        spots=tuple(spots),
        limits=tuple(Limit(kind, label, PLOT - height(mib), mib) for kind, label, mib in limits),
        across=_across(curve, spots),
        up=tuple(Tick(PLOT - height(mib), f"{mib:,.0f}") for mib in nice_steps(highest)),
    )


def _layers(
    terms: Sequence[str],
    stacks: Sequence[Mapping[str, float]],
    middles: Sequence[float],
    height: Callable[[float], float],
) -> tuple[Layer, ...]:
    below = [0.0] * len(stacks)
    layers = []
    for term in terms:
        above = [low + stack.get(term, 0.0) for low, stack in zip(below, stacks, strict=True)]
        tops = [PLOT - height(mib) for mib in above]
        bases = [PLOT - height(mib) for mib in below]
        forth = [f"{x * 10:.1f},{y:.2f}" for x, y in zip(middles, tops, strict=True)]
        back = [f"{x * 10:.1f},{y:.2f}" for x, y in zip(middles, bases, strict=True)][::-1]
        columns = tuple((top, base - top) for top, base in zip(tops, bases, strict=True))
        layers.append(Layer(term, " ".join(forth + back), columns))
        below = above
    return tuple(layers)


def _across(curve: Curve, spots: Sequence[Spot]) -> tuple[Tick, ...]:
    if curve.setting == "n-max":
        every = max(1, math.ceil(len(spots) / 9))
        return tuple(Tick(spot.x, str(spot.value or "off")) for spot in spots[::every])
    first, last = spots[0].value, spots[-1].value
    span = last - first
    if not span:
        return (Tick(spots[0].x, tokens(first)),)
    step = 1 << max(math.ceil(math.log2(span / _TICKS)), 0)
    round_ones = [value for value in range(step, last + 1, step) if value - first > span / (3 * _TICKS)]
    return tuple(Tick((value - first) / span * 100, tokens(value)) for value in (first, *round_ones))


def tokens(count: int) -> str:
    """Tokens in K where they are whole ones, as windows are spoken of."""
    return f"{count // 1024:,}K" if count % 1024 == 0 else f"{count:,}"


def nice_steps(highest: float) -> list[float]:
    """Round figures from 0 up to ``highest``, about five of them."""
    rough = highest / _TICKS
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [step * number for number in range(int(highest // step) + 1)]
