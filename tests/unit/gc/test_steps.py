"""The steps of the playbook on a host's trees: decided on the controller, removed by the real module, and proven."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamarig.compare import gc as compare_gc
from tests.support.artifacts.onhost import load
from tests.support.compare.cases import observation, sha, wanted_state
from tests.support.gc_tree import FORMER, NOW, OLD, Tree, gc

ROOT = Path(__file__).resolve().parents[3]
rig_gc = load("action/rig_gc.py")


class Task:
    """What an action plugin knows of its task."""

    def __init__(self, args: dict[str, Any]) -> None:
        self.args, self.async_val, self.check_mode = args, 0, False


class Host:
    """A host whose module runs here, on the trees of the test."""

    def __init__(self, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree = tree
        self.spared: list[str] = []
        """Paths that the module says to have removed and has not."""
        monkeypatch.setattr(compare_gc, "RELEASES", str(tree.base / "opt/releases"))
        monkeypatch.setattr(rig_gc.ActionBase, "run", lambda *_words, **_named: {})
        base = wanted_state()
        model = replace(base.models[0], path=str(tree.models / "sha256" / sha("model")), links=())
        self.wanted = replace(base, release=replace(base.release, id=NOW), models=(model,))
        self.observed = observation(self.wanted)
        tree.model("model")

    def step(self, **args: Any) -> dict[str, Any]:
        plugin = object.__new__(rig_gc.ActionModule)
        plugin._task = Task({"wanted": self.wanted.to_json(), "observed": self.observed, **args})
        plugin._execute_module = self._module
        answer: dict[str, Any] = plugin.run(None, {})
        return answer

    def _module(self, _name: str, module_args: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        assert task_vars == {}
        params = {"search": True, "things": [], **module_args}
        if params.pop("state") == "listed":
            return {"changed": False, "listing": gc.listing(params, self.tree.trees)}
        real = [each for each in params["things"] if each["path"] not in self.spared]
        answer: dict[str, Any] = gc.absent({**params, "things": real}, False, self.tree.trees)
        lies = [each for each in params["things"] if each["path"] in self.spared]
        answer["removed"] += [{**each, "bytes": 1} for each in lies]
        return answer


@pytest.fixture
def host(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tree, monkeypatch)


def test_what_nobody_names_goes_and_the_rest_is_proven(host: Host) -> None:
    old, model = host.tree.release(OLD), host.tree.model("old")
    host.tree.release(FORMER)
    host.tree.write("former.json", {"release": FORMER, "files": []})
    decision = host.step()
    assert [each["path"] for each in decision["gone"]] == [str(old), str(model)]
    assert decision["changed"] is False
    removed = host.step(state="absent", decision=decision)
    assert removed["changed"]
    proven = host.step(state="proven", decision=decision, removed=removed, now=host.observed)
    assert (proven["differs"], proven.get("failed")) == ([], None)
    assert [(each["path"], each["reason"]) for each in proven["removed"]] == [
        (each["path"], each["reason"]) for each in decision["gone"]
    ]
    assert host.step()["gone"] == []


def test_a_removal_that_did_not_come_true_fails(host: Host) -> None:
    old = host.tree.release(OLD)
    host.spared = [str(old)]
    decision = host.step()
    removed = host.step(state="absent", decision=decision)
    proven = host.step(state="proven", decision=decision, removed=removed, now=host.observed)
    assert proven["failed"]
    assert f"{old} is still there" in proven["msg"]
    assert "fix: run `llamarig verify demo`" in proven["msg"]


def test_a_host_that_cannot_be_judged_fails_with_what_to_do(host: Host) -> None:
    host.tree.record(release=7)
    host.observed["record-state"] = "edited"
    refused = host.step()
    assert refused["failed"]
    assert "the record does not tell what must stay" in refused["msg"]
    assert "fix: " in refused["msg"]


def test_whose_lock_it_is_decides_whether_halves_go(host: Host) -> None:
    (host.tree.models / "incoming").mkdir()
    half = host.tree.models / "incoming" / f"{sha('half')}.part"
    half.write_bytes(b"half")
    host.observed["lock"] = {"who": "anna", "from": "desk", "pid": 7, "run": "r7", "age-s": 1.0}
    assert host.step()["gone"] == []
    assert "anna on desk" in host.step()["busy"]
    for ours in ({"run": "r7"}, {"ignore_lock": True}):
        decided = host.step(**ours)
        assert ([each["path"] for each in decided["gone"]], decided["busy"]) == ([str(half)], "")


def test_only_what_was_agreed_to_goes(host: Host) -> None:
    old, late = host.tree.release(OLD), host.tree.release("late")
    assert [each["path"] for each in host.step(agreed=[f"release {old}"])["gone"]] == [str(old)]
    assert {each["path"]: each["reason"] for each in host.step(agreed=[])["kept"]}[
        str(late)
    ] == "it came after the question"


def test_the_playbook_touches_nothing_before_the_lock_is_held_and_gives_it_back() -> None:
    [play] = yaml.safe_load((ROOT / "playbooks/gc.yml").read_text())
    before = [task for task in play["tasks"] if "block" not in task]
    [work] = [task for task in play["tasks"] if "block" in task]
    assert [task.get("rig_gc", {}).get("state", "listed") for task in before if "rig_gc" in task] == ["listed"]
    assert before[-1]["rig_lock"]["operation"] == "take"
    assert [task["rig_gc"].get("state", "listed") for task in work["block"] if "rig_gc" in task] == [
        "listed",
        "absent",
        "proven",
    ]
    assert work["always"][0]["rig_lock"]["operation"] == "release"
