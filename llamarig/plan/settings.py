"""From a service of a spec to the settings that the memory model knows."""

from __future__ import annotations

from llamarig.memory import Settings
from llamarig.memory.engines import of_build
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service


def settings_of(spec: HostSpec, service: Service) -> Settings:
    """The service's settings in the engine's terms."""
    speculation = service.speculation
    return Settings(
        context=service.context,
        backend=spec.engine.backend if placed_on(spec, service) else "cpu",
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
    )


def placed_on(spec: HostSpec, service: Service) -> str | None:
    """The card that the service's model is on; None for the CPU backend."""
    if spec.engine.backend == "cpu":
        return None
    return service.gpu or (service.gpus[0] if service.gpus else None)


def visible_cards(spec: HostSpec, service: Service) -> tuple[str, ...]:
    """The cards that the process sees, in its own order: its model's, its projector's, its drafter's."""
    card = placed_on(spec, service)
    if card is None:
        return ()
    draft = service.speculation.gpu if service.speculation else None
    return tuple(dict.fromkeys(name for name in (card, service.projector_gpu, draft) if name))
