"""Asking hosts whether they are in use: who is asked what, how long, and what becomes of answers and of silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamarig.converge.apply import Options
from llamarig.converge.run import HostOutcome, Run
from llamarig.errors import RigError
from llamarig.fleet import in_use
from llamarig.fleet.in_use import UseGate, hosts_in_use
from llamarig.fleet.policy import Rules, Use

DEMO = Path(__file__).resolve().parents[3] / "inventory/demo.yml"
WANTED = {
    "credentials": [],
    "release": {"id": "r"},
    "services": [
        {
            "name": "chat",
            "unit": "llama-chat.service",
            "address": "127.0.0.1",
            "port": 8080,
            "tls": False,
            "keyed": False,
            "backend": "cpu",
            "argv": [],
        }
    ],
}
VARIABLES = {"ansible_host": "192.0.2.1", "llamarig_wanted": WANTED, "llamarig_probe": {}}
CLOCK = {"utc-offset-s": 0, "timezone": ""}

Asked = list[dict[str, dict[str, Any]]]


def answer(processing: int = 0, users: tuple[str, ...] = ()) -> dict[str, Any]:
    chat = {"running": True, "processing": processing, "recent": 0, "error": ""}
    return {"users": list(users), "services": {"chat": chat}, "clock": CLOCK}


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Asked]:
    """Lets hosts answer, one answer a run; returns what each run was asked."""

    def install(*runs: Mapping[str, dict[str, Any] | None]) -> Asked:
        asked: Asked = []

        def run(playbook: str, hosts: dict[str, dict[str, Any]], _private: Path, *, sink: object) -> Run:
            assert playbook == "busy"
            assert sink is None
            answers = runs[len(asked)]
            asked.append(hosts)
            outcomes = {}
            for host in hosts:
                idle = answers[host]
                failure = {"event": "result", "status": "unreachable", "result": {"msg": "No route to host"}}
                outcomes[host] = HostOutcome(
                    ran=True,
                    failures=[failure] if idle is None else [],
                    results={} if idle is None else {"rig_idle": {"idle": idle}},
                )
            return Run(0, outcomes)

        monkeypatch.setattr(in_use, "run_playbook", run)
        return asked

    return install


def variables(*hosts: str) -> dict[str, dict[str, Any]]:
    return dict.fromkeys(hosts, VARIABLES)


def test_one_run_asks_all_and_a_second_waits_for_those_that_drain(play: Callable[..., Asked]) -> None:
    asked = play({"a": answer(), "b": answer(2), "c": answer(1, ("ann on tty1",))}, {"b": answer()})
    found = hosts_in_use(dict.fromkeys("abc", Rules(drain_s=30)), variables(*"abc"))
    assert found["a"] is None
    assert found["b"] is None
    assert isinstance(found["c"], Use)
    assert [sorted(hosts) for hosts in asked] == [["a", "b", "c"], ["b"]]
    assert [hosts["b"]["llamarig_busy"]["wait_s"] for hosts in asked] == [0, 30]
    assert [each["name"] for each in asked[0]["a"]["llamarig_busy"]["services"]] == ["chat"]


def test_no_wanted_state_is_sent_to_a_look(play: Callable[..., Asked]) -> None:
    asked = play({"a": answer()})
    hosts_in_use({"a": Rules()}, variables("a"))
    assert asked[0]["a"].keys() == {"ansible_host", "llamarig_busy"}


def test_a_host_that_still_answers_requests_in_the_end_is_in_use(play: Callable[..., Asked]) -> None:
    play({"a": answer(2)}, {"a": answer(1)})
    found = hosts_in_use({"a": Rules()}, variables("a"))["a"]
    assert isinstance(found, Use)
    assert found.reason == "chat answers 1 request"


def test_nobody_waits_where_the_policy_or_the_caller_does_not(play: Callable[..., Asked]) -> None:
    asked = play({"a": answer(2), "b": answer(2)})
    found = hosts_in_use({"a": Rules(drain_s=0), "b": Rules(requests="defer")}, variables("a", "b"))
    assert [isinstance(use, Use) for use in found.values()] == [True, True]
    assert len(asked) == 1
    asked = play({"a": answer(2)})
    assert isinstance(hosts_in_use({"a": Rules()}, variables("a"), wait=False)["a"], Use)
    assert len(asked) == 1


def test_a_host_of_which_nothing_is_asked_is_left_in_peace(play: Callable[..., Asked]) -> None:
    asked = play()
    assert hosts_in_use({"a": Rules(requests="ignore", users="ignore")}, variables("a")) == {"a": None}
    assert asked == []


def test_servers_are_not_asked_where_requests_are_ignored(play: Callable[..., Asked]) -> None:
    asked = play({"a": {"users": [], "services": {}, "clock": CLOCK}})
    assert hosts_in_use({"a": Rules(requests="ignore")}, variables("a")) == {"a": None}
    assert asked[0]["a"]["llamarig_busy"] == {"services": [], "minutes": 0, "wait_s": 0}


def test_a_host_that_does_not_answer_gives_its_error(play: Callable[..., Asked]) -> None:
    play({"a": None, "b": answer()})
    found = hosts_in_use({"a": Rules(), "b": Rules()}, variables("a", "b"))
    assert isinstance(found["a"], RigError)
    assert found["b"] is None


@pytest.fixture
def project(tmp_path: Path) -> Path:
    document = yaml.safe_load(DEMO.read_text()) | {"connection": {"address": "192.0.2.1"}}
    (tmp_path / "inventory").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"inventory/{name}.yml").write_text(yaml.safe_dump(document | {"host": name}))
    (tmp_path / "inventory/fleet.yml").write_text("schema-version: 1\nrollout: {busy: {drain-s: 0}}\n")
    return tmp_path


def test_the_gate_names_hosts_that_must_wait_and_why(play: Callable[..., Asked], project: Path) -> None:
    asked = play({"a": answer(1), "b": answer()})
    assert UseGate(project, Options())(["a", "b"]) == {"a": "chat answers 1 request"}
    assert asked[0]["a"]["ansible_host"] == "192.0.2.1"
    assert "llamarig_wanted" not in asked[0]["a"]
    play({"a": None, "b": answer()})
    assert UseGate(project, Options())(["a", "b"]).keys() == {"a"}


def test_the_gate_stays_shut_where_no_spec_can_be_applied(play: Callable[..., Asked], project: Path) -> None:
    asked = play()
    path = project / "inventory/a.yml"
    path.write_text(
        path.read_text().replace("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", "unlocked")
    )
    assert "unlocked" in UseGate(project, Options())(["a"])["a"]
    assert asked == []
