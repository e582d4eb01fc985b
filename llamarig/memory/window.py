"""How the engine cuts the window: cells per stream, streams, tokens per pass."""

from __future__ import annotations

from dataclasses import dataclass

from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.units import pad


@dataclass(frozen=True, slots=True)
class Window:
    """The window as allocated."""

    cells: int
    """Cells of one stream: tokens that one slot can hold."""
    streams: int
    """1 with a unified KV cache, else one per slot."""
    ubatch: int
    """Tokens of one pass, as far as the window lets them be."""

    def sliding_cells(self, shape: Shape, settings: Settings) -> int:
        """Cells of one stream of a sliding-window layer.

        Source: the constructor of ``llama_kv_cache_iswa`` in src/llama-kv-cache-iswa.cpp.
        """
        slots = settings.parallel if settings.kv_unified else 1
        return pad(min(self.cells, shape.window * slots + self.ubatch))


def cut(settings: Settings) -> Window:
    """Cells, streams and tokens per pass; source: the constructor of ``llama_context`` in src/llama-context.cpp."""
    batch = min(settings.context, settings.batch)
    ubatch = min(batch, settings.ubatch)
    whole = pad(settings.context)
    if settings.kv_unified:
        return Window(whole, 1, ubatch)
    return Window(pad(whole // settings.parallel), settings.parallel, ubatch)
