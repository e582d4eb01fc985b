"""What a plan says where the engine's fit tool is asked, whatever the service's own settings are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llamarig.gguf import Header
from llamarig.memory import Settings, read_shape
from llamarig.memory.graph.reserve import is_known, measure
from llamarig.memory.kv import kv_bytes
from llamarig.memory.recurrent import recurrent_bytes
from llamarig.memory.units import MIB
from llamarig.memory.weights import weight_bytes
from llamarig.memory.window import cut
from llamarig.plan.settings import settings_of
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service


@dataclass(frozen=True, slots=True)
class FitColumns:
    """The tool's three columns as computed here, in whole MiB as it rounds them."""

    weights: int
    context: int
    """KV cache and recurrent state."""
    compute: int | None
    """None where the architecture's graph is not known."""

    def __str__(self) -> str:
        compute = "unknown" if self.compute is None else f"{self.compute:,}"
        return f"{self.weights:,} + {self.context:,} + {compute}"


def fit_settings(spec: HostSpec, service: Service) -> Settings:
    """On the CPU backend, without speculation, and a KV cache in parts.

    Source: ``common_fit_print`` in common/fit.cpp, and the flags that tools/fit-params takes.
    """
    own = settings_of(spec, service)
    return Settings(
        context=own.context,
        backend="cpu",
        parallel=own.parallel,
        batch=own.batch,
        ubatch=own.ubatch,
        cache_k=own.cache_k,
        cache_v=own.cache_v,
        flash_attention=own.flash_attention,
        era=own.era,
    )


def fit_columns(spec: HostSpec, service: Service, header: Header) -> FitColumns:
    """What the tool must print for a service, see :func:`columns`.

    Raises :class:`RigError` when model and settings do not go together.
    """
    return columns(header, fit_settings(spec, service))


def columns(header: Header, settings: Settings) -> FitColumns:
    """What the tool must print for a model with these settings, on the CPU backend.

    It wants logits of every token of a pass, a server only of those that it samples. It never maps the file, however
    the service loads it: source as above, where ``use_mmap`` is cleared beside ``no_alloc``.
    """
    shape, settings = read_shape(header), replace(settings, mapped=False)
    window = cut(settings)
    weights, _ = weight_bytes(header, shape, settings)
    context = kv_bytes(shape, settings, window).host + recurrent_bytes(shape, settings).host
    compute = measure(header, shape, settings, window).host // MIB if is_known(shape) else None
    return FitColumns(weights.host // MIB, context // MIB, compute)
