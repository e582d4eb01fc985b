"""All terms of one server together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from llamarig.errors import RigError
from llamarig.gguf.header import Header
from llamarig.memory import families
from llamarig.memory.compute import compute_bytes, host_compute_bytes
from llamarig.memory.draft_compute import draft_compute_bytes
from llamarig.memory.draft_kv import draft_kv_bytes
from llamarig.memory.kv import kv_bytes
from llamarig.memory.logits import logit_bytes
from llamarig.memory.process import CUDA_RESIDUE_MIB, host_base_mib
from llamarig.memory.projector import projector_mib
from llamarig.memory.recurrent import recurrent_bytes, state_bytes
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape, read_shape
from llamarig.memory.terms import TERMS
from llamarig.memory.units import MIB, is_quantised
from llamarig.memory.weights import weight_bytes
from llamarig.memory.window import cut


@dataclass(frozen=True, slots=True)
class Estimate:
    """MiB of one server by place and term; terms of 0 are left out."""

    architecture: str
    device: dict[str, float]
    """On the card; empty for the CPU backend."""
    host: dict[str, float]
    """In the host's RAM."""
    host_detail: dict[str, float]
    """What the host's ``process`` term is made of: ``base``, ``checkpoints``, ``prompt-cache``."""
    slot_context: int
    """Tokens that one slot can hold, as the server reports them."""
    known: bool
    """Whether the architecture's layout is known; if not, everything here is a guess by plain attention."""
    compute_checked: bool
    """Whether the compute terms of this architecture were compared with the engine."""
    mtp: bool
    """Whether the file has an MTP head."""
    trained_context: int = 0
    shape: Shape | None = field(default=None, compare=False)

    @property
    def device_mib(self) -> float:
        """MiB on the card."""
        return sum(self.device.values())

    @property
    def host_mib(self) -> float:
        """MiB in RAM."""
        return sum(self.host.values())


def estimate(
    header: Header,
    settings: Settings,
    *,
    drafter: Header | None = None,
    projector_size: int | None = None,
    projector_here: bool = True,
) -> Estimate:
    """Estimate the memory of one server.

    ``drafter`` is the header of a separate draft model, ``projector_size`` the bytes of the
    projector's file, counted on the same card when ``projector_here``. Raises :class:`RigError` when settings
    and model do not go together.
    """
    shape = read_shape(header)
    _check(shape, settings)
    window = cut(settings)
    weights, draft_weights = weight_bytes(header, shape, settings)
    kv = kv_bytes(shape, settings, window)
    state = recurrent_bytes(shape, settings)
    draft_kv = draft_kv_bytes(shape, settings, window)
    compute = compute_bytes(shape, settings, window)
    draft_compute = draft_compute_bytes(shape, settings, window)
    device = {
        "weights": weights.device / MIB,
        "kv-cache": kv.device / MIB,
        "recurrent-state": state.device / MIB,
        "draft-weights": draft_weights.device / MIB,
        "draft-kv-cache": draft_kv.device / MIB,
    }
    host = {
        "weights": weights.host / MIB,
        "kv-cache": kv.host / MIB,
        "recurrent-state": state.host / MIB,
        "draft-weights": draft_weights.host / MIB,
        "draft-kv-cache": draft_kv.host / MIB,
    }
    outputs = logit_bytes(shape, settings) / MIB
    if settings.backend == "cpu":
        host |= {"compute": compute / MIB + outputs, "draft-compute": draft_compute / MIB}
    else:
        device |= {"compute": compute / MIB, "draft-compute": draft_compute / MIB, "process": CUDA_RESIDUE_MIB}
        beside = host_compute_bytes(shape, settings, window) / MIB
        host |= {"compute": beside + outputs, "draft-compute": beside if draft_compute else 0.0}
    if projector_size is not None:
        place = host if settings.backend == "cpu" else device
        if projector_here:
            place["projector"] = projector_mib(projector_size)
    if drafter is not None:
        _add_drafter(device, host, drafter, settings)
    detail = _host_detail(shape, settings, _checkpoint_bytes(shape, settings))
    host["process"] = sum(detail.values())
    return Estimate(
        architecture=shape.architecture,
        device=_tidy(device),
        host=_tidy(host),
        host_detail=detail,
        slot_context=window.cells,
        known=shape.known,
        compute_checked=shape.architecture in families.EXACT_COMPUTE,
        mtp=bool(shape.mtp_layers),
        trained_context=shape.trained_context,
        shape=shape,
    )


def _tidy(terms: dict[str, float]) -> dict[str, float]:
    return {term: terms[term] for term in TERMS if terms.get(term)}


def _check(shape: Shape, settings: Settings) -> None:
    if settings.mtp and not shape.mtp_layers:
        raise RigError(
            what="speculation draft-mtp needs an MTP head, and the model's file has none",
            fix="use a file with an MTP head (nextn_predict_layers), or another kind of speculation",
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


def _add_drafter(device: dict[str, float], host: dict[str, float], drafter: Header, settings: Settings) -> None:
    """A draft model of its own: its weights, KV and compute under the same window and slots."""
    own = replace(
        settings,
        cache_k=settings.draft_k,
        cache_v=settings.draft_v,
        speculation=None,
        n_max=0,
        ngram_default=False,
        checkpoints=0,
        cache_ram_mib=0,
        gpu_layers=None,
    )
    draft = estimate(drafter, own)
    for place, terms in ((device, draft.device), (host, draft.host)):
        for term, name in (("weights", "draft-weights"), ("compute", "draft-compute")):
            place[name] = place.get(name, 0.0) + terms.get(term, 0.0)
        caches = terms.get("kv-cache", 0.0) + terms.get("recurrent-state", 0.0)
        place["draft-kv-cache"] = place.get("draft-kv-cache", 0.0) + caches
