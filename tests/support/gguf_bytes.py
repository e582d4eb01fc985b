"""Composes GGUF files byte by byte, right ones and wrong ones, independently of the code under test."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_FORMS = dict(zip((U8, I8, U16, I16, U32, I32, F32, BOOL, U64, I64, F64), "BbHhIif?Qqd", strict=True))
TYPES = {
    "F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q5_0": (6, 32, 22), "Q8_0": (8, 32, 34),
    "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210), "I8": (24, 1, 1),
    "MXFP4": (39, 32, 17), "NVFP4": (40, 64, 36), "I64": (27, 1, 8),
}  # fmt: skip
"""(number, block, bytes) of the types that composed files use."""


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind: int, value: Any) -> bytes:
    return text(value) if kind == STRING else struct.pack("<" + _FORMS[kind], value)


def pair(key: str | bytes, kind: int, value: Any) -> bytes:
    return text(key) + struct.pack("<I", kind) + scalar(kind, value)


def array(key: str, kind: int, values: Sequence[Any]) -> bytes:
    if kind == STRING:
        body = b"".join(text(value) for value in values)
    else:
        body = struct.pack(f"<{len(values)}{_FORMS[kind]}", *values)
    return text(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + body


@dataclass
class Composed:
    """A file in the making; ``raw_*`` fields replace what would be counted or computed."""

    pairs: list[bytes] = field(default_factory=list)
    tensors: list[tuple[str, str, tuple[int, ...]]] = field(default_factory=list)
    alignment: int = 32
    magic: bytes = b"GGUF"
    version: bytes = struct.pack("<I", 3)
    raw_tensor_count: int | None = None
    raw_pair_count: int | None = None
    raw_offsets: dict[str, int] = field(default_factory=dict)
    raw_type: dict[str, int] = field(default_factory=dict)
    raw_infos: bytes | None = None

    def add(self, key: str, kind: int, value: Any) -> Composed:
        self.pairs.append(pair(key, kind, value))
        return self

    def tensor(self, name: str, kind: str, *dims: int) -> Composed:
        self.tensors.append((name, kind, dims))
        return self

    def size_of(self, kind: str, dims: Iterable[int]) -> int:
        _, block, size = TYPES[kind]
        count = 1
        for dim in dims:
            count *= dim
        return count // block * size

    def header(self) -> bytes:
        """Everything before the data section, padded."""
        counts = (
            len(self.tensors) if self.raw_tensor_count is None else self.raw_tensor_count,
            len(self.pairs) if self.raw_pair_count is None else self.raw_pair_count,
        )
        parts = [self.magic, self.version, struct.pack("<QQ", *counts), *self.pairs]
        offset = 0
        infos = []
        for name, kind, dims in self.tensors:
            place = self.raw_offsets.get(name, offset)
            number = self.raw_type.get(name, TYPES[kind][0])
            infos.append(text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, place))
            end = offset + self.size_of(kind, dims)
            offset = end + -end % self.alignment
        head = b"".join(parts) + (b"".join(infos) if self.raw_infos is None else self.raw_infos)
        return head + bytes(-len(head) % self.alignment) if self.tensors else head

    def data_size(self) -> int:
        end = offset = 0
        for _, kind, dims in self.tensors:
            end = offset + self.size_of(kind, dims)
            offset = end + -end % self.alignment
        return end

    def bytes(self) -> bytes:
        """The whole file, with zeros for weights."""
        return self.header() + bytes(self.data_size())

    def write_sparse(self, path: Path) -> Path:
        """The whole file, its weights a hole."""
        head = self.header()
        with path.open("wb") as stream:
            stream.write(head)
            stream.truncate(len(head) + self.data_size())
        return path


def small() -> Composed:
    """A right little file."""
    composed = Composed()
    composed.add("general.architecture", STRING, "llama").add("llama.block_count", U32, 1)
    composed.pairs.append(array("tokenizer.ggml.tokens", STRING, ["a", "bc", "", "é"]))
    composed.pairs.append(array("tokenizer.ggml.token_type", I32, [1, 1, 1, 1]))
    composed.pairs.append(array("tokenizer.ggml.scores", F32, [0.0] * 2000))
    composed.tensor("token_embd.weight", "F32", 8, 4).tensor("blk.0.attn_q.weight", "Q8_0", 32, 3)
    return composed
