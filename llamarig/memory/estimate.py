"""All terms of one server together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from llamarig.errors import RigError
from llamarig.gguf.header import Header
from llamarig.memory.draft_kv import draft_kv_bytes
from llamarig.memory.draft_outputs import draft_output_bytes, reader_output_bytes
from llamarig.memory.drafter import check_output, drafter_settings, read_rows
from llamarig.memory.graph.reserve import is_known
from llamarig.memory.kv import kv_bytes
from llamarig.memory.logits import logit_bytes
from llamarig.memory.placement.adapters import adapter_bytes
from llamarig.memory.placement.buffers import draft_buffers, reduction_bytes, target_buffers
from llamarig.memory.placement.cuts import UNCUT
from llamarig.memory.process import host_base_mib, residues_mib
from llamarig.memory.projector import projector_mib
from llamarig.memory.recurrent import recurrent_bytes, state_bytes
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape, read_shape
from llamarig.memory.split import NOTHING, Split
from llamarig.memory.terms import TERMS
from llamarig.memory.units import MIB, is_quantised
from llamarig.memory.weights import weight_bytes
from llamarig.memory.window import Window, cut


@dataclass(frozen=True, slots=True)
class Estimate:
    """MiB of one server by place and term; terms of 0 are left out."""

    architecture: str
    devices: tuple[dict[str, float], ...]
    """On each card, in the order of ``--device``; empty for the CPU backend."""
    host: dict[str, float]
    """In the host's RAM."""
    host_detail: dict[str, float]
    """What the host's ``process`` term is made of: ``base``, ``checkpoints``, ``prompt-cache``."""
    slot_context: int
    """Tokens that one slot can hold, as the server reports them."""
    known: bool
    """Whether the architecture's layout is known; if not, everything here is a guess by plain attention."""
    compute_checked: bool
    """Whether the compute terms come from the architecture's own graph, which was compared with the engine."""
    mtp: bool
    """Whether the file has an MTP head."""
    trained_context: int = 0
    shape: Shape | None = field(default=None, compare=False)

    @property
    def device(self) -> dict[str, float]:
        """Over all cards."""
        return _tidy({term: sum(terms.get(term, 0.0) for terms in self.devices) for term in TERMS})

    @property
    def device_mib(self) -> float:
        """MiB on the cards."""
        return sum(sum(terms.values()) for terms in self.devices)

    @property
    def host_mib(self) -> float:
        """MiB in RAM."""
        return sum(self.host.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a server loads besides its model."""

    drafter: Header | None = None
    """The header of a separate draft model."""
    draft_card: int = 0
    """The card that holds it, in the order of ``--device``; it may be one more than the model's cards."""
    adapters: tuple[Header, ...] = ()
    """Headers of the adapters that are laid on the model."""
    projector_size: int | None = None
    """Bytes of the projector's file, when it is on the model's first card."""


def estimate(header: Header, settings: Settings, beside: Beside | None = None) -> Estimate:
    """Estimate the memory of one server.

    Raises :class:`RigError` when settings and model do not go together.
    """
    beside = beside or Beside()
    shape = read_shape(header)
    _check(shape, settings)
    window = cut(settings)
    terms = _model_terms(header, shape, settings, window)
    if beside.adapters:
        _add_adapters(terms, beside.adapters, header, shape, settings)
    if beside.projector_size is not None:
        place = None if settings.backend == "cpu" else 0
        terms["projector"] = NOTHING.plus(round(projector_mib(beside.projector_size) * MIB), place)
    if beside.drafter is not None:
        _add_drafter(terms, beside, shape, settings)
    devices, host = _by_place(terms)
    shares = residues_mib(len(devices))
    devices = tuple(_tidy(found | {"process": share}) for found, share in zip(devices, shares, strict=True))
    detail = _host_detail(shape, settings, _checkpoint_bytes(shape, settings))
    return Estimate(
        architecture=shape.architecture,
        devices=devices,
        host=_tidy(host | {"process": sum(detail.values())}),
        host_detail=detail,
        slot_context=window.cells,
        known=shape.known,
        compute_checked=is_known(shape),
        mtp=bool(shape.mtp_layers),
        trained_context=shape.trained_context,
        shape=shape,
    )


def _model_terms(header: Header, shape: Shape, settings: Settings, window: Window) -> dict[str, Split]:
    """The terms of the model itself; rows of logits that the host keeps are part of its compute term."""
    weights, draft_weights = weight_bytes(header, shape, settings)
    return {
        "weights": weights + Split((0,) * settings.places),
        "kv-cache": kv_bytes(shape, settings, window),
        "recurrent-state": recurrent_bytes(shape, settings),
        "draft-weights": draft_weights,
        "draft-kv-cache": draft_kv_bytes(shape, settings, window),
        "compute": (
            target_buffers(header, shape, settings, window)
            + reduction_bytes(shape, settings, window)
            + Split(host=logit_bytes(shape, settings))
        ),
        "draft-compute": (
            draft_buffers(header, shape, settings, window) + Split(host=draft_output_bytes(shape, settings))
        ),
    }


def _by_place(terms: dict[str, Split]) -> tuple[tuple[dict[str, float], ...], dict[str, float]]:
    """MiB by card and term, and on the host."""
    cards = max(len(split.cards) for split in terms.values())
    devices = tuple({term: split.on(card) / MIB for term, split in terms.items()} for card in range(cards))
    return devices, {term: split.host / MIB for term, split in terms.items()}


def _tidy(terms: dict[str, float]) -> dict[str, float]:
    return {term: terms[term] for term in TERMS if terms.get(term)}


def _check(shape: Shape, settings: Settings) -> None:
    if settings.mtp and not shape.mtp_layers:
        raise RigError(
            what="speculation draft-mtp needs an MTP head, and the model's file has none",
            fix="use a file with an MTP head (nextn_predict_layers), or another kind of speculation",
        )
    if settings.places > 1 and settings.split_mode == "tensor" and shape.architecture in UNCUT:
        raise RigError(
            what=f"the engine does not split the architecture {shape.architecture} by tensors",
            fix="set split-mode: layer",
        )
    if is_quantised(settings.cache_v) and not settings.flash_attention:
        raise RigError(
            what=f"a V cache in {settings.cache_v} needs flash attention",
            fix="set flash-attention: on, or kv-cache.v: f16",
        )


def _checkpoint_bytes(shape: Shape, settings: Settings) -> int:
    """Bytes of one context checkpoint: a slot's recurrent state, and the cells of its sliding layers.

    Source: ``server_slot`` checkpoints in tools/server/server-context.cpp, which keep the partial state only.
    """
    size = state_bytes(shape)
    if shape.window:
        one_slot = replace(settings, parallel=1, kv_unified=False, context=max(settings.context, 1), backend="cpu")
        window = cut(one_slot)
        sliding = replace(shape, layers=tuple(layer for layer in shape.layers if layer.sliding))
        size += kv_bytes(sliding, one_slot, window).host
    return size


def _host_detail(shape: Shape, settings: Settings, checkpoint: int) -> dict[str, float]:
    return {
        "base": host_base_mib(settings.backend, shape.vocabulary),
        "checkpoints": settings.parallel * settings.checkpoints * checkpoint / MIB,
        "prompt-cache": float(settings.cache_ram_mib),
    }


def _add_adapters(
    terms: dict[str, Split], adapters: tuple[Header, ...], header: Header, shape: Shape, settings: Settings
) -> None:
    found = adapter_bytes(adapters, header, shape, settings)
    more = found.compute_bytes(cut(settings))
    terms["weights"] += found.weights
    terms["compute"] += Split((more,) * settings.places, 0 if settings.places else more)


def _add_drafter(terms: dict[str, Split], beside: Beside, target: Shape, settings: Settings) -> None:
    """A draft model of its own: its weights, KV and compute under the same window and slots, on one card."""
    if beside.drafter is None:
        return
    check_output(beside.drafter, target, settings, beside.draft_card)
    terms["compute"] += read_rows(beside.drafter, target, settings, cut(settings))
    own = drafter_settings(settings)
    shape = read_shape(beside.drafter)
    _check(shape, own)
    found = _model_terms(beside.drafter, shape, own, cut(own))
    cpu = settings.backend == "cpu"
    names = {
        "weights": "draft-weights",
        "kv-cache": "draft-kv-cache",
        "recurrent-state": "draft-kv-cache",
        "compute": "draft-compute",
    }
    for term, name in names.items():
        split = found[term]
        moved = Split(host=split.host) if cpu else NOTHING.plus(split.device, beside.draft_card).plus(split.host)
        terms[name] += moved
    terms["draft-compute"] += Split(host=reader_output_bytes(beside.drafter, shape, target, own))
