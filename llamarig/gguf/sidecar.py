"""A model's header as a small JSON file, so that a plan needs no model file at hand.

A sidecar is named by the sha256 of the model's content, ``headers/<sha256>.json``, and
holds keys, tensor names, types and dimensions: one tensor a line, so that two of them
can be compared with diff. Offsets are left out: they follow from the order.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from pathlib import Path
from typing import Any

from llamarig.errors import RigError, naming
from llamarig.gguf.header import Header, Omitted, Tensor, Value
from llamarig.gguf.tensor_types import BY_NAME

SCHEMA = 1
MAX_SIZE = 32 << 20
"""Bytes of the biggest sidecar that is read."""
KEPT_STRING = 4096
"""Bytes of a string that is written; chat templates and licences are only counted."""
_MAX_DIMS = 4


def _written(value: Value) -> Any:
    if isinstance(value, Omitted):
        return {"omitted": [value.element, value.length]}
    if isinstance(value, tuple):
        if any(isinstance(item, float) and not math.isfinite(item) for item in value):
            return {"omitted": ["f32", len(value)]}
        return list(value)
    if isinstance(value, str) and len(value) > KEPT_STRING:
        return {"omitted": ["string", len(value.encode())]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"omitted": ["f32", 1]}
    return value


def dump_sidecar(header: Header, model_sha256: str) -> str:
    """The sidecar's text; the same header always gives the same text."""
    head = {
        "schema": SCHEMA,
        "model-sha256": model_sha256,
        "gguf-version": header.version,
        "alignment": header.alignment,
        "data-start": header.data_start,
        "data-size": header.data_size,
        "shards": header.shards,
        "metadata": {key: _written(value) for key, value in header.metadata.items()},
    }
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    rows = ",\n".join(
        json.dumps([tensor.name, tensor.type, *tensor.dims], ensure_ascii=False, separators=(",", ":"))
        for tensor in header.tensors
    )
    return f'{text[:-1]},"tensors":[\n{rows}\n]}}\n'


def write_sidecar(header: Header, model_sha256: str, directory: Path) -> Path:
    """Write ``<directory>/<sha256>.json`` in one step and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{model_sha256}.json"
    temporary = directory / f".{model_sha256}.{secrets.token_hex(8)}"
    try:
        with naming(path), temporary.open("x", encoding="utf-8") as stream:
            stream.write(dump_sidecar(header, model_sha256))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    temporary.replace(path)
    return path


def load_sidecar(path: Path, *, model_sha256: str | None = None, sidecar_sha256: str | None = None) -> Header:
    """Read a sidecar and check it: its own hash when given, whose model it is, and every field.

    Raises :class:`RigError` when it belongs to another model, was edited, or is not a sidecar.
    """
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_SIZE + 1)
    except OSError as error:
        raise RigError(what="cannot read the header sidecar", where=str(path), why=error.strerror or "") from error
    if len(raw) > MAX_SIZE:
        raise _bad(path, f"it is bigger than {MAX_SIZE:,} bytes")
    if sidecar_sha256 is not None and hashlib.sha256(raw).hexdigest() != sidecar_sha256:
        raise _bad(path, "its sha256 is not the one that the spec pins")
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _bad(path, f"it is not JSON: {error}") from error
    header, said = _parse(data, path)
    wanted = path.stem if model_sha256 is None else model_sha256
    if said != wanted:
        raise _bad(path, f"it belongs to the model {said!r:.80}")
    return header


def _bad(path: Path, why: str) -> RigError:
    return RigError(
        what="the header sidecar is not usable", where=str(path), why=why, fix="let `llamarig lock` write it again"
    )


def _count(data: dict[str, Any], key: str) -> int:
    value = data[key]
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{key} is not a size")
    return value


def _parse(data: Any, path: Path) -> tuple[Header, str]:
    try:
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema {data['schema']!r:.20} is not {SCHEMA}")
        sizes = [_count(data, key) for key in ("gguf-version", "alignment", "data-start", "data-size", "shards")]
        version, alignment, data_start, data_size, shards = sizes
        if not alignment or alignment & (alignment - 1) or not shards:
            raise ValueError("alignment or shards make no sense")
        metadata = {str(key): _value(value) for key, value in data["metadata"].items()}
        tensors, total = _tensors(data["tensors"], alignment)
        said = str(data["model-sha256"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _bad(path, f"{type(error).__name__}: {error!s:.200}") from error
    header = Header(version, metadata, tensors, alignment, data_start, data_size, shards)
    if total > data_size:
        raise _bad(path, "its tensors are bigger than its data section")
    return header, said


def _value(value: Any) -> Value:
    if isinstance(value, (int, float, bool, str)):
        return value
    if isinstance(value, list):
        if not all(isinstance(item, (int, float, bool)) for item in value):
            raise ValueError("an array holds something that is not a number")
        return tuple(value)
    element, length = value["omitted"]
    if not isinstance(element, str) or type(length) is not int or length < 0:
        raise ValueError("an omitted value makes no sense")
    return Omitted(element, length)


def _tensors(rows: Any, alignment: int) -> tuple[tuple[Tensor, ...], int]:
    """The tensors and the sum of their sizes, in one pass: a fleet's plan reads a thousand sidecars.

    A model has few shapes of tensors, one for each place in a layer: each is checked once a file.
    """
    tensors, names = [], set()
    known: dict[tuple[Any, ...], tuple[tuple[int, ...], int, int]] = {}
    offset = total = 0
    for name, *kind_and_dims in rows:
        key = tuple(kind_and_dims)
        shape = known.get(key)
        if shape is None:
            shape = known[key] = _shape(name, key, alignment)
        if type(name) is not str or name in names:
            raise ValueError(f"the tensor {name!r:.80} is there twice, or has no name")
        names.add(name)
        dims, size, padded = shape
        tensors.append(Tensor(name, key[0], dims, offset, size))
        offset += padded
        total += size
    return tuple(tensors), total


def _shape(name: object, key: tuple[Any, ...], alignment: int) -> tuple[tuple[int, ...], int, int]:
    """Dimensions, size, and size with padding, of a tensor of this type and these dimensions."""
    kind, *dims = key
    stored = BY_NAME.get(kind)
    if stored is None or not 0 < len(dims) <= _MAX_DIMS:
        raise ValueError(f"the tensor {name!r:.80} makes no sense")
    elements = 1
    for dim in dims:
        if type(dim) is not int or dim <= 0:
            raise ValueError(f"the tensor {name!r:.80} has the dimensions {dims!r:.80}")
        elements *= dim
    if dims[0] % stored.block:
        raise ValueError(f"the tensor {name!r:.80} has rows that blocks do not divide")
    size = elements // stored.block * stored.size
    return tuple(dims), size, size + -size % alignment
