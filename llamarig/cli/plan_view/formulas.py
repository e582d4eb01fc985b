"""The terms of a service in words, with their formula filled in.

A formula's figures come from the memory model's own functions. It is shown only where they add up to what the plan
says, to the rounding of its MiB; where they do not, the words stand alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from llamarig.cli.plan_view.basis import PROCESS_PARTS, Basis, bracketed
from llamarig.gguf import Header
from llamarig.memory import Settings, Shape
from llamarig.memory.cache_types import Kinds
from llamarig.memory.draft_kv import draft_kv_by_layer
from llamarig.memory.kv import cached, cell_bytes, padded_v
from llamarig.memory.placement.tensors import block_of
from llamarig.memory.projector import OVERHEAD_MIB
from llamarig.memory.recurrent import state_bytes, state_copies
from llamarig.memory.units import MIB
from llamarig.memory.window import Window, cut
from llamarig.plan import Plan
from llamarig.plan.curves import Curve, Point
from llamarig.plan.load import Headers
from llamarig.plan.settings import settings_of
from llamarig.spec.host import HostSpec

DOMINANT = 0.9
"""Of what a service takes: the biggest terms that make this much are its dominant ones."""
_ROUNDING = 0.01
_TERMS = "explanation/memory/terms.md"
PAGES = {
    "weights": f"{_TERMS}#weights",
    "kv-cache": f"{_TERMS}#kv-cache",
    "recurrent-state": f"{_TERMS}#recurrent-state",
    "draft-weights": f"{_TERMS}#the-draft",
    "draft-kv-cache": f"{_TERMS}#the-draft",
    "compute": "explanation/memory/compute.md",
    "draft-compute": "explanation/memory/compute.md",
    "projector": f"{_TERMS}#projector",
    "process": "explanation/memory/measured.md",
}
"""Where each term is explained, below docs/."""

WORDS = {
    "weights": "The model's tensors, as large as the header says. The token embedding stays in RAM, unless the model "
    "has no output matrix of its own and needs it once more beside its last layer. It does not depend on the window.",
    "kv-cache": "Keys and values of every token that the window can hold, reserved at start whether or not they are "
    "ever used: layers with attention, times cells, times the row of K and the row of V in their types.",
    "recurrent-state": "The state of the recurrent layers: one copy for each slot, and one more for each token that is "
    "drafted, so that a rejected draft can be taken back. It does not grow with the window.",
    "draft-weights": "The tensors of what drafts: the model's own MTP head, or a drafter of its own.",
    "draft-kv-cache": "The cache of what drafts, over the same window, in its own type.",
    "compute": "Buffers of one pass at the place where most of them live at once: masks, rows in flight, and a staged "
    "copy of a quantised cache. They are reserved for a full window, and a smaller ubatch makes them smaller.",
    "draft-compute": "The same for the pass that drafts.",
    "projector": "The file that turns images into tokens, and its buffers.",
    "process": "What a process takes beside its buffers: on a card the driver's context, kernels and workspaces, in "
    "RAM code, vocabulary and threads, with the prompt cache and the checkpoints of the context.",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a term: in words, and its MiB."""

    words: str
    mib: float


@dataclass(frozen=True, slots=True)
class Explained:
    """A term of one service over all places."""

    service: str
    term: str
    mib: float
    share: float
    """Of all that the service takes."""
    places: tuple[tuple[str, float], ...]
    """MiB by card, and in RAM."""
    words: str
    steps: tuple[Step, ...]
    """What adds up to it; empty where no formula is at hand."""
    seen: tuple[Step, ...]
    """What it is with other settings, as planned."""
    basis: str


def explanations(
    plan: Plan, spec: HostSpec, headers: Headers, curves: Sequence[Curve] = ()
) -> dict[str, list[Explained]]:
    """By service, its dominant terms, the biggest first."""
    basis = Basis(plan)
    found = {}
    for name in plan.services:
        places = _places(plan, name)
        terms: Counter[str] = Counter()
        for held in places.values():
            terms.update(held)
        total = sum(terms.values())
        shown, reached = [], 0.0
        for term, mib in terms.most_common():
            if reached >= DOMINANT * total:
                break
            reached += mib
            parts = _Parts(plan, spec, headers, name)
            where = tuple((place, held[term]) for place, held in places.items() if term in held)
            on_card = next((place for place, _ in where if place != "RAM"), None)
            steps = _adding_up(tuple(parts.of(term)), mib)
            told = "" if term == "process" else basis.term(term, (name,), on_card)
            seen = _seen(term, name, curves)
            shown.append(Explained(name, term, mib, mib / total, where, WORDS[term], steps, seen, told))
        found[name] = shown
    return found


def _adding_up(steps: tuple[Step, ...], mib: float) -> tuple[Step, ...]:
    """As many of the steps as make the term; none where that does not come out."""
    for count in range(len(steps), 0, -1):
        if abs(sum(step.mib for step in steps[:count]) - mib) < _ROUNDING:
            return steps[:count]
    return ()


