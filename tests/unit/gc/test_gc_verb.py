"""`llamarig gc`: a question first, one bad host its own, nothing touched by a check, exit codes by host."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llamarig.cli import context, main
from llamarig.cli.gc_view import size
from llamarig.converge import gc as work
from llamarig.converge.run import HostOutcome, Run
from llamarig.errors import RigError

ROOT = Path(__file__).resolve().parents[3]
DEMO = (ROOT / "inventory" / "demo.yml").read_text()
GIB = 2**30
OLD = {"kind": "release", "path": "/opt/llamarig/releases/old", "bytes": 3 * GIB, "reason": "no spec", "id": [1, 2]}
KEPT = {
    "kind": "release",
    "path": "/opt/llamarig/releases/now",
    "bytes": GIB,
    "reason": "the spec wants it",
    "id": [1, 3],
}
TRAP = {"path": "/var/lib/llamarig/models/trap", "what": "a link to /etc\x1b[2J"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(context, "_printed", False)
    context._console.cache_clear()
    (tmp_path / "inventory").mkdir()
    for host in ("anna", "bert"):
        (tmp_path / "inventory" / f"{host}.yml").write_text(DEMO.replace("host: demo", f"host: {host}", 1))
    return tmp_path


class Play:
    """Stands in for Ansible: answers as the playbook does, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], dict[str, Any]]] = []
        self.gone: list[dict[str, Any]] = [OLD]
        self.left: list[dict[str, Any]] = []
        self.busy = ""
        self.fails: dict[str, str] = {}
        self.breaks: dict[str, Any] | None = None
        """How the removal fails after the look has gone well."""

    def __call__(self, playbook: str, hosts: dict[str, Any], _private: Path, **named: Any) -> Run:
        assert playbook == "gc"
        extra = named["extra"]
        self.asked.append((list(hosts), extra))
        return Run(0, {host: self._outcome(host, bool(extra.get("llamarig_gc_look"))) for host in hosts})

    def _outcome(self, host: str, look: bool) -> HostOutcome:
        if host in self.fails:
            event = {"action": "rig_gc", "status": "failed", "result": {"msg": self.fails[host]}}
            return HostOutcome(failures=[event], ran=True)
        if self.breaks is not None and not look:
            event = {"action": "rig_gc", "status": "failed", "result": self.breaks}
            return HostOutcome(failures=[event], ran=True, results={"rig_gc": self.breaks})
        if look:
            told: dict[str, Any] = {"gone": self.gone, "kept": [KEPT], "unknown": [TRAP], "busy": self.busy}
        else:
            told = {"removed": self.gone, "left": self.left, "differs": []}
        return HostOutcome(ran=True, results={"rig_gc": told})


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    made = Play()
    monkeypatch.setattr(work, "run_playbook", made)
    return made


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch, project: Path) -> Callable[..., int]:
    def run(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["llamarig", "-C", str(project), "gc", *words])
        with pytest.raises(SystemExit) as ended:
            main.main()
        return int(str(ended.value.code))

    return run


