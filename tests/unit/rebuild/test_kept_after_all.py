"""A reboot that came true while its controller died: the next apply that proves the host keeps its kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

TASKS = Path(__file__).resolve().parents[3] / "roles/record/tasks/configure.yml"
NOTE = {"kernel": "6.12.120", "boot-id": "before", "at": "t", "tries": "1", "module": "1 open", "packages": "x"}
SEEN = {"kernel": "6.12.120", "boot-id": "since"}
DRIVER = {"reboot-tried": NOTE, "loaded": "610.57.04"}
WANTED = {"version": "610.57.04"}


def keeps(observed: dict[str, Any], driver: Any) -> bool:
    (task,) = [each for each in yaml.safe_load(TASKS.read_text()) if "rig_boot" in each]
    assert task["rig_boot"] == {"operation": "keep"}
    known = {"record_observed": observed, "record_wanted": {"driver": driver}}
    own = {name: trust_as_template(text) for name, text in task["vars"].items()}
    templar = Templar(loader=DataLoader(), variables={**own, **known})
    # As Ansible does it: the first that does not hold ends it.
    return all(templar.template(trust_as_template(f"{{{{ {each} }}}}")) for each in task["when"])


def test_the_kernel_of_a_reboot_that_came_true_is_kept() -> None:
    assert keeps(SEEN | {"driver": DRIVER}, WANTED) is True


@pytest.mark.parametrize(
    ("change", "driver"),
    [
        ({"driver": DRIVER | {"reboot-tried": None}}, WANTED),
        ({"driver": {}}, WANTED),
        ({"driver": None}, None),
        ({}, None),
        ({"kernel": "6.12.117"}, WANTED),
        ({"boot-id": "before"}, WANTED),
        ({"driver": DRIVER | {"loaded": ""}}, WANTED),
    ],
)
def test_without_such_a_reboot_the_host_is_not_asked(change: dict[str, Any], driver: Any) -> None:
    """No note, no driver, the former kernel again, not booted since, or without its module."""
    assert keeps(SEEN | {"driver": DRIVER} | change, driver) is False
