"""The verb ``lock`` from the outside: --check writes nothing, the difference is shown, problems set the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.standins.hub import FakeHub, Repository, sha256
from tests.support.standins.project import model_bytes, spec, write_project

MAIN = "a" * 40
DATA = model_bytes("smol")
HUB = "models:\n  smol: {repo: acme/m, revision: unlocked, file: m.gguf, sha256: unlocked, size: unlocked} # ours\n"


def rig(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    checkout = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "COLUMNS": "300"}
    command = [sys.executable, "-m", "llamarig.cli.main", "-C", str(root), "lock", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def project(hub: FakeHub, tmp_path: Path) -> Path:
    hub.repositories["acme/m"] = Repository({MAIN: {"m.gguf": DATA}}, MAIN)
    write_project(tmp_path, spec(HUB))
    return tmp_path


def test_check_shows_and_writes_nothing_then_lock_writes(project: Path) -> None:
    shown = rig(project, "box", "--check")
    assert shown.returncode == 1, shown.stderr
    assert f"+  smol: {{repo: acme/m, revision: {MAIN}, file: m.gguf, sha256: {sha256(DATA)}" in shown.stdout
    assert f"would write headers/{sha256(DATA)}.json" in shown.stdout
    assert (project / "inventory" / "box.yml").read_text() == spec(HUB)
    assert not (project / "headers").exists()
    done = rig(project, "--all", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["written"] is True
    assert data["new-files"] == [f"headers/{sha256(DATA)}.json"]
    assert data["hosts"][0]["changes"][0] == {
        "file": "inventory/box.yml", "line": 11, "key": "models.smol.revision", "old": "unlocked", "new": MAIN,
    }  # fmt: skip
    assert "# ours\n" in (project / "inventory" / "box.yml").read_text()
    assert rig(project, "box", "--check").stdout == "everything is locked\n"


def test_a_problem_is_told_and_sets_the_exit_code(project: Path) -> None:
    write_project(project, spec(HUB.replace("m.gguf", "gone.gguf")))
    done = rig(project, "box")
    assert done.returncode == 2
    assert "no file gone.gguf" in done.stderr
    assert "box.yml: models.smol" in done.stderr
    data = json.loads(rig(project, "box", "--json").stdout)
    assert data["hosts"][0]["errors"][0]["what"].startswith("the repository has no file")
    assert data["written"] is False


def test_a_bad_spec_keeps_no_other_host_from_being_locked(project: Path) -> None:
    bad = project / "inventory" / "zoe.yml"
    bad.write_text(spec(HUB).replace("host: box", "host: zoe").replace("services:", "servises:"))
    kept = bad.read_text()
    done = rig(project, "--all")
    assert done.returncode == 2
    assert "servises" in done.stderr
    assert f"revision: {MAIN}" in (project / "inventory" / "box.yml").read_text()
    assert bad.read_text() == kept
    again = rig(project, "--all", "--json")
    assert again.returncode == 2
    box, zoe = json.loads(again.stdout)["hosts"]
    assert (box["host"], box["changes"], box["errors"]) == ("box", [], [])
    assert zoe["errors"] == [zoe["error"]]
    assert rig(project, "box", "--check").returncode == 0, "by its own name nothing is wrong"
    assert rig(project, "zoe").returncode == 2
    assert bad.read_text() == kept
