"""``llamarig model`` on files that lie, steer the terminal, or are no files (all composed here)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from llamarig.cli.model import app
from llamarig.errors import RigError
from llamarig.gguf import Header, read_header
from llamarig.gguf.find import find_header
from llamarig.memory import Settings, estimate
from llamarig.spec.models import ModelFile
from tests.support import gguf_bytes as raw

HOSTILE = "ll\x1b]0;owned\x07\x9b2Ja\u202ema[red]"
LLAMA: dict[str, int] = {
    "block_count": 2,
    "embedding_length": 64,
    "feed_forward_length": 64,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "context_length": 4096,
}


def composed(arch: str = "llama", /, **more: Any) -> raw.Composed:
    found = raw.Composed()
    found.add("general.architecture", raw.STRING, arch)
    for key, value in {**LLAMA, **{key.replace("__", "."): value for key, value in more.items()}}.items():
        found.add(f"{arch}.{key}", raw.I64, value)
    return found.tensor("token_embd.weight", "F32", 64, 32)


def written(path: Path, found: raw.Composed) -> Path:
    path.write_bytes(found.bytes())
    return path


def header(tmp_path: Path, found: raw.Composed) -> Header:
    return read_header(written(tmp_path / "m.gguf", found))


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_nothing_of_a_header_steers_the_terminal(tmp_path: Path) -> None:
    found = composed(HOSTILE).add("general.name", raw.STRING, HOSTILE).add(f"k{HOSTILE}", raw.STRING, HOSTILE)
    path = written(tmp_path / "m.gguf", found.tensor(f"t{HOSTILE}", "F32", 32))
    for more in ((), ("--json",)):
        said = run("header", "--tensors", str(path), *more)
        assert said.exit_code == 0, said
        assert "owned" in said.stdout
        assert all(ch == "\n" or ch.isprintable() for ch in said.stdout)
        if more:
            assert json.loads(said.stdout)["architecture"] == HOSTILE


def test_an_architecture_that_is_no_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="is no name") as caught:
        estimate(header(tmp_path, composed(HOSTILE)), Settings(context=4096))
    assert str(caught.value).isprintable() or "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"attention__head_count_kv": -8}, "counts nothing: -8"),
        ({"attention__head_count": 0}, "KV heads and no head"),
        ({"attention__head_count_kv": 0}, "heads and no KV head in layer 0"),
        ({"attention__head_count": 0, "attention__head_count_kv": 0}, "no attention heads"),
        ({"embedding_length": 0}, "rows without elements"),
        ({"embedding_length": -64}, "counts nothing"),
        ({"feed_forward_length": -1}, "counts nothing"),
        ({"attention__key_length": -1}, "counts nothing"),
        ({"context_length": 1 << 40}, "counts nothing"),
        ({"block_count": 0}, "0 layers"),
    ],
)
def test_dimensions_that_make_no_sense_are_refused(tmp_path: Path, keys: dict[str, int], words: str) -> None:
    with pytest.raises(RigError, match=words):
        estimate(header(tmp_path, composed(**keys)), Settings(context=4096))


def test_a_negative_number_in_a_list_of_layers_is_refused(tmp_path: Path) -> None:
    found = composed()
    found.pairs.append(raw.array("llama.attention.shared", raw.I32, [1]))
    found.pairs = [pair for pair in found.pairs if b"head_count_kv" not in pair]
    found.pairs.append(raw.array("llama.attention.head_count_kv", raw.I32, [2, -2]))
    with pytest.raises(RigError, match="counts nothing: -2"):
        estimate(header(tmp_path, found), Settings(context=4096))


def test_a_layer_of_a_hybrid_may_have_no_kv_heads(tmp_path: Path) -> None:
    found = composed("deci")
    found.pairs = [pair for pair in found.pairs if b"head_count_kv" not in pair]
    found.pairs.append(raw.array("deci.attention.head_count_kv", raw.I32, [2, 0]))
    assert estimate(header(tmp_path, found), Settings(context=4096)).device_mib > 0


def test_a_layer_of_a_plain_model_may_not(tmp_path: Path) -> None:
    found = composed()
    found.pairs = [pair for pair in found.pairs if b"head_count_kv" not in pair]
    found.pairs.append(raw.array("llama.attention.head_count_kv", raw.I32, [2, 0]))
    with pytest.raises(RigError, match="no KV head in layer 1"):
        estimate(header(tmp_path, found), Settings(context=4096))


def test_attention_in_every_zeroth_layer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="every 0th layer"):
        estimate(header(tmp_path, composed("qwen35", full_attention_interval=0)), Settings(context=4096))


def test_one_shard_of_three_is_not_whole(tmp_path: Path) -> None:
    found = composed().add("split.no", raw.U16, 0).add("split.count", raw.U16, 3)
    path = written(tmp_path / "renamed.gguf", found)
    said = run("header", str(path))
    assert "not whole: 1 of 3 shards" in said.stdout
    shown = json.loads(run("header", str(path), "--json").stdout)
    assert (shown["shards"], shown["shards-promised"]) == (1, 3)
    with pytest.raises(RigError, match="not whole: 1 of 3 shards"):
        estimate(read_header(path), Settings(context=4096))
    model = ModelFile.model_validate({"controller-path": str(path), "sha256": "unlocked", "size": "unlocked"})
    with pytest.raises(RigError, match="not whole: 1 of 3 shards"):
        find_header(model, tmp_path, tmp_path / "cache")


@pytest.mark.parametrize("kind", ["a directory", "a named pipe", "a device", "no such file"])
def test_what_is_no_file_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "a directory":
        path.mkdir()
    elif kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path = Path("/dev/zero")
    said = run("header", str(path))
    assert isinstance(said.exception, RigError)
    assert kind in said.exception.what


@pytest.mark.parametrize("engine", ["x", "b", "", "latest", "b\u0661\u0662\u0663", "b99999999999"])
def test_an_engine_that_is_no_build_is_refused(tmp_path: Path, engine: str) -> None:
    said = run("memory", str(tmp_path / "none"), "--context", "4096", "--engine", engine)
    assert isinstance(said.exception, RigError)
    assert "is no build" in said.exception.what


def test_an_absurd_context_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "m.gguf", composed())
    assert run("memory", str(path), "--context", str(1 << 31)).exit_code != 0
    assert run("memory", str(path), "--context", "4096").exit_code == 0
