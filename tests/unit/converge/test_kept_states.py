"""What lies where a kept state should be is read without trust (the real reader)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import part

state = part("rig_state")
FILE = {"path": "/etc/x", "absent": False, "content": "", "mode": 0o644, "owner": "root", "group": "root"}
GOOD = {"release": "a-1", "files": [FILE, {"path": "/y", "absent": True}, {"path": "/z", "absent": False, "link": "y"}]}


def test_a_written_state_is_read_again(tmp_path: Path) -> None:
    state.write_state(tmp_path / "held.json", GOOD)
    assert state.read_state(tmp_path / "held.json") == GOOD
    assert state.malformed(tmp_path) == []


def test_a_fifo_a_link_and_a_directory_are_no_state_and_hold_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held.json")
    (tmp_path / "proven.json").mkdir()
    (tmp_path / "real.json").write_text(json.dumps(GOOD))
    (tmp_path / "former.json").symlink_to("real.json")
    paths = [tmp_path / f"{name}.json" for name in ("held", "proven", "former")]
    assert [state.read_state(path) for path in paths] == [None] * 3
    assert state.malformed(tmp_path) == [str(path) for path in paths]


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"files": []},
        {"release": None, "files": []},
        {"release": "a", "files": ["x"]},
        {"release": "a", "files": [{"path": "x", "absent": True}]},
        {"release": "a", "files": [{"path": "/x"}]},
        {"release": "a", "files": [{**FILE, "mode": "0644"}]},
        {"release": "a", "files": [{**FILE, "owner": 0}]},
        {"release": "a", "files": [{"path": "/x", "absent": False, "link": 1}]},
    ],
)
def test_a_state_of_another_shape_is_none(tmp_path: Path, content: Any) -> None:
    (tmp_path / "held.json").write_text(json.dumps(content))
    assert state.read_state(tmp_path / "held.json") is None
