"""What the head of a GGUF file says: its keys and its tensors, without any weight."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

from llamarig.errors import RigError

Scalar: TypeAlias = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Omitted:
    """A value whose content was skipped; its element type and length are still known."""

    element: str
    length: int
    """Elements of an array, or bytes of a string."""


Value: TypeAlias = Scalar | tuple[int | float | bool, ...] | Omitted
"""A key's value: small arrays of numbers are kept, everything big is :class:`Omitted`."""


class Tensor(NamedTuple):
    """One tensor: its name, storage type, dimensions (fastest first) and place in the data section."""

    name: str
    type: str
    dims: tuple[int, ...]
    offset: int
    """Bytes from the start of the data section (of its own shard)."""
    size: int
    """Bytes of the tensor's data, without padding."""


_LARGEST = (1 << 32) - 1
"""Counts are uint32 in the engine (``llama_hparams``)."""


def _counted(key: str, value: int) -> int:
    if 0 <= value <= _LARGEST:
        return value
    raise RigError(
        what=f"the model's header has {key!r} that counts nothing: {value}",
        why="a dimension is a whole number from 0 to 2^32 - 1",
        fix="use a file that the engine can load",
    )


@dataclass(frozen=True)
class Header:
    """The head of a GGUF file, or of all shards of one model taken together."""

    version: int
    metadata: dict[str, Value]
    tensors: tuple[Tensor, ...]
    alignment: int
    data_start: int
    """Bytes before the data section; summed over the shards of a split model."""
    data_size: int
    """Bytes from the start of the data section to the end of the last tensor, summed over shards."""
    shards: int = field(default=1)
    composed: bool = field(default=False)
    """Whether nobody read it from a file: made of a model's dimensions and a file's bytes."""
    embedding_assumed: bool = field(default=False)
    """Whether the token embedding of a composed header has a type that nobody published."""

    @property
    def architecture(self) -> str:
        """``general.architecture``; empty when the file does not say."""
        name = self.metadata.get("general.architecture", "")
        return name if isinstance(name, str) else ""

    @property
    def name(self) -> str:
        """``general.name``, or the architecture."""
        name = self.metadata.get("general.name", "")
        return name if isinstance(name, str) and name else self.architecture

    @cached_property
    def by_name(self) -> dict[str, Tensor]:
        """Tensors by name."""
        return {tensor.name: tensor for tensor in self.tensors}

    @cached_property
    def block_tensors(self) -> dict[int, frozenset[str]]:
        """Names within each block (``attn_q.weight``) by the block's number."""
        found: dict[int, set[str]] = {}
        for tensor in self.tensors:
            _, number, name = (*tensor.name.split(".", 2), "", "")[:3]
            if tensor.name.startswith("blk.") and number.isdecimal():
                found.setdefault(int(number), set()).add(name)
        return {number: frozenset(names) for number, names in found.items()}

    @property
    def minimum_size(self) -> int:
        """Bytes that the file, or all shards together, must have at least."""
        return self.data_start + self.data_size

    @property
    def maximum_size(self) -> int:
        """Bytes that a file of this header has at most: the last tensor may be padded."""
        return self.minimum_size + self.shards * (self.alignment - 1)

    def is_whole(self, size: int) -> bool:
        """Whether ``size`` bytes hold every tensor."""
        return self.minimum_size <= size

    def require_size(self, size: int, where: str = "") -> None:
        """Raise :class:`RigError` unless a file of ``size`` bytes is exactly what the header describes."""
        if not self.is_whole(size):
            raise RigError(
                what=f"the file is not whole: {size:,} bytes, and its tensors end at {self.minimum_size:,}",
                where=where,
                why=f"{self.minimum_size - size:,} bytes are missing; the download or copy broke off",
                fix="fetch the file again",
            )
        if size > self.maximum_size:
            raise RigError(
                what=f"the file is longer than its header says: {size:,} bytes, and its tensors end at "
                f"{self.minimum_size:,}",
                where=where,
                why="it grew after it was written, or something was appended to it",
                fix="fetch the file again and compare its sha256 with the publisher's",
            )

    def integer(self, key: str, default: int | None = None) -> int:
        """The whole number under ``key``; ``<arch>.`` is put before a key that starts with a dot.

        Raises :class:`RigError` when it is missing without a default, not a whole number, negative or beyond 32 bits.
        """
        full = self.architecture + key if key.startswith(".") else key
        value = self.metadata.get(full)
        if value is None and default is not None:
            return default
        if isinstance(value, int) and not isinstance(value, bool):
            return _counted(full, value)
        if value is None:
            raise RigError(what=f"the model's header has no key {full!r}", fix="use a file made by a current converter")
        raise RigError(what=f"the model's header has {full!r} that is not a whole number: {value!r:.80}")

    def per_layer(self, key: str, layers: int, default: int | None = None) -> tuple[int, ...]:
        """The whole numbers under ``key`` for each layer; one number stands for all of them."""
        full = self.architecture + key if key.startswith(".") else key
        value = self.metadata.get(full)
        if not isinstance(value, tuple):
            return (self.integer(key, default),) * layers
        if len(value) < layers or not all(isinstance(item, int) for item in value):
            raise RigError(
                what=f"the model's header gives {full!r} for {len(value)} layers, and the model has {layers}",
                fix="use a file made by a current converter",
            )
        return tuple(_counted(full, int(item)) for item in value[:layers])

    @property
    def promised_shards(self) -> int:
        """Files that the model is split over, as it says itself (``split.count``); 1 when it is not split."""
        return max(self.integer("split.count", 1), 1)

    def require_all_shards(self, where: str = "") -> None:
        """Raise :class:`RigError` when this is the header of some shards of a model only."""
        if self.shards < self.promised_shards:
            raise RigError(
                what=f"the model is not whole: {self.shards} of {self.promised_shards} shards",
                where=where,
                why="its header names more files (split.count), and only their names tell them apart",
                fix="name the files NAME-00001-of-00003.gguf and so on, as they were published, and keep all together",
            )

    @property
    def vocabulary(self) -> int:
        """Tokens in the vocabulary: the token list's length, or the output's rows; 0 when there is none."""
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        if isinstance(tokens, Omitted):
            return tokens.length
        for name in ("output.weight", "token_embd.weight"):
            tensor = self.by_name.get(name)
            if tensor is not None and len(tensor.dims) > 1:
                return tensor.dims[1]
        return 0
