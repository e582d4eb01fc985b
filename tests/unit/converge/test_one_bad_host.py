"""One bad host is told with its own error and never stops the others: specs, plans, refusals, password files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llamarig.cli import apply as apply_verb
from llamarig.cli import ask, choose, context, main
from llamarig.converge import apply as work
from llamarig.converge.hosts import host_variables
from llamarig.converge.observe import observe_hosts
from llamarig.converge.private import private_directory
from llamarig.converge.run import HostOutcome, Run
from llamarig.converge.wanted import wanted_for
from llamarig.errors import ExitCode, RigError, RigErrors
from llamarig.spec.load import load_project

ROOT = Path(__file__).resolve().parents[3]
DEMO = (ROOT / "inventory" / "demo.yml").read_text()
GOOD = ("anna", "bert")
BAD = "zoe"
DOCUMENT_ERROR = {"what", "where", "why", "fix"}


def spec(host: str) -> str:
    return DEMO.replace("host: demo", f"host: {host}", 1)


def broken(host: str) -> str:
    return spec(host).replace("services:", "servises:")


def unlocked(host: str) -> str:
    return spec(host).replace("size: 98362432", "size: unlocked")


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_printed", False)
    context._console.cache_clear()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "inventory").mkdir()
    for host in GOOD:
        (tmp_path / "inventory" / f"{host}.yml").write_text(spec(host))
    return tmp_path


def add(project: Path, text: str, name: str = f"{BAD}.yml") -> None:
    (project / "inventory" / name).write_text(text)


def run(monkeypatch: pytest.MonkeyPatch, project: Path, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["llamarig", "-C", str(project), *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return int(str(ended.value.code))


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every host that is looked at does not answer; which were asked is the list."""
    asked: list[str] = []

    def nobody_home(_playbook: str, hosts: dict[str, Any], _private: Path, **_more: Any) -> Run:
        asked.extend(hosts)
        event = {"action": "rig_observe", "status": "unreachable", "result": {"msg": "No route to host"}}
        return Run(4, {host: HostOutcome(failures=[event], ran=True) for host in hosts})

    for place in ("converge.observe", "prove.hosts"):
        monkeypatch.setattr(f"llamarig.{place}.run_playbook", nobody_home)
    return asked


def test_a_bad_spec_of_one_host_does_not_stop_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    add(project, broken(BAD))
    assert run(monkeypatch, project, "check", "--json") == 2
    told = {each["host"]: each["valid"] for each in json.loads(capsys.readouterr().out)["hosts"]}
    assert told == {"anna": True, "bert": True, BAD: False}


def test_plan_goes_on_with_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    add(project, broken(BAD))
    assert run(monkeypatch, project, "plan", "--all", "--json") == 2
    written = capsys.readouterr()
    anna, bert, zoe = json.loads(written.out)["hosts"]
    assert anna["fits"]
    assert bert["fits"]
    assert (zoe["host"], set(zoe["error"])) == (BAD, DOCUMENT_ERROR)
    assert "servises" in zoe["error"]["what"] + zoe["error"]["why"]
    assert "servises" in written.err


def test_a_plan_that_raises_is_its_hosts_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    (project / "measured").mkdir()
    (project / "measured" / "anna.json").write_text("{")
    assert run(monkeypatch, project, "plan", "--all", "--json") == 2
    anna, bert = json.loads(capsys.readouterr().out)["hosts"]
    assert "error" in anna
    assert bert["fits"]
    assert run(monkeypatch, project, "plan", "anna") == 2


@pytest.mark.parametrize("verb", ["drift", "status", "verify", "diff"])
def test_the_verbs_that_look_ask_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path, answers: list[str], verb: str
) -> None:
    add(project, broken(BAD))
    assert run(monkeypatch, project, verb, "--all", "--json") == 3, "the highest of 2 and 3"
    assert answers == list(GOOD)
    written = capsys.readouterr()
    told = {each["host"]: each["error"] for each in json.loads(written.out)["hosts"]}
    assert list(told) == [*GOOD, BAD]
    assert "servises" in told[BAD]["what"] + told[BAD]["why"]
    assert told["anna"]["what"] == "the host cannot be reached"
    assert all(set(each) == DOCUMENT_ERROR for each in told.values())


def test_a_rollback_of_the_others_waits_for_no_spec(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path, answers: list[str]
) -> None:
    add(project, broken(BAD))
    assert run(monkeypatch, project, "rollback", "--all", "--yes", "--json") == 3
    assert answers == list(GOOD)
    told = {each["host"]: each["error"]["what"] for each in json.loads(capsys.readouterr().out)["hosts"]}
    assert told[BAD] == "the spec has 2 errors"
    assert told["anna"] == "the host cannot be reached"


