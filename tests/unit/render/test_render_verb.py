from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def render(*arguments: str, project: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "llamarig.cli.main", "-C", str(project), "render", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_it_writes_a_hosts_files_and_a_manifest(tmp_path: Path) -> None:
    out = tmp_path / "new" / "demo"
    done = render("demo", "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout)["hosts"]
    manifest = json.loads((out / "manifest.json").read_text())
    assert (entry["host"], entry["release"]) == ("demo", manifest["release"])
    assert entry["files"] == list(manifest["files"])
    for path in entry["files"]:
        place = out / path.lstrip("/")
        assert oct(place.stat().st_mode & 0o777) == oct(int(manifest["files"][path]["mode"], 8))
    again = render("demo", "--out", str(out))
    assert again.returncode == 0
    assert "llama-chat.service" in again.stdout


@pytest.mark.parametrize("arguments", [[], ["demo", "--all"], ["nobody"]])
def test_wrong_hosts_are_refused_and_nothing_is_written(tmp_path: Path, arguments: list[str]) -> None:
    out = tmp_path / "out"
    done = render(*arguments, "--out", str(out))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_a_directory_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    done = render("demo", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "not made by" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_list_of_a_mirror_that_is_not_there_is_said_to_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "inventory").mkdir()
    spec = (ROOT / "inventory/demo.yml").read_text()
    path = tmp_path / "inventory/demo.yml"
    path.write_text(spec + f'mirror: {{path: {tmp_path / "m"}, url: "http://192.0.2.5/m"}}\n')
    (tmp_path / "headers").symlink_to(ROOT / "headers")
    told = render("demo", "--out", str(tmp_path / "out"), project=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "demo: /etc/apt/sources.list.d/llamarig-mirror.sources is left out: there is no mirror" in told.stderr
    path.write_text(spec)
    assert "left out" not in render("demo", "--out", str(tmp_path / "out"), project=tmp_path).stderr
