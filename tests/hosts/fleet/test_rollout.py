"""A fleet is rolled over: nothing to do, a change, a bad one, a pause, an edited spec, an abort, and the way back."""

from __future__ import annotations

import json
import stat
from typing import Any

import pytest
from lab import Host

from llamarig.fleet.rollout import control, journal
from llamarig.fleet.rollout.state import State

HOSTILE = "\x1b[31m{{ 7*7 }}<script>alert(1)</script>"


def records(place: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / journal.FILE).read_text().splitlines()]


def test_a_converged_fleet_is_looked_at_and_done_whatever_a_host_calls_itself(rolling: Any) -> None:
    before = {host.name: rolling.trace(host) for host in rolling.hosts}
    name = rolling.hosts[0].exec("hostname").output.strip()
    call(rolling.hosts[0], HOSTILE)
    try:
        ran = rolling.rig("start", "--all", "--yes").ok()
    finally:
        call(rolling.hosts[0], name)
    assert {each["phase"] for each in ran.data["hosts"].values()} == {"nothing-to-do"}
    assert ran.data["status"] == "done"
    assert {host.name: rolling.trace(host) for host in rolling.hosts} == before
    for text in (ran.stdout, ran.stderr, (rolling.place() / journal.FILE).read_text()):
        assert "\x1b[31m" not in text
        assert "<script>" not in text
    assert stat.S_IMODE((rolling.place() / journal.FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(rolling.place().parent.stat().st_mode) == 0o700


def call(host: Host, name: str) -> None:
    host.exec(["python3", "-c", "import socket, sys; socket.sethostname(sys.argv[1])", name])


@pytest.mark.full_fleet
def test_a_change_is_paused_behind_its_canary_goes_on_and_comes_back(rolling: Any) -> None:
    former, asked = rolling.context, rolling.other()
    newest, first, last = rolling.place(), rolling.hosts[0], rolling.hosts[-1]
    untouched = rolling.trace(last)
    rolling.want(asked)
    process = rolling.start()
    rolling.wait(first, "applying", since=newest)
    asked_of = rolling.rig("pause").ended(1)
    assert asked_of.data["driver"]["pid"] == process.pid
    stdout, stderr = process.communicate(timeout=900)
    assert process.returncode == 1, stdout + stderr
    told = json.loads(stdout)
    assert told["status"] == "paused"
    assert told["hosts"][first.name]["phase"] == "done"
    assert told["hosts"][first.name]["checks"]["failed"] == []
    assert {told["hosts"][name]["phase"] for name in rolling.names[1:]} == {"pending"}
    assert rolling.windows() == {first.name: asked, **dict.fromkeys(rolling.names[1:], former)}

    # A spec that is edited meanwhile is noticed at its host's turn.
    rolling.want(1024, hosts=[last])
    second = rolling.rig("resume", "--yes").ended(1)
    assert second.data["status"] == "incomplete"
    assert second.data["hosts"][last.name]["phase"] == "deferred"
    assert "changed since the rollout began" in second.data["hosts"][last.name]["reason"]
    assert rolling.trace(last) == untouched
    assert rolling.windows() == {**dict.fromkeys(rolling.names[:-1], asked), last.name: former}

    rolling.want(asked)
    third = rolling.rig("resume", "--yes").ok()
    assert third.data["status"] == "done"
    assert rolling.windows() == dict.fromkeys(rolling.names, asked)

    back = rolling.rig("rollback", "--yes").ok()
    assert back.data["status"] == "rolled-back"
    assert {each["phase"] for each in back.data["hosts"].values()} == {"rolled-back"}
    assert rolling.windows() == dict.fromkeys(rolling.names, former)
    returned = [each["host"] for each in records(rolling.place()) if each.get("phase") == "returning"]
    assert returned[-1] == first.name, "the canary comes back last"
    rolling.want(former)
    assert rolling.rig("start", "--all", "--yes").ok().data["status"] == "done"


def test_a_bad_change_touches_the_canary_alone_and_is_taken_back(rolling: Any) -> None:
    first, *others = rolling.hosts
    before = {host.name: rolling.trace(host) for host in others}
    former = rolling.context
    # The server starts, and does not tell of its slots: the proof fails.
    rolling.want(former, **{"unsafe-args": ["--no-slots"]})
    ran = rolling.rig("start", "--all", "--yes").ended(3)
    rolling.want(former)
    assert ran.data["status"] == "stopped"
    assert ran.data["hosts"][first.name]["phase"] == "rolled-back"
    assert ran.data["hosts"][first.name]["checks"]["failed"]
    assert ran.data["budget"] == {"allowed": 0, "used": 1}
    assert {ran.data["hosts"][host.name]["phase"] for host in others} == {"pending"}
    assert {host.name: rolling.trace(host) for host in others} == before
    assert rolling.windows() == dict.fromkeys(rolling.names, former)
    rolling.rig("resume", "--yes").ended(2)
    assert rolling.rig("start", "--all", "--yes").ok().data["hosts"][first.name]["phase"] == "nothing-to-do"


@pytest.mark.full_fleet
def test_an_abort_waits_for_the_host_in_progress(rolling: Any) -> None:
    former, asked, newest = rolling.context, rolling.other(), rolling.place()
    rolling.want(asked)
    process = rolling.start()
    rolling.wait(rolling.hosts[0], "applying", since=newest)
    rolling.rig("abort", "--yes").ended(1)
    stdout, stderr = process.communicate(timeout=900)
    assert process.returncode == 1, stdout + stderr
    assert State.read(rolling.place()).status == "aborted"
    assert control.asked(rolling.place()) == ""
    assert rolling.windows() == {rolling.names[0]: asked, **dict.fromkeys(rolling.names[1:], former)}
    assert rolling.rig("rollback", "--yes").ok().data["status"] == "rolled-back"
    rolling.want(former)
    assert rolling.windows() == dict.fromkeys(rolling.names, former)
