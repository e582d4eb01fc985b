"""What the roles walk over, what apply refuses, and whose lock may be taken over."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llamarig.converge import controller
from llamarig.converge.apply import HostApply, Options, to_converge
from llamarig.converge.decide import decide
from llamarig.converge.refuse import refusals
from llamarig.errors import ExitCode
from llamarig.plan.types import Finding, Plan, RamPlan
from tests.support.compare.cases import bare_observation, observation, wanted_state

WANTED = wanted_state()


def test_a_converged_host_gives_nothing_to_do() -> None:
    decision = decide(WANTED.to_json(), observation(WANTED))
    assert (decision.actions, decision.todo, decision.restarts) == ((), {}, ())


def test_a_bare_host_gives_every_kind_and_all_services() -> None:
    decision = decide(WANTED.to_json(), bare_observation(WANTED))
    assert {"package", "user", "directory", "release", "model", "credential", "file", "switch"} <= set(decision.todo)
    assert decision.restarts == tuple(service.name for service in WANTED.services)
    assert list(decision.todo) == sorted(decision.todo, key=list(decision.todo).index)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("/usr/local/lib/systemd/system", "no apply removes"),
        ("/usr/lib/systemd/system", "no apply removes"),
        ("/run/systemd/generator.late", "a generator"),
        ("/etc/systemd/system", ""),
        ("/run/systemd/system.control", ""),
    ],
)
def test_a_drop_in_that_an_apply_leaves_alone_is_named_with_who_removes_it(place: str, words: str) -> None:
    seen = observation(WANTED)
    path = f"{place}/{WANTED.services[0].unit}.d/x.conf"
    seen["units"][WANTED.services[0].unit]["drop-ins"] = [path]
    decision = decide(WANTED.to_json(), seen)
    assert [action.kind for action in decision.actions] == ["service"]
    assert [path in each and words in each for each in decision.stuck] == ([True] if words else [])


def test_one_edited_unit_restarts_its_own_service_alone() -> None:
    seen = observation(WANTED)
    unit = f"/etc/systemd/system/{WANTED.services[0].unit}"
    seen["files"][unit]["sha256"] = "0" * 64
    decision = decide(WANTED.to_json(), seen)
    assert decision.todo == {"file": [unit]}
    assert decision.restarts == (WANTED.services[0].name,)


def test_full_walks_everything_and_restarts_no_more_than_that() -> None:
    decision = decide(WANTED.to_json(), observation(WANTED), full=True)
    assert all(subjects == ["*"] for subjects in decision.todo.values())
    assert "port" not in decision.todo
    assert decision.restarts == ()


def test_a_host_with_nothing_to_do_is_left_alone_unless_asked() -> None:
    decision = decide(WANTED.to_json(), observation(WANTED))
    host = HostApply("demo", {"llamarig_wanted": WANTED.to_json()}, observation(WANTED), decision)
    assert to_converge([host], Options()) == []
    assert to_converge([host], Options(full=True)) == [host]
    assert to_converge([host], Options(verify=True)) == [host]


def test_only_running_services_are_asked_about() -> None:
    seen = observation(WANTED)
    names = [service.name for service in WANTED.services]
    for service in WANTED.services:
        seen["files"][f"/etc/systemd/system/{service.unit}"]["sha256"] = "0" * 64
    seen["units"][WANTED.services[0].unit]["active"] = "inactive"
    host = HostApply("demo", {"llamarig_wanted": WANTED.to_json()}, seen, decide(WANTED.to_json(), seen))
    assert host.running == names[1:]


def loaded(**content: Any) -> Any:
    spec = SimpleNamespace(model_dump=lambda **_how: content, mirror=None)
    return SimpleNamespace(host="demo", path=Path("demo.yml"), spec=spec)


def plan(fits: bool, *findings: Finding) -> Plan:
    return Plan("demo", fits, (), RamPlan(0.0, 0.0, {}), {}, findings)


@pytest.fixture
def _all_built(monkeypatch: pytest.MonkeyPatch) -> None:
    from llamarig.spec import unbuilt

    monkeypatch.setattr(unbuilt, "refused_by_apply", lambda _spec: [])


@pytest.mark.usefixtures("_all_built")
def test_what_fits_and_is_pinned_is_not_refused() -> None:
    note = Finding("x", "warning", "thin")
    assert refusals(loaded(sha256="ab"), plan(True, note), Path()) == []


def test_what_the_spec_keeps_from_apply_is_refused_before_anything_is_looked_at() -> None:
    root = Path(__file__).resolve().parents[3]
    content = (root / "inventory/demo.yml").read_text().replace("size: 98362432", "size: unlocked")
    error_words = [error.what for error in refusals(_host(content), plan(True), Path())]
    assert any("models.smol.size" in words for words in error_words)
    assert refusals(_host((root / "inventory/demo.yml").read_text()), plan(True), Path()) == []


def _host(content: str) -> Any:
    from llamarig.spec.load import load_project

    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "demo.yml").write_text(content)
        return load_project(Path(place)).valid(["demo"])[0]


@pytest.mark.usefixtures("_all_built")
def test_what_does_not_fit_is_a_finding_with_its_figures() -> None:
    finding = Finding("device-full", "error", "210 MiB too much on ada", "use q4_0", "ada")
    (error,) = refusals(loaded(), plan(False, finding), Path())
    assert (error.what, error.fix, error.code) == ("210 MiB too much on ada", "use q4_0", ExitCode.FINDING)
    (silent,) = refusals(loaded(), plan(False), Path())
    assert silent.code == ExitCode.FINDING


def test_only_a_process_of_this_machine_that_ended_is_gone() -> None:
    mine = controller.controller_facts()
    assert mine["pid"] == os.getpid()
    assert controller.is_gone(mine) is False, "it runs"
    child = subprocess.Popen(["sleep", "60"])
    theirs = {**mine, "pid": child.pid, "started": controller.process_started(child.pid)}
    assert controller.is_gone(theirs) is False
    assert controller.is_gone({**theirs, "started": "1"}) is True, "another process has its number now"
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert controller.is_gone(theirs) is True, "a zombie does no work"
    child.wait()
    assert controller.is_gone(theirs) is True
    assert controller.is_gone({**theirs, "machine": "another"}) is False, "who can tell"
    assert controller.is_gone({}) is False


def test_runs_are_told_apart() -> None:
    assert len({controller.new_run() for _ in range(50)}) == 50


def test_restarts_follow_the_order_of_the_wanted_state() -> None:
    turned = replace(WANTED, services=WANTED.services[::-1])
    names = decide(turned.to_json(), bare_observation(turned)).restarts
    assert names == tuple(service.name for service in turned.services)
