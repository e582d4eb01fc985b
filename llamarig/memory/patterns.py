"""Which layers of a model slide, keep a state, keep an indexer: the per-layer lists of the engine's hparams."""

from __future__ import annotations

from llamarig.errors import RigError
from llamarig.gguf.header import Header
from llamarig.memory import families

_LONG_CONTEXT = 1 << 20
"""Trained tokens from which glm-dsa shares its indexers when the file does not list them."""
_FIRST_OWN, _OWN_PERIOD = 2, 4
"""Then the first layers have their own, and every so many after them; source: GLM_5_2_DEFAULT_INDEXER_TYPES."""


def listed(header: Header, key: str, layers: int) -> tuple[int, ...] | None:
    """The values under ``key`` layer by layer; None unless the file lists them."""
    if isinstance(header.metadata.get(header.architecture + key), tuple):
        return header.per_layer(key, layers)
    return None


def window(header: Header, trunk: int) -> int:
    """Tokens of the sliding window; 0 when nothing slides."""
    arch = header.architecture
    said = header.integer(".attention.sliding_window", -1)
    if arch in families.LISTED or arch in families.COMPRESSED or arch == "lfm2":
        return max(said, 0)
    rule = families.SLIDING.get(arch)
    if rule is None or families.SLIDING_IN.get(arch, trunk) != trunk:
        return 0
    if rule.fixed is not None:
        return 0 if said == 0 or (said < 0 and rule.window is None) else rule.fixed
    return max(said, 0) if said >= 0 else rule.window or 0


def sliding(header: Header, trunk: int, layers: int, recurrent: list[bool]) -> list[bool]:
    """Which layers slide; MTP layers do where the file says so.

    Source: ``set_swa_pattern`` in src/llama-hparams.cpp.
    """
    arch = header.architecture
    key = ".attention.sliding_window_pattern"
    if not window(header, trunk):
        return [False] * layers
    if arch in families.COMPRESSED:
        return [True] * layers
    if arch == "lfm2":
        return [not state for state in recurrent]
    if arch in families.LISTED:
        return _filled(header.per_layer(key, min(trunk, layers)), header, key, layers)
    rule = families.SLIDING[arch]
    values = listed(header, key, trunk)
    if values is not None and rule.listed:
        return [bool(value) for value in values] + [False] * (layers - trunk)
    period = rule.period if values is not None else header.integer(key, rule.period)
    return [number < trunk and _slides(number, period, full_first=rule.full_first) for number in range(layers)]


def _filled(values: tuple[int, ...], header: Header, key: str, layers: int) -> list[bool]:
    """The trunk's values and, where the file lists more, those of the MTP layers."""
    more = header.metadata.get(header.architecture + key)
    every = more[:layers] if isinstance(more, tuple) else values
    return [bool(value) for value in every] + [False] * (layers - len(every))


def _slides(number: int, period: int, *, full_first: bool) -> bool:
    if period == 0:
        return True
    return number % period != 0 if full_first else number % period < period - 1


def recurrent(header: Header, trunk: int, layers: int, kv_heads: tuple[int, ...], ff: tuple[int, ...]) -> list[bool]:
    """Which layers keep a state: ``is_recr_impl`` of each architecture."""
    arch = header.architecture
    if arch in families.INTERVAL:
        values = listed(header, ".attention.recurrent_layers", layers)
        if values is not None:
            return [bool(value) for value in values]
        interval = header.integer(".full_attention_interval", families.INTERVAL[arch])
        if interval == 0:
            raise RigError(what=f"the header claims attention in every 0th layer ({arch}.full_attention_interval)")
        return [number < trunk and (number + 1) % interval != 0 for number in range(layers)]
    if arch.startswith("nemotron_h"):
        return [number < trunk and kv_heads[number] == 0 and ff[number] == 0 for number in range(layers)]
    if arch in families.BY_KV_HEADS:
        return [number < trunk and kv_heads[number] == 0 for number in range(layers)]
    return [arch in families.BOTH or arch in families.RECURRENT] * layers


def attends(header: Header, kept: int, layers: int, states: list[bool], ff: tuple[int, ...]) -> list[bool]:
    """Which layers keep K and V; the first ``kept`` at most."""
    arch = header.architecture
    if arch in families.CACHELESS or arch in families.BORROWING:
        return [False] * layers
    keeps = [(not state or arch in families.BOTH) and number < kept for number, state in enumerate(states)]
    if arch.startswith("nemotron_h"):
        return [own and ff[number] == 0 for number, own in enumerate(keeps)]
    return keeps


def indexed(header: Header, trunk: int, layers: int) -> list[bool]:
    """Which layers keep keys of an indexer; source: the filters of ``create_memory`` in src/llama-model.cpp."""
    arch = header.architecture
    if arch not in families.INDEXED:
        return [False] * layers
    if arch == "minimax-m3":
        first = header.integer(".leading_dense_block_count", 0)
        return [number >= first for number in range(layers)]
    own = [True] * layers
    if arch == "glm-dsa":
        values = listed(header, ".attention.indexer.types", trunk)
        if values is not None:
            own = [bool(value) for value in values] + [False] * (layers - trunk)
        elif header.integer(".context_length", 0) >= _LONG_CONTEXT:
            own = [number < _FIRST_OWN or (number - _FIRST_OWN) % _OWN_PERIOD == 0 for number in range(layers)]
    return [mine and number < trunk for number, mine in enumerate(own)]
