"""Whether an apply that was interrupted had begun to change what runs, as the host's own files tell it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import module, part

switch = module("rig_switch")
observe = module("rig_observe")
states = part("rig_state")
store = part("rig_store")


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """held.json of an apply that was killed before it changed anything, on a host with one unit and one link."""
    (tmp_path / "unit").write_text("old\n")
    (tmp_path / "link").symlink_to("old.gguf")
    (tmp_path / "current").symlink_to("releases/old")
    files = [str(tmp_path / name) for name in ("unit", "link", "new")]
    switch.hold(tmp_path, tmp_path / "state", {"files": files, "run": "r", "applied_from": "ada@desk"})
    return tmp_path / "state/held.json"


def test_nothing_was_begun(held: Path) -> None:
    assert states.begun(held, "old") is False


@pytest.mark.parametrize("name", ["unit", "link", "new"])
def test_a_file_that_is_another_was_written_by_it(held: Path, name: str) -> None:
    place = held.parent.parent / name
    place.unlink(missing_ok=True)
    place.write_text("new\n")
    assert states.begun(held, "old") is True


def test_a_release_that_is_another_was_switched_to(held: Path) -> None:
    assert states.begun(held, "new") is True


def test_what_was_started_runs(held: Path) -> None:
    switch.started(held.parent.parent, held.parent, {})
    assert states.begun(held, "old") is True


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"release": "old", "files": [{"path": "/x", "absent": 7}]}'])
def test_what_cannot_be_told_counts_as_begun(held: Path, text: str) -> None:
    held.write_text(text)
    assert states.begun(held, "old") is True
    held.unlink()
    assert states.begun(held, "old") is True


def test_a_path_that_is_none_counts_as_begun(held: Path) -> None:
    held.write_text(json.dumps({"release": "old", "files": [{"path": "/\0", "absent": False, "link": "x"}]}))
    assert states.begun(held, "old") is True


def test_the_look_tells_of_it(held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(path: Path) -> Any:
        monkeypatch.setattr(store, "HELD", str(path))
        return observe._unfinished("releases/old")

    assert seen(held)["begun"] is False
    assert seen(held)["release"] == "old"
    assert observe._unfinished(None)["begun"] is True
    assert seen(held.parent / "none") is None
