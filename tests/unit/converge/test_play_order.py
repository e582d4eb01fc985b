"""The order of site.yml: what is refused has touched nothing, and what is recorded was proven before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]


def flat(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for task in tasks:
        found.append(task)
        for part in ("block", "rescue", "always"):
            found += flat(task.get(part, []))
    return found


def names(*parts: str) -> list[str]:
    """Role and entry point, or action, of each task of the play, in order."""
    [play] = yaml.safe_load((ROOT / "playbooks/site.yml").read_text())
    steps = []
    for task in flat(play["tasks"]):
        role = task.get("ansible.builtin.include_role")
        steps.append(
            f"{role['name']}/{role.get('tasks_from', 'main')}" if role else next(iter(set(task) & {*parts}), "")
        )
    return [step for step in steps if step]


def test_flags_and_ports_are_refused_before_anything_that_runs_is_touched() -> None:
    steps = names("rig_prove", "rig_lock")
    order = ["services/preflight", "services/hold", "models/main", "services/main", "record/started", "rig_prove"]
    assert [step for step in steps if step in order] == order
    assert steps.index("llama_cpp/main") < steps.index("services/preflight")


def test_the_record_is_written_after_the_proof_and_the_held_state_forgotten_last() -> None:
    steps = names("rig_prove")
    assert steps.index("rig_prove") < steps.index("services/restore") < steps.index("record/main")
    tasks = yaml.safe_load((ROOT / "roles/record/tasks/configure.yml").read_text())
    assert [task["rig_switch"]["operation"] for task in tasks if "rig_switch" in task] == ["keep", "done"]
    assert "rig_record" in tasks[1]


def test_a_refused_flag_is_outside_of_what_is_put_back() -> None:
    [play] = yaml.safe_load((ROOT / "playbooks/site.yml").read_text())
    [change] = [task for task in flat(play["tasks"]) if "rescue" in task]
    inside = [task.get("ansible.builtin.include_role", {}).get("tasks_from") for task in flat(change["block"])]
    assert "preflight" not in inside
