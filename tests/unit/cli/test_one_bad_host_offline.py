"""The verbs that plan, write or diagnose go on with the other hosts when one spec is bad, and end with 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llamarig.cli import context, main
from llamarig.converge.run import HostOutcome, Run
from llamarig.errors import ExitCode
from tests.support.doctor_bundles import HEALTHY

ROOT = Path(__file__).resolve().parents[3]
DEMO = (ROOT / "inventory" / "demo.yml").read_text()
GOOD = ["anna", "bert"]
BAD = "zoe"
ERROR = {"what", "where", "why", "fix"}
VERBS = ["plan --solve slots", "render --out {out}", "lock --check --offline", "doctor"]


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_printed", False)
    context._console.cache_clear()

    def healthy(_playbook: str, hosts: dict[str, Any], _private: Path, **_more: Any) -> Run:
        return Run(0, {host: HostOutcome(ran=True, results={"rig_doctor": {"collected": HEALTHY}}) for host in hosts})

    monkeypatch.setattr("llamarig.converge.collect.run_playbook", healthy)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "headers").symlink_to(ROOT / "headers")
    for host in GOOD:
        write(tmp_path, host)
    return tmp_path


def write(project: Path, host: str, services: str = "services:") -> None:
    text = DEMO.replace("host: demo", f"host: {host}", 1).replace("services:", services)
    (project / "inventory" / f"{host}.yml").write_text(text)


def run(monkeypatch: pytest.MonkeyPatch, project: Path, verb: str, *more: str) -> int:
    monkeypatch.setattr(context, "_printed", False)
    monkeypatch.setattr("sys.argv", ["llamarig", "-C", str(project), *verb.format(out=project / "out").split(), *more])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return int(str(ended.value.code))


def documents(printed: str) -> dict[str, dict[str, Any]]:
    """By host, whatever the verb calls the list and the name."""
    data = json.loads(printed)
    return {each.get("host", each.get("subject")): each for each in data.get("hosts", data.get("subjects"))}


@pytest.mark.parametrize("verb", VERBS)
def test_the_others_are_gone_on_with_and_the_bad_one_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path, verb: str
) -> None:
    assert run(monkeypatch, project, verb, "--all", "--json") == ExitCode.OK
    alone = documents(capsys.readouterr().out)
    write(project, BAD, "servises:")
    assert run(monkeypatch, project, verb, "--all", "--json") == ExitCode.BAD_INPUT
    written = capsys.readouterr()
    told = documents(written.out)
    assert list(told) == [*GOOD, BAD]
    assert {host: told[host] for host in GOOD} == alone, "as if the bad one were not there"
    assert set(told[BAD]["error"]) == ERROR
    assert f"{BAD}.yml" in written.err
    assert run(monkeypatch, project, verb, "--all") == ExitCode.BAD_INPUT
    in_words = capsys.readouterr()
    assert f"{BAD}.yml" in in_words.err
    assert "everything is locked" not in in_words.out
    assert all(host in in_words.out for host in GOOD) or verb.startswith("lock")


@pytest.mark.parametrize("verb", VERBS)
def test_with_nobody_to_go_on_with_all_reasons_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path, verb: str
) -> None:
    write(project, BAD, "servises:")
    assert run(monkeypatch, project, verb, BAD, "--json") == ExitCode.BAD_INPUT
    assert set(json.loads(capsys.readouterr().out)) == {"error", "errors"}
    assert not (project / "out").exists()


@pytest.mark.parametrize("verb", VERBS)
def test_a_mistyped_name_among_several_is_the_commands_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path, verb: str
) -> None:
    assert run(monkeypatch, project, verb, "anna", "birt", "--json") == ExitCode.BAD_INPUT
    assert json.loads(capsys.readouterr().out)["error"]["fix"] == "did you mean bert?"
    assert not (project / "out").exists()


def test_a_host_that_has_no_such_service_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    path = project / "inventory" / "anna.yml"
    path.write_text(path.read_text().replace("  chat:\n", "  talk:\n"))
    assert run(monkeypatch, project, "plan --solve slots --service chat", "--all", "--json") == ExitCode.BAD_INPUT
    told = documents(capsys.readouterr().out)
    assert told["anna"]["error"]["what"] == "anna has no service 'chat'"
    assert told["bert"]["value"] > 0


def test_a_setting_that_there_is_not_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    write(project, BAD, "servises:")
    assert run(monkeypatch, project, "plan --solve contxt", "--all", "--json") == ExitCode.BAD_INPUT
    assert len(json.loads(capsys.readouterr().out)["errors"]) == 1


def test_a_directory_that_is_not_ours_keeps_back_its_own_host_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    (project / "out" / "anna").mkdir(parents=True)
    (project / "out" / "anna" / "mine").write_text("precious")
    assert run(monkeypatch, project, "render --out {out}", "--all", "--json") == ExitCode.BAD_INPUT
    told = documents(capsys.readouterr().out)
    assert "not made by" in told["anna"]["error"]["what"]
    assert (project / "out" / "bert" / "manifest.json").is_file()
    assert [path.name for path in (project / "out" / "anna").iterdir()] == ["mine"]
