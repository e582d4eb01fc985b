"""The parts of recurrent layers: states read and written, Gated DeltaNet, Mamba and short convolutions.

Source: ``build_rs`` in src/llama-graph.cpp, src/models/delta-net-base.cpp and src/models/mamba-base.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llamarig.errors import RigError
from llamarig.memory import families
from llamarig.memory.graph import blocks, ops
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.chunks import chunked, is_fused
from llamarig.memory.graph.tensors import Tensor, stored
from llamarig.memory.units import F32_BYTES


@dataclass(frozen=True, slots=True)
class Sizes:
    """Dimensions of a state-space layer."""

    state: int
    inner: int
    groups: int
    heads: int
    """Heads of Mamba-2 and of DeltaNet's values; the rank of dt in Mamba-1."""
    kernel: int

    @property
    def channels(self) -> int:
        """Channels of the convolution."""
        return self.inner + 2 * self.groups * self.state


def sizes(b: Builder) -> Sizes:
    """Dimensions of the model's state-space layers.

    Raises :class:`RigError` for numbers that the engine's own assertions refuse.
    """
    header, arch = b.header, b.shape.architecture
    found = Sizes(
        state=header.integer(".ssm.state_size"),
        inner=header.integer(".ssm.inner_size"),
        groups=header.integer(".ssm.group_count", 0),
        heads=header.integer(".ssm.time_step_rank"),
        kernel=header.integer(".ssm.conv_kernel"),
    )
    divisors = [found.state, found.kernel, found.heads] + ([] if arch in _UNGROUPED else [found.groups])
    whole = arch in _UNGROUPED or not found.heads or found.inner % found.heads == 0
    if not found.inner or not all(divisors) or not whole:
        raise RigError(
            what=f"the header's {arch}.ssm numbers make no layer: {found.inner} elements in {found.heads} heads and "
            f"{found.groups} groups, states of {found.state}, a convolution over {found.kernel}",
            fix="use a file that the engine can load",
        )
    return found


_UNGROUPED = frozenset({"mamba", "jamba"})
"""Mamba-1: no groups, and the number of heads is the rank of dt."""


@dataclass(slots=True)
class States:
    """The inputs of all recurrent layers (``llm_graph_input_rs``)."""

    ids: Tensor
    """Which copy of the state each slot goes on from."""
    moved: Tensor
    """States beside those of the pass's slots that are moved: none here, but a tensor of no bytes takes its turn."""


def state_inputs(b: Builder) -> States:
    """Numbers of the state copies to read (``build_rs_inp``)."""
    copies = b.input("i32", b.work.sequences)
    return States(
        ops.view(copies, (b.work.sequences, 1, 1, 1), packed=True), ops.view(copies, (0, 1, 1, 1), packed=True, size=0)
    )


def snapshots(b: Builder) -> int:
    """Snapshots that this pass writes beside the state."""
    return b.work.snapshots if b.shape.architecture in families.ROLLBACK else 0


def _per_slot(b: Builder) -> int:
    return b.tokens // b.work.sequences


def state_cache(b: Builder, block: int, elements: int) -> Tensor:
    """All copies of one layer's state."""
    rows = b.work.sequences * (1 + snapshots(b))
    size = rows * elements * F32_BYTES
    return stored(b.placement.of(block), (elements, rows, 1, 1), size, kind="f32", weight=False)


def read(
    b: Builder, inputs: States, cache: Tensor, get_rows: Callable[[Tensor, Tensor], Tensor] = ops.get_rows
) -> Tensor:
    """Clear the copy of new slots, then read each slot's state (``build_rs``); ``get_rows`` may compute with it."""
    states = ops.reshape(cache, *cache.extent)
    cleared = ops.view(states, (cache.extent[0], 1, 1, 1), op="scale", packed=True)
    b.expand(cleared)
    result = b.expand(get_rows(states, inputs.ids))
    write(b, ops.get_rows(states, inputs.moved), cache)
    return result


def write(b: Builder, source: Tensor, cache: Tensor) -> None:
    """Copy into the cache."""
    target = ops.view(cache, source.extent)
    copied = ops.view(target, source.extent, op="cpy")
    copied.inputs = [source, target]
    b.expand(copied)


