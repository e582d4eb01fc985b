"""What rig_observe sees of power: files alone, each of which may be something else."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import part

power = part("rig_power")
files = part("rig_files")


def look(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = power.look(files.Hasher(), str(root))
    return found


def put(root: Path, path: str, text: str) -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_a_bare_host(tmp_path: Path) -> None:
    seen = look(tmp_path)
    assert seen == {
        "files": {path: {"type": "absent"} for path in power.FILES},
        "masked": [],
        "we-masked": False,
        "state": None,
    }
    assert power.units(seen) == []


def test_what_is_there_is_told(tmp_path: Path) -> None:
    for path in power.FILES:
        put(tmp_path, path, "text")
    put(tmp_path, power.CONFIG, '{"mask-sleep": true}')
    put(tmp_path, power.STATE, json.dumps({"boot-id": "x"}))
    units = tmp_path / "etc/systemd/system"
    (units / "sleep.target").symlink_to("/dev/null")
    (units / "suspend.target").symlink_to("/usr/lib/systemd/system/suspend.target")
    (units / "hibernate.target").write_text("")
    seen = look(tmp_path)
    assert (seen["masked"], seen["we-masked"], seen["state"]) == (["sleep.target"], True, {"boot-id": "x"})
    entry = seen["files"][power.FILES[0]]
    assert entry["sha256"] == hashlib.sha256(b"text").hexdigest()
    assert power.units(seen) == [power.SERVICE, power.TIMER]


@pytest.mark.parametrize("text", ["", "[]", "7", "{", '{"a": ' * 5000, "\x00"])
def test_a_broken_state_is_none(tmp_path: Path, text: str) -> None:
    put(tmp_path, power.STATE, text)
    put(tmp_path, power.CONFIG, text)
    seen = look(tmp_path)
    assert (seen["state"], seen["we-masked"]) == (None, False)


def test_a_huge_state_is_not_read(tmp_path: Path) -> None:
    put(tmp_path, power.STATE, json.dumps({"a": "x" * (1 << 17)}))
    assert look(tmp_path)["state"] is None


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    put(tmp_path, "/secret", '{"a": 1}')
    for path in (power.STATE, power.FILES[0]):
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(tmp_path / "secret")
    put(tmp_path, power.CONFIG, "")
    (tmp_path / power.CONFIG.lstrip("/")).unlink()
    os.mkfifo(tmp_path / power.CONFIG.lstrip("/"))
    seen = look(tmp_path)
    assert seen["state"] is None
    assert seen["files"][power.FILES[0]]["type"] == "link"
    assert seen["files"][power.CONFIG]["type"] == "fifo"
