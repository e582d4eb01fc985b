"""Operations as the engine's library shapes them: what each one reads, and the extent of its result.

Every result is packed and, unless said otherwise, f32. Source: the functions of the same names in ggml/src/ggml.c.
"""

from __future__ import annotations

from llamarig.memory.graph.tensors import ELEMENT_BYTES, Extent, Tensor


def view(source: Tensor, extent: Extent, *, op: str = "view", packed: bool = False, size: int = -1) -> Tensor:
    """The same data read as ``extent``; ``packed`` says whether it still lies element behind element.

    ``size`` is from its first byte to its last one; by default that of a part of each of the source's rows.
    """
    tensor = Tensor(op, source.kind, extent, (source,), _reach(source, extent) if size < 0 else size)
    tensor.root = source if source.root is None else source.root
    tensor.lies = source.lies
    tensor.packed = packed
    return tensor


def _reach(source: Tensor, extent: Extent) -> int:
    """Bytes from the first to the last element of a view: what its last row leaves out is beyond it."""
    each = ELEMENT_BYTES.get(source.kind)
    if each is None:
        return source.size
    first, second, third, fourth = extent
    if extent[1:] == source.extent[1:]:
        return source.size - (source.extent[0] - first) * each
    if (third, fourth) == source.extent[1:3]:
        return source.size - (source.extent[0] - first * second) * each
    return first * second * third * fourth * each


def reshape(source: Tensor, first: int, second: int = 1, third: int = 1, fourth: int = 1) -> Tensor:
    """The same packed data with other dimensions."""
    return view(source, (first, second, third, fourth), op="reshape", packed=True)


def permute(source: Tensor, *, to: tuple[int, int, int, int] = (0, 2, 1, 3)) -> Tensor:
    """The same data with its dimensions in another order; dimension i becomes dimension ``to[i]``."""
    extent = [0, 0, 0, 0]
    for number, target in enumerate(to):
        extent[target] = source.extent[number]
    return view(source, (extent[0], extent[1], extent[2], extent[3]), op="permute", size=source.size)


def transpose(source: Tensor) -> Tensor:
    """The same data with its first two dimensions exchanged."""
    first, second, third, fourth = source.extent
    return view(source, (second, first, third, fourth), op="transpose", size=source.size)


def mul_mat(matrix: Tensor, source: Tensor) -> Tensor:
    """``matrix`` times ``source``."""
    _, second, third, fourth = source.extent
    return Tensor("mul_mat", "f32", (matrix.extent[1], second, third, fourth), (matrix, source))


def mul_mat_id(matrices: Tensor, source: Tensor, ids: Tensor) -> Tensor:
    """One matrix of ``matrices`` for each of ``ids``, times ``source``."""
    extent = (matrices.extent[1], ids.extent[0], source.extent[2], 1)
    return Tensor("mul_mat_id", "f32", extent, (matrices, source, ids))


def elementwise(op: str, source: Tensor, *others: Tensor) -> Tensor:
    """A result of the first source's extent: ``add``, ``mul``, ``norm``, ``unary``, ``rope``, ``soft_max``, ..."""
    return Tensor(op, source.kind, source.extent, (source, *others))


def clamp(source: Tensor) -> Tensor:
    """The source within limits, written over it: a view of it that counts as computed."""
    return view(source, source.extent, op="clamp", packed=source.packed)


def add(first: Tensor, second: Tensor) -> Tensor:
    """Sum."""
    return Tensor("add", first.kind, first.extent, (first, second))


def mul(first: Tensor, second: Tensor) -> Tensor:
    """Product, element by element."""
    return Tensor("mul", first.kind, first.extent, (first, second))


def get_rows(source: Tensor, ids: Tensor) -> Tensor:
    """The rows of ``source`` that ``ids`` name."""
    kind = source.kind if source.kind == "i32" else "f32"
    return Tensor("get_rows", kind, (source.extent[0], *ids.extent[:3]), (source, ids))


def set_rows(target: Tensor, rows: Tensor, ids: Tensor) -> Tensor:
    """``target`` with ``rows`` written into it: a view of it that counts as computed."""
    tensor = Tensor("set_rows", target.kind, target.extent, (rows, ids, target), target.size)
    tensor.root = target if target.root is None else target.root
    tensor.lies = target.lies
    return tensor


def cont(source: Tensor, first: int = 0, second: int = 1, third: int = 1, fourth: int = 1) -> Tensor:
    """A packed copy, with dimensions of its own when they are given."""
    return Tensor("cont", source.kind, (first, second, third, fourth) if first else source.extent, (source,))


def cast(source: Tensor, kind: str) -> Tensor:
    """A packed copy in another type."""
    return Tensor("cpy", kind, source.extent, (source,))


def concat(first: Tensor, second: Tensor, dimension: int = 0) -> Tensor:
    """Both, one behind the other in one dimension."""
    extent = list(first.extent)
    extent[dimension] += second.extent[dimension]
    return Tensor("concat", first.kind, (extent[0], extent[1], extent[2], extent[3]), (first, second))


def sum_rows(source: Tensor) -> Tensor:
    """The sum of each row."""
    return Tensor("sum_rows", source.kind, (1, *source.extent[1:]), (source,))


def repeat(source: Tensor, first: int, second: int = 1, third: int = 1, fourth: int = 1) -> Tensor:
    """Copies up to the given dimensions."""
    return Tensor("repeat", source.kind, (first, second, third, fourth), (source,))


def pad_rows(source: Tensor, more: int) -> Tensor:
    """A copy with ``more`` rows behind its own (``ggml_pad`` in the second dimension)."""
    first, second, third, fourth = source.extent
    return Tensor("pad", source.kind, (first, second + more, third, fourth), (source,))


def top_k(source: Tensor, count: int) -> Tensor:
    """The indices of each row's ``count`` greatest values."""
    return Tensor("top_k", "i32", (count, *source.extent[1:]), (source,))


def argsort_top_k(source: Tensor, count: int) -> Tensor:
    """A view of the first ``count`` of all sorted indices."""
    order = Tensor("argsort", "i32", source.extent, (source,))
    return view(order, (count, *source.extent[1:]))


def gated(gate: Tensor, value: Tensor) -> Tensor:
    """Activated gate times value (``ggml_swiglu_split`` and its kin): one new tensor."""
    return Tensor("glu", gate.kind, gate.extent, (gate, value))


def glu(source: Tensor) -> Tensor:
    """Activated half times the other half of each row."""
    return Tensor("glu", source.kind, (source.extent[0] // 2, *source.extent[1:]), (source,))


def flash_attention(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Attention in one operation, of permuted query, keys and values."""
    extent = (values.extent[0], query.extent[2], query.extent[1], query.extent[3])
    return Tensor("flash_attn", "f32", extent, (query, keys, values, mask))
