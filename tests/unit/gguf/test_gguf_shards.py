"""Models in several files."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamarig.errors import RigError
from llamarig.gguf import read_shards, shard_paths
from tests.support import gguf_bytes as raw


def write(directory: Path, number: int, *, said: tuple[int, int] | None = None, names: tuple[str, ...] = ()) -> Path:
    no, count = said or (number, 3)
    composed = raw.Composed()
    composed.add("split.no", raw.U16, no).add("split.count", raw.U16, count).add("split.tensors.count", raw.I32, 4)
    if number == 0:
        composed.add("general.architecture", raw.STRING, "llama")
    else:
        for name in names or (f"blk.{number}.a", f"blk.{number}.b"):
            composed.tensor(name, "F32", 16)
    path = directory / f"model-{number + 1:05}-of-00003.gguf"
    path.write_bytes(composed.bytes())
    return path


def test_shards_are_one_header(tmp_path: Path) -> None:
    paths = [write(tmp_path, number) for number in range(3)]
    assert shard_paths(paths[0]) == paths
    header = read_shards(paths[0])
    assert header.architecture == "llama"
    assert [tensor.name for tensor in header.tensors] == ["blk.1.a", "blk.1.b", "blk.2.a", "blk.2.b"]
    assert header.shards == 3
    assert header.minimum_size == sum(path.stat().st_size for path in paths)


def test_a_single_file_is_itself(tmp_path: Path) -> None:
    path = tmp_path / "one.gguf"
    path.write_bytes(raw.small().bytes())
    assert shard_paths(path) == [path]
    assert read_shards(path).shards == 1


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    first = write(tmp_path, 0)
    write(tmp_path, 2)
    with pytest.raises(RigError, match="shard of the model is missing") as caught:
        read_shards(first)
    assert "00002-of-00003" in caught.value.where


def test_a_shard_that_is_cut_off_is_named(tmp_path: Path) -> None:
    first, second, _ = (write(tmp_path, number) for number in range(3))
    second.write_bytes(second.read_bytes()[:-1])
    with pytest.raises(RigError, match="not whole") as caught:
        read_shards(first)
    assert caught.value.where == str(second)


def test_shards_of_different_splits_do_not_go_together(tmp_path: Path) -> None:
    first = write(tmp_path, 0)
    write(tmp_path, 1, said=(2, 3))
    write(tmp_path, 2)
    with pytest.raises(RigError, match="shard 2 of 3 says it is number 3"):
        read_shards(first)


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path) -> None:
    first = write(tmp_path, 0)
    write(tmp_path, 1)
    write(tmp_path, 2, names=("blk.1.a", "blk.9.z"))
    with pytest.raises(RigError, match="more than one shard"):
        read_shards(first)


def test_a_promised_tensor_must_be_there(tmp_path: Path) -> None:
    first = write(tmp_path, 0)
    write(tmp_path, 1)
    write(tmp_path, 2, names=("blk.2.a",))
    with pytest.raises(RigError, match="hold 3 tensors, and 4 are promised"):
        read_shards(first)


def test_a_name_may_not_claim_a_million_shards(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="claims 99999 shards"):
        shard_paths(tmp_path / "m-00001-of-99999.gguf")
