"""The layer below with real Ansible: this machine is looked at, and one that is not there."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamarig.converge.apply import Options
from llamarig.converge.private import private_directory
from llamarig.converge.run import HostOutcome, Run
from llamarig.converge.wanted import wanted_for
from llamarig.errors import ExitCode, RigError
from llamarig.fleet.rollout.ansible import AnsibleHands, _as_one, _result
from llamarig.fleet.rollout.hands import Pin
from llamarig.fleet.rollout.pin import wanted_digest
from llamarig.spec.load import load_project
from llamarig.spec.overlay import read_overlay

ROOT = Path(__file__).resolve().parents[4]


def describe(project: Path, name: str, connection: dict[str, Any], **chat: Any) -> None:
    spec = yaml.safe_load((ROOT / "inventory" / "demo.yml").read_text())
    spec["services"]["chat"] |= chat
    (project / "inventory").mkdir(exist_ok=True)
    path = project / "inventory" / f"{name}.yml"
    path.write_text(yaml.safe_dump(spec | {"host": name, "connection": connection}))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    describe(tmp_path, "here", {"type": "local"})
    describe(tmp_path, "gone", {"address": "127.0.0.1", "port": 1})
    return tmp_path


def test_hosts_are_pinned_looked_at_and_told_apart(project: Path) -> None:
    with private_directory() as private:
        hands = AnsibleHands(project, project / "r", private, Options(), lambda _event: None)
        pins = hands.load(["here", "gone"])
        assert all(isinstance(pin, Pin) for pin in pins.values())
        again = hands.load(["here"])
        assert again["here"] == pins["here"]
        seen = hands.look(["here", "gone"])
    # Whether this machine runs what the demo's spec says is no matter here: it has told what it runs.
    here = seen["here"]
    assert here.reached
    assert here.observed["os"]["id"]
    assert here.actions > 0 or (here.error is not None and "its spec says" in here.error.what)
    assert seen["gone"].error is not None
    assert not seen["gone"].reached


def test_a_pin_changes_with_the_spec_and_not_with_its_comments(project: Path) -> None:
    with private_directory() as private:
        hands = AnsibleHands(project, project / "r", private, Options(), lambda _event: None)
        before = hands.load(["here"])["here"]
        path = project / "inventory" / "here.yml"
        path.write_text("# a comment\n" + path.read_text())
        assert hands.load(["here"])["here"] == before
        describe(project, "here", {"type": "local"}, context=2048)
        after = hands.load(["here"])["here"]
    assert isinstance(before, Pin)
    assert isinstance(after, Pin)
    assert before.spec != after.spec
    assert before.wanted != after.wanted
    assert before.release == after.release


def test_a_pin_does_not_change_with_what_says_when_a_host_may_be_changed(project: Path) -> None:
    with private_directory() as private:
        hands = AnsibleHands(project, project / "r", private, Options(), lambda _event: None)
        before = hands.load(["here"])["here"]
        path = project / "inventory" / "here.yml"
        path.write_text(path.read_text() + "maintenance: {reboot: never}\n")
        after = hands.load(["here"])["here"]
        read = hands.loaded(["here"])[0].spec
    assert isinstance(before, Pin)
    assert isinstance(after, Pin)
    assert (after.spec, after.wanted, after.release) == (before.spec, before.wanted, before.release)
    assert after.whole != before.whole
    assert read is not None
    assert read.maintenance.reboot == "never", "it is read anew all the same"


def test_a_spec_that_cannot_be_loaded_is_its_hosts_own_error(project: Path) -> None:
    (project / "inventory" / "gone.yml").write_text("host: gone\nno-such-key: 1\n")
    with private_directory() as private:
        hands = AnsibleHands(project, project / "r", private, Options(), lambda _event: None)
        found = hands.load(["here", "gone", "nobody"])
    assert isinstance(found["here"], Pin)
    assert isinstance(found["gone"], RigError)
    assert isinstance(found["nobody"], RigError)


def test_every_reason_against_a_host_is_told() -> None:
    told = _as_one([RigError("is not locked", "h.yml:3", fix="lock it"), RigError("does not fit", code=ExitCode(3))])
    assert (told.what, told.where, told.fix, told.code) == ("is not locked; does not fit", "h.yml:3", "lock it", 3)


def test_what_a_host_was_to_become_is_kept_privately_and_taken_again(project: Path) -> None:
    place = project / "r"
    place.mkdir()
    with private_directory() as private:
        hands = AnsibleHands(project, place, private, Options(), lambda _event: None)
        hands.load(["here"])
        hands.keep(["here"])
        describe(project, "here", {"type": "local"}, context=2048)
        assert hands.load_pinned("here") is None
        assert hands.load_pinned("gone") is not None
        hands.keep(["here"])
    kept = place / "wanted" / "here.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "4096" in json.dumps(json.loads(kept.read_text())["services"])
    assert [path.name for path in kept.parent.iterdir()] == ["here.json"]


def test_a_password_that_was_asked_for_goes_with_what_was_kept(project: Path) -> None:
    place = project / "r"
    place.mkdir()
    describe(project, "here", {"address": "127.0.0.1", "user": "admin", "become": True})
    with private_directory() as private:
        hands = AnsibleHands(
            project, place, private, Options(become_password_file="/a/file/of/a/password"), lambda _event: None
        )
        hands.load(["here"])
        hands.keep(["here"])
        assert hands.load_pinned("here") is None
        assert hands._hosts["here"].variables["llamarig_become_password_file"] == "/a/file/of/a/password"
    assert "/a/file/of/a/password" not in (place / "wanted" / "here.json").read_text()


def event(status: str, action: str, words: str) -> dict[str, Any]:
    return {"event": "result", "status": status, "action": action, "task": "a task", "result": {"msg": words}}


@pytest.mark.parametrize(
    ("failures", "reached", "untouched"),
    [
        ([event("unreachable", "rig_push", "Connection timed out")], False, False),
        ([event("unreachable", "rig_lock", "No route to host")], False, False),
        ([event("failed", "rig_lock", "another apply holds this host's lock: kim")], True, True),
        ([event("failed", "rig_prove", "a check failed"), event("failed", "fail", "rolled back")], True, False),
    ],
)
def test_how_a_change_ended_is_read_from_its_failures(
    failures: list[dict[str, Any]], reached: bool, untouched: bool
) -> None:
    outcome = HostOutcome(failures=failures, ran=True)
    result = _result("here", Run(2, {"here": outcome}), 1.0)
    assert (result.reached, result.untouched) == (reached, untouched)
    assert result.error is not None


def test_a_failed_proof_is_told_by_its_own_checks_not_by_those_of_the_way_back() -> None:
    failed = event("failed", "rig_prove", "the proof failed")
    failed["result"]["checks"] = [{"name": "chat/slots", "ok": False}, {"name": "chat/port", "ok": True}]
    former = {"rig_prove": {"checks": [{"name": "chat/slots", "ok": True}, {"name": "chat/port", "ok": True}]}}
    outcome = HostOutcome(failures=[failed, event("failed", "fail", "rolled back")], ran=True, results=former)
    result = _result("here", Run(2, {"here": outcome}), 1.0)
    assert result.checks == {"passed": 1, "of": 2, "failed": ["chat/slots"]}
    outcome = HostOutcome(failures=[event("failed", "systemd_service", "no start")], ran=True, results=former)
    assert _result("here", Run(2, {"here": outcome}), 1.0).checks == {}
    proven = HostOutcome(ran=True, results=former)
    assert _result("here", Run(0, {"here": proven}), 1.0).checks == {"passed": 2, "of": 2, "failed": []}


def test_an_ansible_that_ended_before_a_host_was_begun_is_an_error() -> None:
    result = _result("here", Run(1, {"here": HostOutcome()}, "no such plugin"), 1.0)
    assert result.error is not None
    assert "no such plugin" in result.error.why


def test_an_overlay_stands_in_whenever_specs_are_read(project: Path) -> None:
    laid = project / "laid.yml"
    entry = {"key": "services.chat.context", "value": 2048, "reason": "a small machine", "unproven": ""}
    laid.write_text(yaml.safe_dump({"schema-version": 1, "host": "here", "replace": [entry]}))
    with private_directory() as private:
        plain = AnsibleHands(project, project / "r", private, Options(), lambda _event: None).load(["here", "gone"])
        (private / "laid").mkdir()
        hands = AnsibleHands(
            project, project / "r", private / "laid", Options(), lambda _event: None, overlay=read_overlay(laid)
        )
        pins = hands.load(["here", "gone"])
        wanted = wanted_for(project, load_project(project, read_overlay(laid)).named("here"))
    assert pins["gone"] == plain["gone"]
    assert pins["here"] != plain["here"]
    assert isinstance(pins["here"], Pin)
    assert pins["here"].wanted == wanted_digest(wanted.to_json())
