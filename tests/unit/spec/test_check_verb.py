"""``llamarig check``: its JSON, its words, its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
BAD = ROOT / "tests/negative/spec/bad"


def check(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "llamarig.cli.main", "check", *arguments],
        cwd=cwd,
        env=dict(os.environ, PYTHONPATH=str(ROOT), NO_COLOR="1"),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_project_is_valid() -> None:
    done = check("--json")
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0
    assert list(report) == ["hosts"]
    assert all(host["valid"] and host["errors"] == [] for host in report["hosts"])
    demo = next(host for host in report["hosts"] if host["host"] == "demo")
    assert demo == {"host": "demo", "valid": True, "errors": [], "warnings": [], "notes": []}


def test_all_errors_of_all_files_in_one_run_with_file_line_and_fix() -> None:
    done = check(str(BAD), "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 2
    # A directory that is no inventory holds its specs itself.
    assert len(report["hosts"]) == len(list(BAD.glob("*.yml")))
    for host in report["hosts"]:
        assert host["valid"] is False
        assert host["errors"]
        for problem in host["errors"] + host["warnings"] + host["notes"]:
            assert set(problem) == {"path", "line", "message", "fix"}
            assert (ROOT / problem["path"]).is_file()
            assert isinstance(problem["line"], int)
            assert problem["message"]
            assert problem["fix"]


def test_the_words_group_by_file_and_end_with_a_count() -> None:
    done = check("tests/negative/spec/bad/cpu.yml", "tests/negative/spec/good/socket.yml")
    lines = done.stdout.splitlines()
    assert done.returncode == 2
    assert "tests/negative/spec/bad/cpu.yml" in lines
    assert "tests/negative/spec/good/socket.yml" in lines
    assert lines[-1] == "2 hosts: 1 valid, 1 with errors (7 errors, 7 warnings, 3 notes)"
    assert any(line.split("note", 1)[-1].strip().startswith("`sock` serves without keys") for line in lines)
    at = next(index for index, line in enumerate(lines) if "the controller itself" in line)
    assert lines[at].split()[:2] == ["line", "4"]
    assert "fix:" in lines[at + 1]


def test_a_fleet_file_is_said_once_for_all_its_hosts() -> None:
    done = check("inventory/fleet/fleet.yml")
    assert done.returncode == 0
    assert done.stdout.count("names no key that its repository must be signed with") == 1
    assert "3 hosts: 3 valid" in done.stdout


def test_a_host_is_checked_by_its_name() -> None:
    assert "1 host: 1 valid" in check("demo").stdout
    unknown = check("dmo")
    assert unknown.returncode == 2
    assert "did you mean demo?" in unknown.stderr


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    assert "no such file" in check("nowhere.yml").stderr
    empty = check(cwd=tmp_path)
    assert empty.returncode == 2
    assert "no host spec found" in empty.stderr


def test_a_broken_fleet_file_without_hosts_is_reported(tmp_path: Path) -> None:
    (tmp_path / "fleet.yml").write_text("schema-version: 1\nhosts: []\n")
    done = check("--json", cwd=tmp_path)
    assert done.returncode == 2
    report = json.loads(done.stdout)
    assert report["hosts"] == []
    assert [error["line"] for error in report["errors"]] == [2, 1]


def test_hostile_text_does_not_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text('"\\e[31m[red]x": 1\nhost: "[bold]a\\e[2J"\n')
    done = check(cwd=tmp_path)
    assert "\x1b" not in done.stdout
    assert "[red]x" in done.stdout


def test_equal_warnings_of_several_files_are_said_once() -> None:
    said = check().stdout
    told = "names no key that its repository must be signed with"
    assert said.count(told) == 1
    assert f"{told} (11 hosts)" in said
    assert said.index("in several files") < said.index(told)
    notes = json.loads(check("--json").stdout)
    hosts = [host["host"] for host in notes["hosts"] if told in json.dumps(host["warnings"])]
    assert len(hosts) == 11


def test_a_file_with_another_name_than_its_host_is_noted(tmp_path: Path) -> None:
    demo = (ROOT / "inventory" / "demo.yml").read_text()
    (tmp_path / "elsewhere.yml").write_text(demo)
    done = check("--json", cwd=tmp_path)
    assert done.returncode == 0
    [note] = json.loads(done.stdout)["hosts"][0]["notes"]
    assert note["message"].startswith("the file elsewhere.yml names the host demo")
    assert note["fix"] == "name the file demo.yml"
    (tmp_path / "elsewhere.yml").rename(tmp_path / "demo.yml")
    assert json.loads(check("--json", cwd=tmp_path).stdout)["hosts"][0]["notes"] == []


def test_a_window_that_the_engine_rounds_is_noted(tmp_path: Path) -> None:
    demo = (ROOT / "inventory" / "demo.yml").read_text()
    before = "context: 4096"
    assert before in demo
    for context, words in {
        "context: 4097": "4097 over 2 slots is rounded up by the engine: 2304 tokens each, 4608 in all",
        "context: 4096": "",
    }.items():
        (tmp_path / "demo.yml").write_text(demo.replace(before, context))
        notes = json.loads(check("--json", cwd=tmp_path).stdout)["hosts"][0]["notes"]
        assert [words in note["message"] for note in notes] == ([True] if words else [])
