"""A limit on the line holds for downloads by a host and for copies by the controller, measured."""

from __future__ import annotations

import hashlib
import random
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import rig_download

from tests.support.artifacts.onhost import load
from tests.support.artifacts.serving import Served, serving

MIB = 1 << 20
CONTENT = random.Random(3).randbytes(20 * MIB)


def test_a_download_of_20_mib_at_5_mib_a_second_takes_4_seconds(tmp_path: Path) -> None:
    with serving(Served(files={"/m.gguf": CONTENT})) as served:
        start = time.monotonic()
        code = rig_download.main(["fetch.py", f"{served.base}/m.gguf", str(tmp_path / "part"), str(len(CONTENT)), "5"])
        seconds = time.monotonic() - start
    assert code == 0
    assert (tmp_path / "part").read_bytes() == CONTENT
    assert 3.4 <= seconds <= 4.6


def test_a_copy_by_the_controller_keeps_to_the_same_limit(tmp_path: Path) -> None:
    from llamarig.converge.artifacts import Artifact

    rig_push = load("action/rig_push.py")
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    plugin = _plugin(rig_push, tmp_path, limit=5.0)
    start = time.monotonic()
    plugin._send(Artifact(hashlib.sha256(CONTENT).hexdigest(), source), "model m")
    seconds = time.monotonic() - start
    assert 3.4 <= seconds <= 4.6
    assert max(plugin.pieces) <= 5 * MIB
    assert sum(plugin.pieces) == len(CONTENT)


def test_without_a_limit_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(rig_download.time, "sleep", waited.append)
    pace = rig_download.Pace(None)
    pace.spend(1 << 40)
    assert waited == []
    assert pace.block(MIB) == MIB


def test_a_pause_saves_up_no_more_than_a_quarter_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waited = [100.0], []
    monkeypatch.setattr(rig_download.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(rig_download.time, "sleep", waited.append)
    pace = rig_download.Pace(1000.0)
    now[0] += 60
    pace.spend(1250)
    assert waited == [1.0]


def _plugin(rig_push: Any, folder: Path, limit: float) -> Any:
    import subprocess
    from types import SimpleNamespace

    plugin = object.__new__(rig_push.ActionModule)
    plugin._task = SimpleNamespace(args={"directory": str(folder)})
    plugin._host, plugin._lock = "here", SimpleNamespace(renew=lambda: None)
    plugin._pace = rig_push.pace_of(limit)
    plugin.pieces = []

    def run(command: str, in_data: bytes | None = None) -> dict[str, Any]:
        if in_data is not None:
            plugin.pieces.append(len(in_data))
        done = subprocess.run(["sh", "-c", command], input=in_data, capture_output=True, check=False)
        return {"rc": done.returncode, "stdout": done.stdout.decode(), "stderr": done.stderr.decode()}

    plugin._low_level_execute_command = run
    return plugin