def _seen(term: str, service: str, curves: Sequence[Curve]) -> tuple[Step, ...]:
    """The term as planned for a short window, half the longest one, and that: it has no short formula."""
    curve = next((each for each in curves if (each.service, each.setting) == (service, "context")), None)
    if curve is None or term not in {"compute", "draft-compute"}:
        return ()
    shown = sorted({0, len(curve.points) // 2, len(curve.points) - 1})
    return tuple(
        Step(f"with a window of {point.value:,} tokens", _over_places(point, service, term))
        for point in (curve.points[number] for number in shown)
    )


def _over_places(point: Point, service: str, term: str) -> float:
    held = [device.services.get(service, {}) for device in point.devices]
    return sum(terms.get(term, 0.0) for terms in (*held, point.ram.services.get(service, {})))


def _places(plan: Plan, service: str) -> dict[str, Mapping[str, float]]:
    places: dict[str, Mapping[str, float]] = {
        device.gpu: device.services[service] for device in plan.devices if service in device.services
    }
    places["RAM"] = plan.ram.services.get(service, {})
    return places


class _Parts:
    """The formulas of one service."""

    def __init__(self, plan: Plan, spec: HostSpec, headers: Headers, name: str) -> None:
        self._plan, self._spec, self._name = plan, spec, name
        self._service = spec.services[name]
        self._header = headers.get(self._service.model)
        self._settings = settings_of(spec, self._service)
        self._shape = _shape(self._header)

    def of(self, term: str) -> Iterator[Step]:
        """What adds up to the term, as far as it is known."""
        if term == "process":
            yield from self._process()
        elif term == "projector":
            yield from self._projector()
        elif self._header is not None and self._shape is not None:
            yield from self._of_model(term, self._header, self._shape)

    def _of_model(self, term: str, header: Header, shape: Shape) -> Iterator[Step]:
        settings, window = self._settings, cut(self._settings)
        if term == "weights":
            yield from _weights(header, shape)
        elif term == "draft-weights":
            yield from _head(header, shape)
        elif term == "kv-cache":
            yield from _cache(shape, settings, window)
        elif term == "draft-kv-cache":
            yield from _draft_cache(shape, settings, window)
        elif term == "recurrent-state":
            copies, one = state_copies(shape, settings), state_bytes(shape)
            layers = sum(layer.recurrent for layer in shape.trunk)
            each = copies // settings.parallel
            slots = f"{settings.parallel:,} {_plural('slot', settings.parallel)}"
            per_slot = f"{slots} x (1 copy + {each - 1} for drafted tokens)" if each > 1 else slots
            yield Step(f"{per_slot} x {one / MIB:,.3f} MiB of {layers} layers", copies * one / MIB)

    def _process(self) -> Iterator[Step]:
        basis = Basis(self._plan)
        for device in self._plan.devices:
            mib = device.services.get(self._name, {}).get("process")
            if mib:
                yield Step(f"on {device.gpu}{bracketed(basis.term('process', (self._name,), device.gpu))}", mib)
        for part, mib in self._plan.ram_detail.get(self._name, {}).items():
            if mib:
                told = basis.term("process", (self._name,)) if part == "base" else ""
                yield Step(f"{PROCESS_PARTS.get(part, part)} in RAM{bracketed(told)}", mib)

    def _projector(self) -> Iterator[Step]:
        projector = self._spec.models[self._service.model].projector
        if projector is not None and isinstance(projector.size, int):
            yield Step("the file", projector.size / MIB)
            yield Step("its buffers, as measured for one projector", OVERHEAD_MIB)


def _shape(header: Header | None) -> Shape | None:
    from llamarig.errors import RigError
    from llamarig.memory import read_shape

    try:
        return None if header is None else read_shape(header)
    except RigError:
        return None  # the plan has said so already, as a finding


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _weights(header: Header, shape: Shape) -> Iterator[Step]:
    sizes = [tensor.size for tensor in header.tensors if (block_of(tensor.name) or 0) < len(shape.trunk)]
    yield Step(f"{len(sizes):,} tensors", sum(sizes) / MIB)
    embedding = header.by_name.get("token_embd.weight")
    if embedding is not None and "output.weight" not in header.by_name:
        yield Step("the token embedding once more, as output matrix", embedding.size / MIB)


def _head(header: Header, shape: Shape) -> Iterator[Step]:
    sizes = [tensor.size for tensor in header.tensors if (block_of(tensor.name) or 0) >= len(shape.trunk)]
    yield Step(f"{len(sizes):,} tensors of the MTP head", sum(sizes) / MIB)


def _cache(shape: Shape, settings: Settings, window: Window) -> Iterator[Step]:
    kinds = Kinds(settings.cache_k, settings.cache_v)
    widest = padded_v(shape, settings)
    groups: Counter[tuple[bool, int]] = Counter()
    for layer in cached(shape):
        if layer.k_width:
            groups[layer.sliding, cell_bytes(layer, kinds, widest)] += 1
    for (sliding, size), layers in groups.items():
        cells = window.sliding_cells(shape, settings) if sliding else window.cells
        what = f"sliding {_plural('layer', layers)}" if sliding else _plural("layer", layers)
        yield _cells(f"{layers} {what}", layers, window.streams, cells, size, f"K {kinds.k}, V {kinds.v}")


def _draft_cache(shape: Shape, settings: Settings, window: Window) -> Iterator[Step]:
    groups = Counter(size for _, size in draft_kv_by_layer(shape, settings, window) if size)
    for size, layers in groups.items():
        of_a_cell = size // (window.streams * window.cells)
        types = f"K {settings.draft_k}, V {settings.draft_v}"
        yield _cells(f"{layers} {_plural('layer', layers)}", layers, window.streams, window.cells, of_a_cell, types)


def _cells(what: str, layers: int, streams: int, cells: int, size: int, types: str) -> Step:
    several = f" x {streams} slots" if streams > 1 else ""
    words = f"{what}{several} x {cells:,} cells x {size:,} bytes ({types})"
    return Step(words, layers * streams * cells * size / MIB)
