"""The plan of a rollout: each host's verdict, the waves, and each release to build once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamarig.cli import rollout_plan
from llamarig.converge.wanted import wanted_for
from llamarig.errors import ExitCode, RigError
from llamarig.fleet.plan import FleetPlan, HostPlan, Observation, plan_rollout
from llamarig.fleet.policy import Use, policy_of
from llamarig.plan import many
from llamarig.render.wanted import Wanted
from llamarig.spec.load import LoadedHost, load_project
from tests.support.compare.cases import RELEASE, observation
from tests.support.compare.driver_case import wanted_driver

ROOT = Path(__file__).resolve().parents[3]
NAMES = [f"host-{number}" for number in range(6)]


def seen_as(wanted: Wanted, **parts: Any) -> dict[str, Any]:
    """What a converged host says."""
    seen: dict[str, Any] = yaml.safe_load(yaml.safe_dump(observation(wanted)).replace(RELEASE, wanted.release.id))
    for model in wanted.models:
        entry, recorded = seen["models"][model.path], seen["record"]["files"][model.path]
        entry["size"] = entry["stat"][2] = recorded["stat"][2] = model.size
    return seen | parts


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "headers", tmp_path / "headers")
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory/fleet.yml").write_text("schema-version: 1\nrollout: {canary: 1, waves: [2], by: room}\n")
    demo = yaml.safe_load((ROOT / "inventory/demo.yml").read_text())
    for number, name in enumerate(NAMES):
        demo |= {"host": name, "labels": {"room": f"room-{number % 2}"}}
        demo["services"]["chat"]["listen"]["port"] = 8000 + number
        (tmp_path / f"inventory/{name}.yml").write_text(yaml.safe_dump(demo))
    return tmp_path


@pytest.fixture
def hosts(project: Path) -> list[LoadedHost]:
    return load_project(project).valid(None)


@pytest.fixture
def observed(project: Path, hosts: list[LoadedHost]) -> dict[str, Observation]:
    """Three that run a former release, one converged, one edited, one that is silent."""
    wanted = [wanted_for(project, loaded) for loaded in hosts]
    found: dict[str, Observation] = {
        each.host: seen_as(each, current="releases/4df29be4f-000000000000", releases={}) for each in wanted[:3]
    }
    edited = seen_as(wanted[4])
    edited["files"][wanted[4].files[0].path]["sha256"] = "0" * 64
    return found | {
        NAMES[3]: seen_as(wanted[3]),
        NAMES[4]: edited,
        NAMES[5]: RigError("the host cannot be reached", NAMES[5], "No route\nto host", code=ExitCode.HOST_FAILED),
    }


def planned(
    project: Path, hosts: list[LoadedHost], observed: dict[str, Observation], use: dict[str, Use | None] | None = None
) -> FleetPlan:
    return plan_rollout(project, hosts, observed, policy_of(hosts), use)


def test_each_host_has_its_verdict(project: Path, hosts: list[LoadedHost], observed: dict[str, Observation]) -> None:
    plan = planned(project, hosts, observed)
    verdicts = [plan.hosts[name].verdict for name in NAMES]
    assert verdicts == ["change", "change", "change", "nothing-to-do", "change", "unreachable"]
    assert plan.count("change") == 4
    assert plan.hosts[NAMES[0]].reason == "1 release, 1 switch"
    assert plan.hosts[NAMES[0]].former == "4df29be4f-000000000000"
    assert plan.hosts[NAMES[0]].restarts == ("chat",)
    assert plan.hosts[NAMES[5]].reason == "the host cannot be reached: No route"


def test_hosts_of_one_release_wait_for_one_build(
    project: Path, hosts: list[LoadedHost], observed: dict[str, Observation]
) -> None:
    plan = planned(project, hosts, observed)
    [(release, waiting)] = plan.builds.items()
    assert waiting == tuple(NAMES[:3])
    assert release == plan.hosts[NAMES[0]].release == plan.hosts[NAMES[4]].release


def test_the_waves_are_those_of_the_policy(
    project: Path, hosts: list[LoadedHost], observed: dict[str, Observation]
) -> None:
    plan = planned(project, hosts, observed)
    assert [len(wave.hosts) for wave in plan.waves] == [1, 2, 2, 1]
    assert sorted(plan.to_json()["hosts"]) == NAMES


def test_a_host_in_use_is_left_for_later_and_one_that_drains_is_not(
    project: Path, hosts: list[LoadedHost], observed: dict[str, Observation]
) -> None:
    use = {
        NAMES[0]: Use("logged in: ann on tty1"),
        NAMES[1]: Use("chat answers 1 request", drains=True),
        NAMES[3]: Use("logged in: bob on tty1"),
    }
    plan = planned(project, hosts, observed, use)
    assert plan.hosts[NAMES[0]].verdict == "in-use"
    assert plan.hosts[NAMES[0]].reason == "logged in: ann on tty1"
    assert plan.hosts[NAMES[1]].verdict == "change"
    assert plan.hosts[NAMES[1]].reason.endswith("chat answers 1 request, which is waited for")
    assert plan.hosts[NAMES[3]].verdict == "nothing-to-do"


def test_one_bad_host_does_not_stop_the_others(
    project: Path, hosts: list[LoadedHost], observed: dict[str, Observation]
) -> None:
    path = project / f"inventory/{NAMES[0]}.yml"
    path.write_text(path.read_text().replace("sha256: b179", "sha256: unlocked #"))
    again = load_project(project).hosts
    garbled = observed | {NAMES[1]: {"schema": 99}}
    plan = planned(project, again, garbled)
    assert plan.hosts[NAMES[0]].verdict == "refused"
    assert "`unlocked`" in plan.hosts[NAMES[0]].reason
    assert plan.hosts[NAMES[1]].verdict == "refused"
    assert plan.hosts[NAMES[2]].verdict == "change"


def test_many_hosts_are_planned_on_all_cores_with_the_same_result(
    project: Path, hosts: list[LoadedHost], observed: dict[str, Observation], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = planned(project, hosts, observed)
    monkeypatch.setattr(many, "WORTHWHILE", 2)
    monkeypatch.setattr(many.os, "sched_getaffinity", lambda _pid: {0, 1})
    assert planned(project, hosts, observed) == alone


def test_a_reboot_that_can_be_foreseen_is_told(
    project: Path, hosts: list[LoadedHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    managed = wanted_driver()
    assert managed is not None
    wanted = replace(wanted_for(project, hosts[3]), driver=managed)
    monkeypatch.setattr("llamarig.fleet.plan.wanted_for", lambda *_: wanted)
    seen: dict[str, Any] = seen_as(wanted)

    def host() -> HostPlan:
        return planned(project, hosts[3:4], {NAMES[3]: seen}).hosts[NAMES[3]]

    assert (host().verdict, host().to_json()["reboot"]) == ("nothing-to-do", None)
    seen["driver"]["loaded"] = "535.1"
    assert host().verdict == "change"
    needed = f"module 535.1 (open) is loaded, wanted {managed.version}"
    assert host().to_json()["reboot"] == {"needed": needed, "policy": "ask"}
    assert f"needs a reboot ({needed}), and `maintenance.reboot` is `ask`" in rollout_plan._row(host())[2]