def convolve(b: Builder, inputs: States, block: int, stream: Tensor, size: Sizes) -> Tensor:
    """State of the convolution, then the stream, channel by channel; the newest columns are kept.

    ``stream`` is (channels, tokens of a slot, slots). Source: ``build_conv_state``.
    """
    columns = size.kernel - 1
    cache = state_cache(b, block, columns * size.channels)
    past = ops.reshape(read(b, inputs, cache), columns, size.channels, b.work.sequences)
    joined = ops.concat(past, ops.transpose(stream))
    for _ in range(min(1 + snapshots(b), _per_slot(b)) if snapshots(b) else 1):
        write(b, ops.view(joined, (columns, size.channels, b.work.sequences, 1)), cache)
    return joined


def short_convolution(joined: Tensor, kernel: Tensor) -> Tensor:
    """``ggml_ssm_conv``: (channels, tokens of a slot, slots)."""
    columns, channels, slots, _ = joined.extent
    return Tensor("ssm_conv", "f32", (channels, columns - kernel.extent[0] + 1, slots, 1), (joined, kernel))


def delta_net(  # noqa: PLR0913, PLR0917 - as many as the engine's function has
    b: Builder,
    cache: Tensor,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    gate: Tensor,
    beta: Tensor,
    state: Tensor,
) -> Tensor:
    """The fused operation, or its parts, and the copies of its states (``build_recurrent_attn``)."""
    if not is_fused(b):
        output, state = chunked(query, keys, values, gate, beta, state)
        write(b, state, cache)
        return output
    width, heads, tokens, slots = values.extent
    kept = 1 + snapshots(b)
    extent = (width * heads, tokens * slots + kept * width * slots, 1, 1)
    result = Tensor("gated_delta_net", "f32", extent, (query, keys, values, gate, beta, state))
    output = ops.view(result, (width, heads, tokens, slots))
    write(b, ops.view(result, (width * width * heads, slots, min(tokens, kept), 1)), cache)
    return output


