"""Model files that are not what the spec pins: none is ever named or linked, and the words say what differs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import rig_model

CONTENT = b"GGUF" + bytes(1000)
SHA = hashlib.sha256(CONTENT).hexdigest()


def _placer(tmp_path: Path, content: bytes | None, **changes: Any) -> rig_model.Placer:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    model = {
        "sha256": SHA,
        "size": len(CONTENT),
        "path": str(tmp_path / "sha256" / SHA),
        "links": [str(tmp_path / "m/m.gguf")],
        "origin": {"kind": "url"},
        **changes,
    }
    made = rig_model.Placer(
        {"model": model, "incoming": str(incoming), "record": str(tmp_path / "record"), "deep": False}, False
    )
    if content is not None:
        made.part.write_bytes(content)
    return made


def _nothing_named(made: rig_model.Placer) -> bool:
    return not made.path.exists() and not made.links[0].is_symlink()


def test_corrupt_content_is_thrown_away_with_both_hashes(tmp_path: Path) -> None:
    wrong = b"GGUF" + bytes(999) + b"x"
    made = _placer(tmp_path, wrong)
    with pytest.raises(rig_model.RefusedError) as refused:
        made.place()
    assert hashlib.sha256(wrong).hexdigest() in str(refused.value)
    assert SHA in str(refused.value)
    assert not made.part.exists()
    assert _nothing_named(made)


def test_half_a_file_is_kept_and_not_named(tmp_path: Path) -> None:
    made = _placer(tmp_path, CONTENT[:500])
    with pytest.raises(rig_model.RefusedError, match="500 of 1004 bytes"):
        made.place()
    assert made.part.stat().st_size == 500
    assert _nothing_named(made)


def test_a_link_in_the_part_s_place_is_not_followed(tmp_path: Path) -> None:
    made = _placer(tmp_path, None)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(CONTENT)
    made.part.symlink_to(elsewhere)
    with pytest.raises((rig_model.RefusedError, OSError)):
        made.place()
    assert _nothing_named(made)


def test_a_page_whose_hash_was_pinned_is_no_model(tmp_path: Path) -> None:
    page = b"<html>sign in</html>"
    sha256 = hashlib.sha256(page).hexdigest()
    made = _placer(tmp_path, page, sha256=sha256, size=len(page), path=str(tmp_path / "sha256" / sha256))
    made.part.rename(made.part.with_name(f"{sha256}.part"))
    with pytest.raises(rig_model.RefusedError, match="no GGUF file"):
        made.place()
    assert _nothing_named(made)


def test_a_host_file_of_another_size_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "source.gguf"
    source.write_bytes(CONTENT + b"x")
    made = _placer(tmp_path, None, origin={"kind": "host-path", "path": str(source)})
    with pytest.raises(rig_model.RefusedError, match="has 1005 bytes, expected 1004"):
        made.take_from_host()


def test_a_host_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    made = _placer(tmp_path, None, origin={"kind": "host-path", "path": str(tmp_path / "none")})
    with pytest.raises(rig_model.RefusedError, match="cannot be read on this host"):
        made.take_from_host()
