"""``llamarig rollout plan`` as a user runs it, with hosts that are told instead of looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from llamarig.cli.main import app
from llamarig.errors import ExitCode, RigError
from llamarig.fleet import in_use
from llamarig.fleet.policy import Use
from llamarig.render.wanted import Wanted
from llamarig.spec.load import LoadedHost
from tests.support.compare.cases import bare_observation

ROOT = Path(__file__).resolve().parents[3]
NAMES = ["ws-1", "ws-2", "ws-3"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "headers").symlink_to(ROOT / "headers")
    demo = yaml.safe_load((ROOT / "inventory/demo.yml").read_text()) | {"connection": {"address": "192.0.2.1"}}
    for name in NAMES:
        (tmp_path / f"inventory/{name}.yml").write_text(yaml.safe_dump(demo | {"host": name}))
    return tmp_path


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """The first host is bare, the second bare and in use, the third silent; returns what was asked of whom."""
    asked: list[tuple[str, list[str]]] = []

    def observe(_root: Path, hosts: list[LoadedHost], wanted: dict[str, Wanted]) -> dict[str, Any]:
        asked.append(("observe", [loaded.host for loaded in hosts]))
        found: dict[str, Any] = {loaded.host: bare_observation(wanted[loaded.host]) for loaded in hosts}
        silent = RigError("the host cannot be reached", NAMES[2], "No route \x1b[2J", code=ExitCode.HOST_FAILED)
        return found | {NAMES[2]: silent} if NAMES[2] in found else found

    def verdicts(_gate: object, hosts: Sequence[str], *, wait: bool) -> dict[str, Use | None]:
        assert wait is False
        asked.append(("use", list(hosts)))
        return {name: Use("logged in: ann [on] tty1") if name == NAMES[1] else None for name in hosts}

    monkeypatch.setattr("llamarig.converge.observe.observe_hosts", observe)
    monkeypatch.setattr(in_use.UseGate, "verdicts", verdicts)
    return asked


def run(project: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["-C", str(project), "rollout", "plan", *arguments])


def test_waves_verdicts_and_builds_are_printed(project: Path, fleet: list[tuple[str, list[str]]]) -> None:
    done = run(project, "--all")
    lines = done.stdout.splitlines()
    assert lines[0] == "canary"
    assert lines[1].split()[:3] == ["ws-1", "is", "changed"]
    assert "restarts chat" in lines[1]
    assert "ws-2  deferred" in done.stdout
    assert "logged in: ann [on] tty1" in done.stdout
    assert r"the host cannot be reached: No route \x1b[2J" in done.stdout
    assert "is built once, for ws-1, ws-2" in done.stdout
    assert lines[-1] == "3 hosts, a canary and 2 waves: 1 is changed, 1 deferred, 1 unreachable"
    assert done.exit_code == ExitCode.HOST_FAILED
    assert fleet == [("observe", NAMES), ("use", NAMES[:2])]


def test_json_has_every_host_and_the_code_is_that_of_the_worst(
    project: Path, fleet: list[tuple[str, list[str]]]
) -> None:
    done = run(project, "ws-1", "--json")
    document = json.loads(done.stdout)
    assert document["waves"] == [{"name": "canary", "hosts": ["ws-1"]}]
    assert document["hosts"]["ws-1"]["verdict"] == "change"
    assert list(document["builds"].values()) == [["ws-1"]]
    assert done.exit_code == ExitCode.FINDING
    assert fleet == [("observe", ["ws-1"]), ("use", ["ws-1"])]


def test_hosts_are_chosen_by_their_labels(project: Path, fleet: list[tuple[str, list[str]]]) -> None:
    for name, room in (("ws-1", "hall"), ("ws-3", "hall"), ("ws-2", "lab")):
        path = project / f"inventory/{name}.yml"
        path.write_text(path.read_text() + f"labels: {{room: {room}, floor: '2'}}\n")
    document = json.loads(run(project, "--label", "room=hall", "--label", "floor=2", "--json").stdout)
    assert sorted(document["hosts"]) == ["ws-1", "ws-3"]
    assert fleet[0] == ("observe", ["ws-1", "ws-3"])
    for wrong in ("room=attic", "room"):
        refused = run(project, "--label", wrong).exception
        assert isinstance(refused, RigError)
        assert refused.code == ExitCode.BAD_INPUT
        assert wrong in refused.what


def test_a_host_whose_spec_is_refused_is_not_asked_and_holds_up_nobody(
    project: Path, fleet: list[tuple[str, list[str]]]
) -> None:
    path = project / "inventory/ws-1.yml"
    path.write_text(path.read_text().replace("context: 4096", "context: none"))
    done = run(project, "ws-1", "ws-2", "--json")
    document = json.loads(done.stdout)
    assert document["hosts"]["ws-1"]["verdict"] == "refused"
    assert "context" in document["hosts"]["ws-1"]["reason"]
    assert document["hosts"]["ws-2"]["verdict"] == "in-use"
    assert done.exit_code == ExitCode.BAD_INPUT
    assert fleet[0] == ("observe", ["ws-2"])


def test_a_canary_is_planned_as_it_would_be_started(project: Path, fleet: list[tuple[str, list[str]]]) -> None:
    del fleet
    document = json.loads(run(project, "--all", "--canary", "2", "--json").stdout)
    assert document["waves"][0] == {"name": "canary", "hosts": NAMES[:2]}
    assert run(project, "--all", "--canary", "0").stdout.splitlines()[-1].startswith("3 hosts, 3 waves: ")
    assert run(project, "ws-1").stdout.splitlines()[-1].startswith("1 host, a canary: ")


def test_labels_that_no_host_carries_are_said(project: Path, fleet: list[tuple[str, list[str]]]) -> None:
    del fleet
    path = project / "inventory/ws-2.yml"
    path.write_text(path.read_text() + "labels: {wave: canary}\n")
    rollout = "rollout: {canary-labels: {wave: canry}, by: floor}\n"
    (project / "inventory/fleet.yml").write_text("schema-version: 1\n" + rollout)
    document = json.loads(run(project, "--all", "--json").stdout)
    assert document["warnings"] == [
        {
            "message": "no host carries wave=canry, so the canary is chosen by name",
            "fix": "did you mean `wave=canary`?",
        },
        {
            "message": "no host carries the label 'floor', so the waves are spread over nothing",
            "fix": "there is `wave`",
        },
    ]
    assert "warning no host carries wave=canry" in run(project, "--all").stdout
    begun = CliRunner().invoke(app, ["-C", str(project), "rollout", "start", "--all"])
    assert "warning no host carries wave=canry" in begun.stderr
    assert isinstance(begun.exception, RigError)  # nobody can be asked, and nothing was begun
    (project / "inventory/fleet.yml").write_text("schema-version: 1\n" + rollout.replace("canry", "canary"))
    assert len(json.loads(run(project, "--all", "--json").stdout)["warnings"]) == 1


def test_every_refusal_is_told_with_its_fix(project: Path, fleet: list[tuple[str, list[str]]]) -> None:
    del fleet
    path = project / "inventory/ws-1.yml"
    spec = yaml.safe_load(path.read_text())
    spec["models"]["smol"]["sha256"] = "unlocked"
    spec["mirror"] = {"path": str(project / "gone")}
    path.write_text(yaml.safe_dump(spec))
    [host] = json.loads(run(project, "ws-1", "--json").stdout)["hosts"].values()
    assert host["verdict"] == "refused"
    assert len(host["errors"]) > 1
    assert all(error["fix"] for error in host["errors"])
    shown = run(project, "ws-1")
    assert all(error["fix"] in shown.stderr for error in host["errors"])


def test_none_of_the_named_hosts_has_a_label_that_another_has(project: Path) -> None:
    path = project / "inventory/ws-3.yml"
    path.write_text(path.read_text() + "labels: {room: lab}\n")
    refused = run(project, "ws-1", "--label", "room=lab").exception
    assert isinstance(refused, RigError)
    assert refused.what == "none of the named hosts carries room=lab"


@pytest.mark.parametrize(
    ("words", "what", "example"),
    [
        (["rollout", "start", "ws1", "--all"], "hosts are named, and --all is given too", "llamarig rollout start ws1"),
        (["rollout", "plan"], "name one or more hosts, or give --all", "llamarig rollout plan demo"),
        (["mirror", "/srv/m"], "name one or more hosts, or give --all", "llamarig mirror /srv/m demo"),
        (["drift"], "name one or more hosts, or give --all", "llamarig drift demo"),
    ],
)
def test_a_choice_of_hosts_that_is_none_names_the_verb(words: list[str], what: str, example: str) -> None:
    refused = CliRunner().invoke(app, words).exception
    assert isinstance(refused, RigError)
    assert refused.what == what
    assert refused.fix.endswith(f"for example: {example}")
