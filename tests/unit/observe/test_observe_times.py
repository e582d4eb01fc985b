"""When a managed thing last changed, as the host's file system tells."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.support.observe.load import module, part

times = part("rig_times")


def test_a_file_tells_its_ctime_whatever_its_mtime_claims(tmp_path: Path) -> None:
    path = tmp_path / "unit"
    path.write_text("x")
    os.utime(path, (1.0, 1.0))
    found = times.changed([str(path)])
    assert abs(found[str(path)] - time.time()) < 60
    assert found[str(path)] == path.stat().st_ctime


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to("/proc/self")
    assert times.changed([str(tmp_path / "current")]) == {
        str(tmp_path / "current"): (tmp_path / "current").lstat().st_ctime
    }


def test_what_is_not_there_has_the_time_of_the_nearest_directory_above(tmp_path: Path) -> None:
    gone, further = str(tmp_path / "gone"), str(tmp_path / "no" / "such")
    assert times.changed([gone, further]) == dict.fromkeys((gone, further), tmp_path.stat().st_ctime)


def test_what_cannot_be_looked_at_is_left_out(tmp_path: Path) -> None:
    assert times.changed(["/x\0y", "/" + "x" * 5000, str(tmp_path)]) == {str(tmp_path): tmp_path.stat().st_ctime}


def test_the_observer_dates_what_the_probe_list_names(tmp_path: Path) -> None:
    path = tmp_path / "unit"
    path.write_text("x")
    probe = {"files": [str(path)], "directories": [str(tmp_path)], "credentials": [str(tmp_path / "keys")]}
    seen = module("rig_observe").observe(probe, lambda *_words, **_named: (0, "", ""))
    assert {str(path), str(tmp_path), str(tmp_path / "keys"), "/var/lib/dpkg/status"} <= set(seen["changed"])
