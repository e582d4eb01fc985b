"""A model split over several files: ``NAME-00001-of-00003.gguf`` and so on."""

from __future__ import annotations

import re
from pathlib import Path

from llamarig.errors import RigError
from llamarig.gguf.header import Header, Tensor
from llamarig.gguf.reader import read_header

_NAME = re.compile(r"^(?P<stem>.+)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})\.gguf$")
MAX_SHARDS = 1024


def shard_paths(path: Path) -> list[Path]:
    """The files of the model of which ``path`` is the first one; just ``path`` when it is not split."""
    match = _NAME.match(path.name)
    if match is None:
        return [path]
    count = int(match["count"])
    if not 0 < count <= MAX_SHARDS:
        raise RigError(what=f"the name claims {count} shards, not 1 to {MAX_SHARDS}", where=str(path))
    return [path.with_name(f"{match['stem']}-{number:05}-of-{count:05}.gguf") for number in range(1, count + 1)]


def read_shards(path: Path) -> Header:
    """Read all shards of a model, given its first one, and return them as one header.

    Raises :class:`RigError` when a shard is missing, is not whole, belongs to another split,
    or a tensor is there twice.
    """
    paths = shard_paths(path)
    headers = []
    for each in paths:
        if not each.is_file():
            raise RigError(what="a shard of the model is missing", where=str(each), fix="fetch all shards")
        header = read_header(each)
        header.require_size(each.stat().st_size, str(each))
        headers.append(header)
    return headers[0] if len(headers) == 1 else merge(headers, str(path))


def merge(headers: list[Header], where: str = "") -> Header:
    """One header for the shards of a split model, in order; the first one's keys count.

    Source of the keys: src/llama-model-loader.cpp (``split.no``, ``split.count``, ``split.tensors.count``).
    """
    tensors: list[Tensor] = []
    for number, header in enumerate(headers):
        said = header.integer("split.no", -1), header.integer("split.count", -1)
        if said != (number, len(headers)):
            raise RigError(
                what=f"shard {number + 1} of {len(headers)} says it is number {said[0] + 1} of {said[1]}",
                where=where,
                fix="give the shards of one and the same split, in order",
            )
        tensors.extend(header.tensors)
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise RigError(what="a tensor is in more than one shard", where=where)
    promised = headers[0].integer("split.tensors.count", len(tensors))
    if promised != len(tensors):
        raise RigError(what=f"the shards hold {len(tensors)} tensors, and {promised} are promised", where=where)
    first = headers[0]
    return Header(
        first.version,
        first.metadata,
        tuple(tensors),
        max(header.alignment for header in headers),
        sum(header.data_start for header in headers),
        sum(header.data_size for header in headers),
        shards=len(headers),
    )
