"""Headers of GGUF files: read, checked, kept beside the specs; never a weight."""

from __future__ import annotations

from llamarig.gguf.cursor import HeaderTruncatedError
from llamarig.gguf.find import default_cache, find_header
from llamarig.gguf.header import Header, Omitted, Tensor, Value
from llamarig.gguf.reader import read_header
from llamarig.gguf.shards import merge, read_shards, shard_paths
from llamarig.gguf.sidecar import dump_sidecar, load_sidecar, write_sidecar

__all__ = [
    "Header",
    "HeaderTruncatedError",
    "Omitted",
    "Tensor",
    "Value",
    "default_cache",
    "dump_sidecar",
    "find_header",
    "load_sidecar",
    "merge",
    "read_header",
    "read_shards",
    "shard_paths",
    "write_sidecar",
]
