"""Sidecars: what is written is read back, and nothing else passes."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llamarig.errors import RigError
from llamarig.gguf import Header, Omitted, dump_sidecar, load_sidecar, read_header, write_sidecar
from tests.support import gguf_bytes as raw
from tests.support.big_models import header_of, qwen35_27b

SHA = "ab" * 32


def small() -> Header:
    composed = raw.small()
    composed.add("tokenizer.chat_template", raw.STRING, "{{ x }}" * 1000).add("odd", raw.F32, float("nan"))
    composed.pairs.append(raw.array("llama.attention.head_count_kv", raw.I32, [2, 0, 4]))
    return read_header(io.BytesIO(composed.bytes()))


def test_a_sidecar_holds_all_but_long_strings(tmp_path: Path) -> None:
    header = small()
    loaded = load_sidecar(write_sidecar(header, SHA, tmp_path))
    assert loaded.tensors == header.tensors
    assert (loaded.data_start, loaded.data_size, loaded.alignment) == (
        header.data_start,
        header.data_size,
        header.alignment,
    )
    expected = dict(header.metadata)
    expected["tokenizer.chat_template"] = Omitted("string", 7000)
    expected["odd"] = Omitted("f32", 1)
    assert loaded.metadata == expected


def test_the_name_is_the_models_hash_and_the_text_never_changes(tmp_path: Path) -> None:
    path = write_sidecar(small(), SHA, tmp_path)
    assert path.name == f"{SHA}.json"
    assert path.read_text() == dump_sidecar(small(), SHA)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_27b_model_needs_less_than_100_kb(tmp_path: Path) -> None:
    path = write_sidecar(header_of(qwen35_27b()), SHA, tmp_path)
    assert path.stat().st_size < 100_000


def test_another_models_sidecar_is_refused(tmp_path: Path) -> None:
    path = write_sidecar(small(), SHA, tmp_path)
    path.rename(tmp_path / f"{'cd' * 32}.json")
    with pytest.raises(RigError, match="not usable") as caught:
        load_sidecar(tmp_path / f"{'cd' * 32}.json")
    assert "belongs to the model" in caught.value.why


def test_a_pinned_sidecar_must_be_byte_for_byte_the_same(tmp_path: Path) -> None:
    path = write_sidecar(small(), SHA, tmp_path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert load_sidecar(path, sidecar_sha256=digest).architecture == "llama"
    path.write_text(path.read_text().replace('"llama.block_count":1', '"llama.block_count":2'))
    with pytest.raises(RigError) as caught:
        load_sidecar(path, sidecar_sha256=digest)
    assert "sha256" in caught.value.why


def edit(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data.__setitem__(key, value)


WRONG: dict[str, Callable[[dict[str, Any]], None]] = {
    "schema": edit("schema", 2),
    "no tensors": lambda data: data.pop("tensors"),
    "alignment": edit("alignment", 48),
    "negative size": edit("data-size", -1),
    "size as text": edit("data-size", "12"),
    "unknown type": lambda data: data["tensors"][0].__setitem__(1, "Q9_9"),
    "zero dimension": lambda data: data["tensors"][0].__setitem__(2, 0),
    "dimension as text": lambda data: data["tensors"][0].__setitem__(2, "8"),
    "blocks do not divide": lambda data: data["tensors"][1].__setitem__(2, 33),
    "tensor twice": lambda data: data["tensors"].append(data["tensors"][0]),
    "tensors bigger than the data": lambda data: data["tensors"][0].__setitem__(2, 1 << 40),
    "metadata is a list": edit("metadata", []),
    "a value is a mapping": lambda data: data["metadata"].__setitem__("x", {"y": 1}),
    "a value holds text": lambda data: data["metadata"].__setitem__("x", [1, "2"]),
    "omitted nonsense": lambda data: data["metadata"].__setitem__("x", {"omitted": [1, 2]}),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_edited_sidecar_is_refused(name: str, tmp_path: Path) -> None:
    path = write_sidecar(small(), SHA, tmp_path)
    data = json.loads(path.read_text())
    WRONG[name](data)
    path.write_text(json.dumps(data))
    with pytest.raises(RigError, match="not usable"):
        load_sidecar(path)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_sidecar_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"{SHA}.json"
    path.write_bytes(content)
    with pytest.raises(RigError, match="not usable"):
        load_sidecar(path)


def test_a_missing_sidecar_is_an_error_of_the_users(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="cannot read"):
        load_sidecar(tmp_path / "none.json")