def test_a_check_tells_what_goes_and_why_and_touches_nothing(
    rig: Callable[..., int], play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rig("anna", "--check") == 0
    said = capsys.readouterr().out
    assert "anna: 1 thing, 3.0 GiB may go" in said
    for word in (
        OLD["path"],
        "no spec",
        KEPT["path"],
        "the spec wants it",
        TRAP["path"],
        "a link to /etc",
        "nothing was touched",
    ):
        assert word in said
    assert "\x1b" not in said
    assert [extra.get("llamarig_gc_look") for _, extra in play.asked] == [True]


def test_without_a_yes_and_a_terminal_nothing_goes(
    rig: Callable[..., int], play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rig("anna") == 2
    assert "1 thing, 3.0 GiB, would go from anna" in capsys.readouterr().err
    assert len(play.asked) == 1


def test_what_was_agreed_to_goes_and_is_told(
    rig: Callable[..., int], play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rig("--all", "--yes", "--json", "--build-cache", "--break-lock") == 0
    (first, look), (second, removal) = play.asked
    assert first == second == ["anna", "bert"]
    assert look["llamarig_gc_build_cache"] is removal["llamarig_gc_build_cache"] is True
    assert removal["llamarig_break_lock"] is True
    assert removal["llamarig_gc_agreed"] == {host: [f"release {OLD['path']}"] for host in first}
    anna, _ = json.loads(capsys.readouterr().out)["hosts"]
    assert anna["gone"] == [{"kind": "release", "path": OLD["path"], "mib": 3072.0, "reason": "no spec"}]
    assert (anna["ok"], anna["removed"], anna["mib"], anna["error"]) == (True, True, 3072.0, None)


def test_where_nothing_goes_nothing_is_asked_and_nothing_runs(
    rig: Callable[..., int], play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    play.gone = []
    assert rig("anna") == 0
    assert len(play.asked) == 1
    assert "anna: nothing to remove" in capsys.readouterr().out


def test_a_host_that_somebody_works_on_is_left_alone_and_the_others_are_not(
    rig: Callable[..., int], play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    play.busy = "carl on desk (process 7)"
    assert rig("anna", "--yes") == 3
    assert len(play.asked) == 1
    assert "another apply holds this host's lock: carl on desk" in capsys.readouterr().err
    assert rig("anna", "--check") == 0


def test_a_host_that_cannot_be_judged_does_not_stop_the_others(
    rig: Callable[..., int], play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    play.fails["bert"] = "bert: the record does not tell what must stay\n  why: it was edited\n  fix: apply first"
    assert rig("--all", "--yes", "--json") == 3
    assert [hosts for hosts, _ in play.asked] == [["anna", "bert"], ["anna"]]
    anna, bert = json.loads(capsys.readouterr().out)["hosts"]
    assert anna["removed"]
    assert bert["error"] == {
        "what": "the record does not tell what must stay",
        "where": "bert",
        "why": "it was edited",
        "fix": "apply first",
    }
    assert bert["removed"] is False


@pytest.mark.parametrize("edit", [("services:", "servises:"), ("size: 98362432", "size: unlocked")])
def test_a_spec_that_does_not_say_what_must_stay_is_its_hosts_own(
    rig: Callable[..., int], play: Play, project: Path, capsys: pytest.CaptureFixture[str], edit: tuple[str, str]
) -> None:
    spec = project / "inventory" / "bert.yml"
    spec.write_text(spec.read_text().replace(*edit))
    assert rig("--all", "--yes", "--json") == 2
    assert [hosts for hosts, _ in play.asked] == [["anna"], ["anna"]]
    _, bert = json.loads(capsys.readouterr().out)["hosts"]
    assert bert["error"]["what"]


def test_what_stayed_after_all_is_told(rig: Callable[..., int], play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play.left = [{**KEPT, "reason": "process 7 (x) uses it by now"}]
    assert rig("anna", "--yes") == 0
    said = capsys.readouterr()
    assert f"{KEPT['path']} stayed: process 7 (x) uses it by now" in said.err
    assert "1 thing removed, 3.0 GiB freed" in said.out


def test_what_was_removed_before_a_failure_is_told(
    rig: Callable[..., int], play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = {key: OLD[key] for key in ("kind", "path", "bytes")}
    play.breaks = {
        "removed": [gone],
        "left": [],
        "msg": "something could not be removed: /opt/x: Device or resource busy",
    }
    assert rig("anna", "--yes", "--json") == 3
    [anna] = json.loads(capsys.readouterr().out)["hosts"]
    assert (anna["ok"], anna["removed"], anna["gone"][0]["reason"]) == (False, True, "no spec")
    assert "Device or resource busy" in anna["error"]["what"]
    assert rig("anna", "--yes") == 3
    assert "anna: failed, 3.0 GiB freed before that" in capsys.readouterr().out


def test_a_host_that_falls_silent_is_not_said_to_be_as_it_was(
    rig: Callable[..., int], play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    play.breaks = {"msg": "the connection was lost"}
    assert rig("anna", "--yes") == 3
    assert "nothing was removed" not in capsys.readouterr().out
    play.fails["anna"] = "no"
    assert rig("anna", "--yes") == 3
    assert "anna: failed, nothing was removed" in capsys.readouterr().out


def test_a_fleet_that_is_rolled_over_is_left_alone(
    rig: Callable[..., int], play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rolling(_root: Path) -> None:
        raise RigError("a rollout is under way")

    monkeypatch.setattr("llamarig.fleet.rollout.lock.refuse_while_rolling", rolling)
    assert rig("--all", "--yes") == 2
    assert play.asked == []
    assert rig("--all", "--check") == 0
    assert rig("anna", "--yes") == 0


def test_an_ansible_that_ends_early_is_no_success(
    rig: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    assert project.is_dir()
    monkeypatch.setattr(
        work, "run_playbook", lambda _name, hosts, *_more, **_named: Run(4, {h: HostOutcome() for h in hosts}, "boom")
    )
    assert rig("anna", "--check") == 3
    assert "boom" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 KiB"), (4096, "4 KiB"), (5 * 2**20, "5.0 MiB"), (17_700_000_000, "16.5 GiB")]
)
def test_sizes_are_told_in_the_unit_that_fits(count: int, said: str) -> None:
    assert size(count) == said