def mamba2(b: Builder, inputs: States, block: int, source: Tensor) -> Tensor:
    """A Mamba-2 layer (``build_mamba2_layer``)."""
    size = sizes(b)
    tokens, slots = _per_slot(b), b.work.sequences
    head = size.inner // size.heads
    cache = state_cache(b, block, size.state * size.inner)
    columns = size.kernel - 1
    conv_cache = state_cache(b, block, columns * size.channels)
    past = ops.reshape(read(b, inputs, conv_cache), columns, size.channels, slots)
    if not b.work.flat_projections:
        source = ops.reshape(source, source.extent[0], tokens, slots)
    rows = 2 * size.inner + 2 * size.groups * size.state + size.heads
    joint = ops.mul_mat(b.matrix(block, "ssm_in", source.extent[0], rows), source)
    if b.work.flat_projections:
        joint = ops.reshape(joint, rows, tokens, slots)
    gate = ops.view(joint, (head, size.heads, tokens, slots))
    stream = ops.view(joint, (size.channels, tokens, slots, 1))
    rates = ops.view(joint, (size.heads, tokens, slots, 1))
    joined = ops.concat(past, ops.transpose(stream))
    kept = min(tokens, 1 + snapshots(b))
    for _ in range(kept):
        write(b, ops.view(joined, (columns, size.channels, slots, 1)), conv_cache)
    stream = short_convolution(joined, b.matrix(block, "ssm_conv1d", size.kernel, size.channels))
    stream = ops.add(stream, b.weight(f"blk.{block}.ssm_conv1d.bias", size.channels, block=block))
    stream = ops.elementwise("unary", stream)
    x = ops.view(stream, (head, size.heads, tokens, slots))
    keys = ops.view(stream, (size.state, size.groups, tokens, slots))
    query = ops.view(stream, (size.state, size.groups, tokens, slots))
    rates = ops.add(ops.cont(rates), b.weight(f"blk.{block}.ssm_dt.bias", size.heads, block=block))
    decay = b.weight(f"blk.{block}.ssm_a", 1, size.heads, block=block)

    def scan(states: Tensor, ids: Tensor) -> Tensor:
        shaped = ops.reshape(states, size.state, head, size.heads, states.extent[1])
        elements = size.inner * tokens * slots + (1 + snapshots(b)) * size.state * size.inner * slots
        return Tensor("ssm_scan", "f32", (elements, 1, 1, 1), (shaped, x, rates, decay, keys, query, ids))

    scanned = read(b, inputs, cache, scan)
    write(b, ops.view(scanned, (size.state * size.inner, slots, kept, 1)), cache)
    result = ops.view(scanned, (head, size.heads, tokens, slots))
    skipped = ops.mul(x, b.weight(f"blk.{block}.ssm_d", 1, size.heads, block=block))
    result = ops.gated(ops.cont(gate), ops.add(result, skipped))
    if b.has(f"blk.{block}.ssm_norm.weight"):
        result = ops.reshape(result, size.inner // size.groups, size.groups, tokens, slots)
        result = blocks.norm(b, result, block)
    matrix = b.matrix(block, "ssm_out", size.inner, b.shape.embedding)
    if b.work.flat_projections:
        return ops.mul_mat(matrix, ops.reshape(result, size.inner, tokens * slots))
    result = ops.mul_mat(matrix, ops.reshape(result, size.inner, tokens, slots))
    return ops.reshape(result, b.shape.embedding, tokens * slots)


def mamba(b: Builder, inputs: States, block: int, source: Tensor) -> Tensor:
    """A Mamba-1 layer (``build_mamba_layer``); it keeps no snapshots."""
    size = sizes(b)
    tokens, slots = _per_slot(b), b.work.sequences
    columns = size.kernel - 1
    conv_cache = state_cache(b, block, columns * size.inner)
    cache = state_cache(b, block, size.state * size.inner)
    past = ops.reshape(read(b, inputs, conv_cache), columns, size.inner, slots)
    source = ops.reshape(source, source.extent[0], tokens, slots)
    joint = ops.mul_mat(b.matrix(block, "ssm_in", source.extent[0], 2 * size.inner), source)
    stream = ops.view(joint, (size.inner, tokens, slots, 1))
    gate = ops.view(joint, (size.inner, tokens, slots, 1))
    joined = ops.concat(past, ops.transpose(stream))
    write(b, ops.view(joined, (columns, size.inner, slots, 1)), conv_cache)
    stream = short_convolution(joined, b.matrix(block, "ssm_conv1d", size.kernel, size.inner))
    stream = ops.add(stream, b.weight(f"blk.{block}.ssm_conv1d.bias", size.inner, block=block))
    stream = ops.elementwise("unary", stream)
    parts = ops.mul_mat(b.matrix(block, "ssm_x", size.inner, size.heads + 2 * size.state), stream)
    rates = ops.view(parts, (size.heads, tokens, slots, 1))
    keys = ops.view(parts, (size.state, 1, tokens, slots))
    query = ops.view(parts, (size.state, 1, tokens, slots))
    if b.has(f"blk.{block}.ssm_dt_norm.weight"):
        rates, keys, query = (blocks.norm(b, part, block) for part in (rates, keys, query))
    rates = ops.mul_mat(b.matrix(block, "ssm_dt", size.heads, size.inner), rates)
    rates = ops.add(rates, b.weight(f"blk.{block}.ssm_dt.bias", size.inner, block=block))
    x = ops.reshape(stream, 1, size.inner, tokens, slots)
    decay = b.weight(f"blk.{block}.ssm_a", size.state, size.inner, block=block)

    def scan(states: Tensor, ids: Tensor) -> Tensor:
        shaped = ops.reshape(states, size.state, 1, size.inner, states.extent[1])
        elements = size.inner * tokens * slots + size.state * size.inner * slots
        return Tensor("ssm_scan", "f32", (elements, 1, 1, 1), (shaped, x, rates, decay, keys, query, ids))

    scanned = read(b, inputs, cache, scan)
    write(b, ops.view(scanned, (size.state * size.inner * slots, 1, 1, 1)), cache)
    result = ops.view(scanned, (size.inner, tokens, slots, 1))
    skipped = ops.mul(stream, b.weight(f"blk.{block}.ssm_d", size.inner, block=block))
    result = ops.gated(ops.cont(gate), ops.add(result, skipped))
    result = ops.mul_mat(b.matrix(block, "ssm_out", size.inner, b.shape.embedding), result)
    return ops.reshape(result, b.shape.embedding, tokens * slots)
