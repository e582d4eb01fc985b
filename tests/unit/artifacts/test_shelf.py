"""Files by content: named only when right, verified on every use, thrown away when damaged."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from llamarig.converge.store.shelf import Shelf, cache_root
from llamarig.errors import RigError

CONTENT = b"content" * 1000
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "artifacts")


def _kept(shelf: Shelf) -> Path:
    partial = shelf.partial("x")
    partial.write_bytes(CONTENT)
    return shelf.put(partial, SHA, "x", len(CONTENT))


def test_a_right_file_is_kept_read_only_under_its_hash(shelf: Shelf) -> None:
    path = _kept(shelf)
    assert path == shelf.root / SHA
    assert path.stat().st_mode & 0o7777 == 0o444
    assert shelf.get(SHA, len(CONTENT)) == path
    assert not shelf.partial("x").exists()


def test_what_is_not_there_is_none(shelf: Shelf) -> None:
    assert shelf.get(SHA) is None


@pytest.mark.parametrize("damage", [CONTENT[:-1], CONTENT[:-1] + b"x", b""])
def test_a_damaged_file_is_thrown_away_when_used(shelf: Shelf, damage: bytes) -> None:
    path = _kept(shelf)
    path.chmod(0o644)
    path.write_bytes(damage)
    assert shelf.get(SHA, len(CONTENT)) is None
    assert not path.exists()


def test_wrong_content_is_refused_with_both_hashes(shelf: Shelf) -> None:
    partial = shelf.partial("x")
    partial.write_bytes(b"other")
    with pytest.raises(RigError) as refused:
        shelf.put(partial, SHA, "https://models.example/m")
    assert SHA in refused.value.why
    assert hashlib.sha256(b"other").hexdigest() in refused.value.why
    assert refused.value.where == "https://models.example/m"
    assert "llamarig lock" in refused.value.fix
    assert not partial.exists()
    assert shelf.get(SHA) is None


def test_wrong_size_is_refused_without_hashing(shelf: Shelf) -> None:
    partial = shelf.partial("x")
    partial.write_bytes(CONTENT)
    with pytest.raises(RigError, match="7000 bytes, expected 7001"):
        shelf.put(partial, SHA, "x", 7001)


def test_a_file_of_the_controller_is_taken_in(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(CONTENT)
    assert shelf.copy(tmp_path / "m", SHA, "m").read_bytes() == CONTENT
    assert (tmp_path / "m").exists()


def test_the_cache_directory_is_the_user_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "llamarig"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_root() == tmp_path / "home/.cache/llamarig"
