"""Reads the header of a GGUF file in bounded time and memory, whatever the file holds.

The format and what is refused follow ggml/src/gguf.cpp (``gguf_init_from_reader``, build
10454): what passes here is what the engine loads. Arrays are skipped, their type and
length kept; arrays of numbers with at most :data:`KEPT_ELEMENTS` elements are kept whole,
since per-layer head counts are such arrays.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct
from typing import BinaryIO

from llamarig.errors import RigError
from llamarig.gguf.cursor import Cursor
from llamarig.gguf.header import Header, Omitted, Tensor, Value
from llamarig.gguf.tensor_types import TENSOR_TYPES

KEPT_ELEMENTS = 1024
"""Arrays of numbers up to this length are kept; the engine knows at most 512 layers."""
KEPT_STRING = 256 * 1024
"""Bytes of a string that is kept; a longer one is only counted."""
KEPT_TOTAL = 8 << 20
"""Bytes of all values that are kept together."""
MAX_KEYS = 65_536
MAX_TENSORS = 65_536
MAX_ARRAY_STRINGS = 16_000_000
"""Strings that are walked over in one file, in all its arrays: 64 times a big vocabulary."""
MAX_ARRAY_ELEMENTS = 1 << 30
MAX_NAME = 64
MAX_KEY = 65_535
MAX_DIMS = 4
MAX_ALIGNMENT = 1 << 20
_INT64 = (1 << 63) - 1

_SCALARS: dict[int, tuple[str, Struct]] = {
    0: ("u8", Struct("<B")),
    1: ("i8", Struct("<b")),
    2: ("u16", Struct("<H")),
    3: ("i16", Struct("<h")),
    4: ("u32", Struct("<I")),
    5: ("i32", Struct("<i")),
    6: ("f32", Struct("<f")),
    7: ("bool", Struct("<?")),
    10: ("u64", Struct("<Q")),
    11: ("i64", Struct("<q")),
    12: ("f64", Struct("<d")),
}
_STRING, _ARRAY = 8, 9
_U32, _U64 = Struct("<I"), Struct("<Q")
_TENSOR_TAIL = Struct("<IQ")


def read_header(path: Path | BinaryIO, *, file_size: int | None = None) -> Header:
    """Read the header of the GGUF file at ``path``, or of an open binary stream from its start.

    ``file_size`` is the whole file's size in bytes when the stream holds only a part of it.
    Raises :class:`RigError` for anything that is not a header the engine would load, and
    its subclass :class:`~llamarig.gguf.cursor.HeaderTruncatedError` when the bytes end too early.
    """
    if isinstance(path, Path):
        try:
            with path.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                return _Reader(Cursor(stream, size if file_size is None else file_size, str(path))).read()
        except OSError as error:
            raise RigError(what="cannot read the file", where=str(path), why=error.strerror or str(error)) from error
    if file_size is None:
        file_size = path.seek(0, os.SEEK_END)
        path.seek(0)
    return _Reader(Cursor(path, file_size, str(getattr(path, "name", "stream")))).read()


class _Reader:
    """One pass over a header."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._kept = 0
        self._strings = 0

    def _error(self, what: str, why: str = "", fix: str = "use a file that the engine can load") -> RigError:
        return RigError(what=what, where=self._cursor.where, why=why, fix=fix)

    def read(self) -> Header:
        version, tensors, keys = self._preamble()
        metadata = self._metadata(keys)
        alignment = self._alignment(metadata)
        infos = self._tensors(tensors)
        end = self._cursor.position
        data_start = end + -end % alignment if infos else end
        return Header(version, metadata, infos, alignment, data_start, self._data_size(infos, alignment))

    def _preamble(self) -> tuple[int, int, int]:
        cursor = self._cursor
        magic = cursor.take(min(4, cursor.left), "the magic number")
        if magic != b"GGUF":
            raise self._not_gguf(magic + cursor.take(min(60, cursor.left), "the start of the file"))
        version = int(cursor.unpack(_U32, "the version"))
        if version & 0xFFFF == 0 and version:
            raise self._error("the GGUF file is big-endian", fix="use the little-endian file of the same model")
        if version not in (2, 3):
            raise self._error(f"GGUF version {version} is not supported", "versions 2 and 3 are")
        tensors, keys = cursor.u64("the number of tensors"), cursor.u64("the number of keys")
        if tensors > MAX_TENSORS:
            raise self._error(f"the header claims {tensors:,} tensors, more than {MAX_TENSORS:,}")
        if keys > MAX_KEYS:
            raise self._error(f"the header claims {keys:,} keys, more than {MAX_KEYS:,}")
        return version, tensors, keys

    def _not_gguf(self, start: bytes) -> RigError:
        text = start.lstrip().lower()
        if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
            return self._error(
                "this is a web page saved under a model's name",
                "a login or error page was downloaded instead of the file",
                "fetch the file itself (the `resolve` address of the hub, with access rights)",
            )
        if text.startswith(b"version https://git-lfs"):
            return self._error(
                "this is a Git LFS pointer, not the model", fix="fetch the file itself, or `git lfs pull`"
            )
        return self._error(
            "this is not a GGUF file", f"it starts with {start[:16]!r}, and a GGUF file starts with b'GGUF'"
        )

    def _text(self, what: str, limit: int) -> str:
        length = self._cursor.u64(f"the length of {what}")
        if length > limit:
            raise self._error(f"{what} is {length:,} bytes long, more than {limit:,}")
        raw = self._cursor.take(length, what)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self._error(f"{what} is not UTF-8", str(error)) from error

    def _metadata(self, count: int) -> dict[str, Value]:
        metadata: dict[str, Value] = {}
        for number in range(count):
            key = self._text(f"the name of key {number}", MAX_KEY)
            if not key:
                raise self._error(f"key {number} has no name")
            if key in metadata:
                raise self._error(f"the key {key[:80]!r} is there twice")
            kind = int(self._cursor.unpack(_U32, f"the type of {key[:80]!r}"))
            metadata[key] = self._value(key[:80], kind)
        return metadata

    def _keep(self, size: int) -> bool:
        self._kept += size
        return self._kept <= KEPT_TOTAL

    def _value(self, key: str, kind: int) -> Value:
        what = f"the value of {key!r}"
        if kind in _SCALARS:
            return self._cursor.unpack(_SCALARS[kind][1], what)
        if kind == _STRING:
            return self._string(what)
        if kind == _ARRAY:
            return self._array(what)
        raise self._error(f"{what} has the unknown type {kind}")

    def _string(self, what: str) -> Value:
        length = self._cursor.u64(what)
        if length > KEPT_STRING or not self._keep(length):
            self._cursor.skip(length, what)
            return Omitted("string", length)
        try:
            return self._cursor.take(length, what).decode()
        except UnicodeDecodeError as error:
            raise self._error(f"{what} is not UTF-8", str(error)) from error

    def _array(self, what: str) -> Value:
        kind = int(self._cursor.unpack(_U32, what))
        count = self._cursor.u64(what)
        if count > MAX_ARRAY_ELEMENTS:
            raise self._error(f"{what} claims {count:,} elements, more than {MAX_ARRAY_ELEMENTS:,}")
        if kind == _STRING:
            self._strings += count
            if self._strings > MAX_ARRAY_STRINGS:
                raise self._error(f"the arrays hold more than {MAX_ARRAY_STRINGS:,} strings")
            self._cursor.skip_strings(count, what)
            return Omitted("string", count)
        if kind not in _SCALARS:
            raise self._error(f"{what} is an array of the unknown type {kind}")
        name, form = _SCALARS[kind]
        if count > KEPT_ELEMENTS or not self._keep(count * form.size):
            self._cursor.skip(count * form.size, what)
            return Omitted(name, count)
        raw = self._cursor.take(count * form.size, what)
        return tuple(item[0] for item in form.iter_unpack(raw))

    def _alignment(self, metadata: dict[str, Value]) -> int:
        alignment = metadata.get("general.alignment", 32)
        if isinstance(alignment, bool) or not isinstance(alignment, int):
            raise self._error("general.alignment is not a whole number")
        if not 0 < alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
            raise self._error(f"general.alignment is {alignment}, not a power of two up to {MAX_ALIGNMENT:,}")
        return alignment

    def _tensors(self, count: int) -> tuple[Tensor, ...]:
        seen: set[str] = set()
        infos = []
        for number in range(count):
            name = self._text(f"the name of tensor {number}", MAX_NAME - 1)
            if name in seen:
                raise self._error(f"the tensor {name!r} is there twice")
            seen.add(name)
            infos.append(self._tensor(name))
        return tuple(infos)

    def _tensor(self, name: str) -> Tensor:
        what = f"the tensor {name!r}"
        rank = int(self._cursor.unpack(_U32, what))
        if not 0 < rank <= MAX_DIMS:
            raise self._error(f"{what} has {rank} dimensions, not 1 to {MAX_DIMS}")
        dims = tuple(item[0] for item in _U64.iter_unpack(self._cursor.take(8 * rank, what)))
        number, offset = _TENSOR_TAIL.unpack(self._cursor.take(_TENSOR_TAIL.size, what))
        kind = TENSOR_TYPES.get(number)
        if kind is None:
            raise self._error(f"{what} has the unknown type {number}", "it was removed from the format, or is newer")
        elements = 1
        for dim in dims:
            elements *= dim
            if dim == 0:
                raise self._error(f"{what} has a dimension of 0: {dims}")
            if elements > _INT64:
                raise self._error(f"{what} is too big to be true: {dims}")
        if dims[0] % kind.block:
            raise self._error(f"{what} has rows of {dims[0]} elements, and {kind.name} stores blocks of {kind.block}")
        return Tensor(name, kind.name, dims, offset, elements // kind.block * kind.size)

    def _data_size(self, infos: tuple[Tensor, ...], alignment: int) -> int:
        """Tensors lie one after another in the order of the header; the engine refuses anything else."""
        expected = end = 0
        for tensor in infos:
            if tensor.offset != expected:
                raise self._error(
                    f"the tensor {tensor.name!r} has the offset {tensor.offset:,}, and {expected:,} is its turn",
                    "tensors overlap, have gaps or are not in order",
                )
            end = expected + tensor.size
            expected = end + -end % alignment
            if expected > _INT64:
                raise self._error("the tensors are too big to be true")
        return end