@pytest.mark.parametrize("make", [broken, unlocked])
def test_apply_refuses_one_host_first_and_goes_on_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    project: Path,
    answers: list[str],
    make: Callable[[str], str],
) -> None:
    add(project, make(BAD))
    said_before: list[str] = []
    looked = work.look

    def look(*words: Any, **named: Any) -> None:
        said_before.append(capsys.readouterr().err)
        looked(*words, **named)

    monkeypatch.setattr(work, "look", look)
    assert run(monkeypatch, project, "apply", "--all", "--yes", "--json") == 3
    assert answers == list(GOOD), "the refused host is not even looked at"
    assert f"refused: {BAD}; nothing is touched there, and the other 2 hosts are gone on with" in said_before[0]
    told = {each["host"]: each for each in json.loads(capsys.readouterr().out)["hosts"]}
    assert told[BAD]["refused"]
    assert told[BAD]["error"] == told[BAD]["refused"][0]
    assert [told[host]["refused"] for host in GOOD] == [[], []]
    assert not any(each["ok"] for each in told.values())


@pytest.mark.parametrize("make", [broken, unlocked])
def test_a_single_bad_host_is_refused_as_ever(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    project: Path,
    answers: list[str],
    make: Callable[[str], str],
) -> None:
    add(project, make(BAD))
    assert run(monkeypatch, project, "apply", BAD, "--json") == 2
    assert answers == []
    assert set(json.loads(capsys.readouterr().out)) == {"error", "errors"}


def test_when_every_host_is_bad_all_reasons_are_told(project: Path) -> None:
    for host in GOOD:
        add(project, unlocked(host), f"{host}.yml")
    with private_directory() as private, pytest.raises(RigErrors) as caught:
        work.prepare(project, load_project(project).hosts, private, work.Options())
    assert len(caught.value.errors) == len(GOOD)


def test_the_question_names_who_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask.sys, "stdin", io.StringIO())

    class Applied:
        host, running = "anna", ["chat"]

    with pytest.raises(RigError) as asked:
        apply_verb.ask_restart([Applied()], ["zoe"])  # type: ignore[list-item]  # what a question needs of a host
    assert asked.value.what == "without zoe, refused above: running services would be restarted: chat on anna"


def test_a_mistyped_name_among_several_touches_nothing(
    monkeypatch: pytest.MonkeyPatch, project: Path, answers: list[str]
) -> None:
    assert run(monkeypatch, project, "apply", "anna", "birt", "--yes") == 2
    assert answers == []


def test_a_bad_file_that_names_no_host_never_goes_by_the_name_of_another(project: Path) -> None:
    add(project, spec("bert"), "one.yml")
    (project / "inventory" / "bert.yml").write_text("services: []\n")
    context.set_project(project)
    found = choose.choose([], True, "plan")
    assert {loaded.host: bool(loaded.errors) for loaded in found} == {
        "anna": False,
        "bert": False,
        "inventory/bert.yml": True,
    }


def test_a_file_that_would_be_passed_over_is_told_beside_the_hosts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    add(project, spec("carl"), "carl.yaml")
    assert run(monkeypatch, project, "plan", "--all", "--json") == 2
    *_, stray = json.loads(capsys.readouterr().out)["hosts"]
    assert stray["host"] == "carl.yaml"
    assert "specs end in .yml" in stray["error"]["what"]


def test_a_become_password_that_cannot_be_read_is_its_hosts_own(
    project: Path, answers: list[str], tmp_path: Path
) -> None:
    secret = tmp_path / "open"
    secret.write_text("hunter2\n")
    secret.chmod(0o644)
    add(project, f"{spec(BAD)}\nconnection: {{user: ada, become: true, become-password-file: {secret}}}\n")
    loaded = load_project(project).hosts
    assert [each.host for each in loaded if each.errors] == []
    wanted = {each.host: wanted_for(project, each) for each in loaded}
    found = observe_hosts(project, loaded, wanted)
    assert answers == list(GOOD)
    assert isinstance(found[BAD], RigError)
    assert found[BAD].what == "the become password file is open to others"
    with private_directory() as private:
        prepared = work.prepare(project, loaded, private, work.Options())
        assert [bool(host.refused) for host in prepared] == [False, False, True]
        secret.chmod(0o600)
        variables = host_variables(project, loaded[-1], wanted[BAD], private)
    assert "hunter2" not in json.dumps(variables), "the password itself stays in its file"
    assert prepared[-1].error is not None
    assert prepared[-1].error.code == ExitCode.BAD_INPUT
