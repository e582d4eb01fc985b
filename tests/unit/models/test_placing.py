"""A model file gets its name only when it is right, and is not read again while its record holds."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
import rig_model
from ansible.module_utils.rig_disk import identity

CONTENT = b"GGUF" + bytes(range(256)) * 8
SHA = hashlib.sha256(CONTENT).hexdigest()


def placer(tmp_path: Path, *, check_mode: bool = False, deep: bool = False, **changes: Any) -> rig_model.Placer:
    models = tmp_path / "models"
    (models / "incoming").mkdir(parents=True, exist_ok=True)
    model = {
        "sha256": SHA,
        "size": len(CONTENT),
        "path": str(models / "sha256" / SHA),
        "links": [str(models / "small" / "small.gguf")],
        "origin": {"kind": "url", "url": "unused"},
        **changes,
    }
    params = {
        "model": model,
        "incoming": str(models / "incoming"),
        "record": str(tmp_path / "record.json"),
        "deep": deep,
    }
    return rig_model.Placer(params, check_mode)


def arrived(tmp_path: Path, content: bytes = CONTENT) -> rig_model.Placer:
    made = placer(tmp_path)
    made.part.write_bytes(content)
    return made


def test_a_right_file_is_named_and_linked(tmp_path: Path) -> None:
    made = arrived(tmp_path)
    made.place()
    assert made.settle()
    assert made.path.read_bytes() == CONTENT
    assert made.path.stat().st_mode & 0o7777 == 0o444
    assert str(made.links[0].readlink()) == f"../sha256/{SHA}"
    assert not made.part.exists()
    assert not made.settle()


def test_the_record_spares_the_reading(tmp_path: Path) -> None:
    made = arrived(tmp_path)
    made.place()
    record = {"files": {str(made.path): {"sha256": SHA, "stat": identity(made.path)}}}
    (tmp_path / "record.json").write_text(json.dumps(record))
    again = placer(tmp_path)
    assert again.right()
    assert not again.hashed
    deep = placer(tmp_path, deep=True)
    assert deep.right()
    assert deep.hashed


def test_without_a_record_the_file_is_read(tmp_path: Path) -> None:
    arrived(tmp_path).place()
    again = placer(tmp_path)
    assert again.right()
    assert again.hashed


def test_a_swapped_file_is_found_though_the_record_knew_it(tmp_path: Path) -> None:
    made = arrived(tmp_path)
    made.place()
    record = {"files": {str(made.path): {"sha256": SHA, "stat": identity(made.path)}}}
    (tmp_path / "record.json").write_text(json.dumps(record))
    made.path.chmod(0o644)
    made.path.write_bytes(CONTENT[::-1])
    assert not placer(tmp_path).right()


def test_a_host_file_that_is_root_s_alone_is_linked(tmp_path: Path) -> None:
    source = tmp_path / "elsewhere.gguf"
    source.write_bytes(CONTENT)
    made = placer(tmp_path, origin={"kind": "host-path", "path": str(source)})
    made.take_from_host()
    made.place()
    shared = made.path.stat().st_ino == source.stat().st_ino
    assert shared == (source.stat().st_uid == 0)
    assert made.path.read_bytes() == CONTENT


def test_a_host_file_that_others_may_write_is_copied(tmp_path: Path) -> None:
    source = tmp_path / "elsewhere.gguf"
    source.write_bytes(CONTENT)
    source.chmod(0o666)
    made = placer(tmp_path, origin={"kind": "host-path", "path": str(source)})
    made.take_from_host()
    made.place()
    assert made.path.stat().st_ino != source.stat().st_ino
    assert source.stat().st_mode & 0o7777 == 0o666


def test_check_mode_names_nothing(tmp_path: Path) -> None:
    arrived(tmp_path).place()
    dry = placer(tmp_path, check_mode=True)
    assert dry.settle()
    assert not dry.links[0].is_symlink()


@pytest.fixture(autouse=True)
def _as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is root on a host; here the owner need not change."""
    monkeypatch.setattr(rig_model.os, "chown", lambda *_: None)
    monkeypatch.setattr(rig_model, "OWNER", (os.getuid(), os.getgid()))
