"""A role's public surface is its defaults, and its argument specs say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"
NAMES = sorted(path.name for path in ROLES.iterdir())


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("role", NAMES)
def test_argument_specs_equal_the_defaults(role: str) -> None:
    defaults = read(ROLES / role / "defaults/main.yml")
    options = read(ROLES / role / "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: option["default"] for name, option in options.items()} == defaults
    assert all(option["description"] for option in options.values())
    assert all(name.startswith(f"{role}_") for name in defaults)


@pytest.mark.parametrize("role", NAMES)
def test_internals_are_marked_and_no_default_hides_among_them(role: str) -> None:
    internals = ROLES / role / "vars/main.yml"
    if internals.exists():
        assert all(name.startswith(f"__{role}_") for name in read(internals))


@pytest.mark.parametrize("role", NAMES)
def test_what_a_role_puts_on_a_host_it_can_take_away(role: str) -> None:
    assert tasks_of(read(ROLES / role / "tasks/remove.yml"))


def tasks_of(content: Any) -> list[dict[str, Any]]:
    found = []
    for task in content or []:
        found.append(task)
        for part in ("block", "rescue", "always"):
            found += tasks_of(task.get(part))
    return found


@pytest.mark.parametrize("role", NAMES)
def test_every_command_says_whether_it_changed_something_and_why(role: str) -> None:
    for path in (ROLES / role / "tasks").glob("*.yml"):
        text = path.read_text()
        for task in tasks_of(yaml.safe_load(text)):
            assert not any(key.endswith(("shell", "raw", "script")) for key in task), f"{path}: {task['name']}"
            if "ansible.builtin.command" not in task:
                continue
            assert "changed_when" in task, f"{path}: {task['name']}"
            block = text[text.index(f"name: {task['name']}\n") :].split("\n- name:", 1)[0]
            assert "#" in block, f"{path}: {task['name']} has no reason"


@pytest.mark.parametrize("role", NAMES)
def test_nothing_but_builtin_and_our_own_modules(role: str) -> None:
    keywords = {
        "name",
        "when",
        "loop",
        "loop_control",
        "register",
        "block",
        "rescue",
        "always",
        "vars",
        "environment",
        "changed_when",
        "failed_when",
        "no_log",
        "check_mode",
        "notify",
        "until",
        "retries",
        "delay",
        "ignore_unreachable",
        "tags",
    }
    for path in (ROLES / role / "tasks").glob("*.yml"):
        for task in tasks_of(read(path)):
            actions = set(task) - keywords
            assert all(each.startswith(("ansible.builtin.", "rig_")) for each in actions), f"{path}: {actions}"


def test_keys_are_never_logged() -> None:
    (task,) = [task for task in tasks_of(read(ROLES / "services/tasks/install.yml")) if "rig_keys" in task]
    assert task["no_log"] is True
