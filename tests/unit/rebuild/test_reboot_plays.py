"""What Ansible itself says of reboots: real runs on this machine (connection local), which is left as it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamarig.compare import probe_list
from llamarig.converge import run as runs
from llamarig.converge.hosts import reboot_policy
from llamarig.converge.private import private_directory
from llamarig.converge.run import run_playbook
from llamarig.fleet.rollout.ansible import _result
from llamarig.render import driver as rendered
from tests.support.compare.cases import wanted_state
from tests.support.docs.refusals import spec_of

ROOT = Path(__file__).resolve().parents[3]
SPEC = "driver: {flavour: open}\nmaintenance: {reboot: now, window: [Sat 02:00-06:00, Sun 02:00-06:00], timezone: UTC}"


def variables() -> dict[str, Any]:
    """Of a host that wants a driver, which this machine has not."""
    spec, _ = spec_of("cuda", SPEC)
    wanted = replace(wanted_state(), driver=rendered.driver(spec, Path("/nowhere")))
    return {
        "ansible_connection": "local",
        "ansible_python_interpreter": "/usr/bin/python3",
        "llamarig_wanted": wanted.to_json(),
        "llamarig_probe": probe_list(wanted),
        "llamarig_reboot_policy": reboot_policy(spec),
    }


def played(name: str, **more: Any) -> runs.Run:
    with private_directory() as private:
        return run_playbook(name, {"here": variables() | more}, private, extra={"llamarig_reboot_look": True})


def test_a_look_decides_with_the_windows_of_the_spec_and_reboots_nothing() -> None:
    run = played("rebuild")
    outcome = run.hosts["here"]
    assert outcome.failures == [], run.messages
    assert outcome.results["rig_reboot"]["reboot"]["verdict"] in ("not-needed", "refused")
    assert outcome.changed == 0


def test_an_apply_that_ends_for_the_reboot_is_told_by_the_role_that_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The role's own last task, on a driver that lacks a reboot alone."""
    for name in ("ansible.cfg", "plugins"):
        (tmp_path / name).symlink_to(ROOT / name)
    last = yaml.safe_load((ROOT / "roles/nvidia_driver/tasks/verify.yml").read_text())[-1]
    task = {"name": "Look whether it came true", "ansible.builtin.include_role": {"name": "nvidia_driver"}}
    write(tmp_path / "roles/nvidia_driver/tasks/main.yml", [last])
    write(tmp_path / "playbooks/verify.yml", [{"hosts": "all", "gather_facts": False, "tasks": [task]}])
    monkeypatch.setattr(runs, "data_root", lambda: tmp_path)
    action = {"kind": "driver", "subject": "reboot", "reason": "module 570 is loaded, wanted 610"}
    result = _result("here", played("verify", __nvidia_driver_left={"actions": [action]}), 1.0)
    assert result.error is not None
    assert result.error.what == "A reboot is needed before the driver is the one that the spec names."
    assert result.at_driver


def write(path: Path, content: list[Any]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(content))
