"""The order in which services are stopped and started, and expressions of the roles that guard something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLES = Path(__file__).resolve().parents[3] / "roles"


def read(path: str) -> Any:
    return yaml.safe_load((ROLES / path).read_text())


def evaluate(expression: str, **variables: Any) -> Any:
    """As Ansible does it, with the role's own variables, whose templates it trusts."""
    own = {name: trust_as_template(text) for name, text in read("services/vars/main.yml").items()}
    return Templar(loader=DataLoader(), variables={**own, **variables}).template(trust_as_template(expression))


@pytest.mark.parametrize("tasks", ["configure", "start_former"])
def test_all_services_are_stopped_before_one_is_started(tasks: str) -> None:
    """One may take the port that another one leaves."""
    found = read(f"services/tasks/{tasks}.yml")
    stop = next(at for at, task in enumerate(found) if "'systemctl', 'stop'" in str(task))
    start = next(at for at, task in enumerate(found) if "'state': 'restarted'" in str(task))
    assert stop < start
    units = found[start]["ansible.builtin.systemd_service"], found[start]["loop"]
    assert units[1].strip("{} ") in str(found[stop])


@pytest.mark.parametrize(("uid", "holds"), [(990, True), (0, False)])
def test_a_service_user_that_is_root_is_refused(uid: int, holds: bool) -> None:
    task = next(each for each in read("base/tasks/preflight.yml") if "is root" in each["name"])[
        "ansible.builtin.assert"
    ]
    observed = {"users": {"llama-chat": {"uid": uid}, "llama-gone": None}}
    assert evaluate(f"{{{{ {task['that']} }}}}", base_observed=observed) is holds
    assert ("llama-chat" in evaluate(task["fail_msg"], base_observed=observed)) is not holds


def test_what_ran_before_is_not_stopped_and_no_key_is_kept_as_a_way_back() -> None:
    known = {
        "services_todo": {"file": ["/etc/llamarig/keys/old.keys", "/etc/systemd/system/llama-old.service"]},
        "services_restarts": ["a", "b"],
        "services_wanted": {
            "services": [{"name": "a", "unit": "llama-a.service"}, {"name": "b", "unit": "llama-b.service"}],
            "files": [{"path": "/etc/x"}],
            "models": [],
        },
        "services_observed": {
            "units": {
                "llama-a.service": {"active": "active", "drop-ins": []},
                "llama-b.service": {"active": "failed", "drop-ins": []},
            }
        },
    }
    stopped = next(each for each in read("services/tasks/restore.yml") if each["name"] == "Stop what never ran")
    assert evaluate(stopped["loop"], **known) == ["llama-b.service"]
    kept = evaluate("{{ __services_state }}", **known)
    assert "/etc/systemd/system/llama-old.service" in kept
    assert not [path for path in kept if "/keys/" in path]
    assert "/etc/llamarig/keys/old.keys" in evaluate("{{ __services_gone }}", **known)
