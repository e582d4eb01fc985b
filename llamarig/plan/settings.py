"""From a service of a spec to the settings that the memory model knows."""

from __future__ import annotations

from llamarig.memory import Settings
from llamarig.memory.engines import of_build
from llamarig.plan.devices import room_of
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service

EVERY_LAYER = 999
"""More layers than any model has."""

_SEVERAL = 2

_WORTH_COPYING = 32
"""Tokens of a pass."""


def settings_of(spec: HostSpec, service: Service) -> Settings:
    """The service's settings in the engine's terms."""
    speculation = service.speculation
    cards = model_cards(spec, service)
    experts = service.experts_on_cpu
    return Settings(
        context=service.context,
        backend=spec.engine.backend if cards else "cpu",
        parallel=service.parallel,
        kv_unified=service.kv_unified,
        batch=service.batch,
        ubatch=service.ubatch,
        cache_k=service.kv_cache.k,
        cache_v=service.kv_cache.v,
        flash_attention=service.flash_attention != "off",
        speculation=speculation.type if speculation else None,
        n_max=speculation.n_max if speculation else 0,
        draft_k=speculation.kv_cache if speculation else "f16",
        draft_v=speculation.kv_cache if speculation else "f16",
        ngram_default=bool(speculation and speculation.ngram_default),
        checkpoints=service.context_checkpoints,
        cache_ram_mib=service.cache_ram_mib,
        gpu_layers=None if service.gpu_layers == "all" else service.gpu_layers,
        attention_rotation=service.environment.get("LLAMA_ATTN_ROT_DISABLE", "0") == "0",
        mapped=service.load_mode in {"auto", "mmap"},
        era=of_build(spec.engine.build_number).era,
        cards=max(len(cards), 1),
        split_mode="tensor" if service.split_mode == "tensor" else "layer",
        tensor_split=shares(spec, service),
        cpu_experts=EVERY_LAYER if experts == "all" else experts,
        overrides=overrides(spec, service),
        op_offload=offloads(service),
    )


def projector_card(spec: HostSpec, service: Service) -> str | None:
    """The card that holds the service's projector; None where the CPU reads images."""
    card = placed_on(spec, service)
    return None if card is None or service.projector_on_cpu else service.projector_gpu or card


def offloads(service: Service) -> bool:
    """Whether a card computes the service's passes with weights that lie in RAM.

    It does from 32 tokens on, or from as many as GGML_OP_OFFLOAD_MIN_BATCH says. Source:
    ``ggml_backend_cuda_reg`` in ggml/src/ggml-cuda/ggml-cuda.cu, ``--no-op-offload`` in common/arg.cpp.
    """
    given = service.environment.get("GGML_OP_OFFLOAD_MIN_BATCH", str(_WORTH_COPYING))
    least = int(given) if given.isascii() and given.isdecimal() else 0
    return service.ubatch >= least and "--no-op-offload" not in service.unsafe_args


def overrides(spec: HostSpec, service: Service) -> tuple[tuple[str, int | None], ...]:
    """Pattern and card of each of the service's tensor overrides; None for the host."""
    cards = model_cards(spec, service)
    pairs = (entry.partition("=") for entry in service.tensor_overrides)
    return tuple((pattern, cards.index(place) if place in cards else None) for pattern, _, place in pairs)


def shares(spec: HostSpec, service: Service) -> tuple[float, ...]:
    """Each card's share of a model on several; empty on one.

    The spec's own, or for layers in proportion to what is usable on each card, and for tensors equal ones. The engine
    would take what happens to be free at its start; with that no plan would hold.
    """
    cards = model_cards(spec, service)
    if len(cards) < _SEVERAL:
        return ()
    if service.tensor_split:
        return tuple(service.tensor_split)
    rooms = [room_of(spec.gpus[card]) for card in cards]
    usable = [float(int(room.usable_mib)) for room in rooms if room is not None and room.usable_mib >= 1]
    return tuple(usable) if service.split_mode == "layer" and len(usable) == len(cards) else (1.0,) * len(cards)


def model_cards(spec: HostSpec, service: Service) -> tuple[str, ...]:
    """The cards that hold the service's model, the first of them ``CUDA0``; none for the CPU backend."""
    if spec.engine.backend == "cpu":
        return ()
    return (service.gpu,) if service.gpu is not None else tuple(service.gpus)


def draft_card(spec: HostSpec, service: Service) -> int:
    """Number of the card that a drafter is put on, in the order of ``visible_cards``.

    One that may use the model's own output matrix is put where that is, on the last card of a model split by layers.
    """
    cards, drafting = visible_cards(spec, service), service.speculation
    if drafting is not None and drafting.gpu in cards:
        return cards.index(drafting.gpu)
    shares_output = drafting is not None and drafting.type in {"eagle3", "dflash"}
    return max(len(model_cards(spec, service)) - 1, 0) if shares_output and service.split_mode == "layer" else 0


def placed_on(spec: HostSpec, service: Service) -> str | None:
    """The first card that the service's model is on; None for the CPU backend."""
    return next(iter(model_cards(spec, service)), None)


def visible_cards(spec: HostSpec, service: Service) -> tuple[str, ...]:
    """The cards that the process sees, in its own order: its model's, its drafter's, its projector's."""
    cards = model_cards(spec, service)
    if not cards:
        return ()
    draft = service.speculation.gpu if service.speculation else None
    return tuple(dict.fromkeys(name for name in (*cards, draft, service.projector_gpu) if name))
