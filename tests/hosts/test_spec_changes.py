"""The spec changes: only what it names is touched, and what runs afterwards is what it says."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab
from lab.faults import main_pid
from lab.project import Project, chat, demo_spec
from lab.report import actions_of

UNIT = "llama-chat.service"
MODELS = "/var/lib/llamarig/models"
MODEL = f"{MODELS}/sha256/{demo_spec()['models']['smol']['sha256']}"
BUILT_FOR = b"Smollm2 135M 8k Lc100K Mix1 Ep2"
"""A name in the model's header; changed to another of the same length, it makes another, still valid, model."""


@pytest.fixture(scope="module")
def host(lab: Lab, provisioned_image: str, project: Project) -> Iterator[Host]:
    """One machine for all changes: each begins with the demo's spec and names all that it changes."""
    made = lab.host("changes", fresh=True, image=provisioned_image)
    project.describe(made)
    yield made
    lab.discard("changes")
    (project.inventory / "changes.yml").unlink(missing_ok=True)


def running_argv(host: Host) -> list[str]:
    return host.ssh(f"tr '\\0' '\\n' </proc/{main_pid(host, UNIT)}/cmdline").splitlines()


def test_a_changed_flag_restarts_the_service_with_it_and_builds_nothing(host: Host, project: Project) -> None:
    pid = main_pid(host, UNIT)
    spec = demo_spec()
    spec["services"]["chat"]["context"] = 2048
    project.describe(host, spec)
    announced = project.rig("diff", host.name, "--json")
    assert announced.code in {0, 1}, announced.stderr
    actions = actions_of(project.rig("apply", host.name, "--yes", "--json").ok().data)
    assert {action["kind"] for action in actions} == {"file"}
    assert any("2048" in action["reason"] for action in actions), actions
    assert main_pid(host, UNIT) != pid
    assert "2048" in running_argv(host)
    assert "4096" not in running_argv(host)
    assert chat(host, "Say hello.", tokens=8)


def test_a_changed_model_is_served_after_the_apply(host: Host, project: Project, tmp_path: Path) -> None:
    changed = tmp_path / "changed.gguf"
    with changed.open("wb") as stream:
        subprocess.run([*host.ssh_command(), f"cat {MODEL}"], stdout=stream, check=True)
    content = changed.read_bytes()
    assert content.count(BUILT_FOR) == 1, "the header of the model is not what this test knows"
    content = content.replace(BUILT_FOR, BUILT_FOR[::-1])
    changed.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    spec = demo_spec()
    spec["models"]["smol"] = {"controller-path": str(changed), "sha256": digest, "size": len(content)}
    project.describe(host, spec)
    actions = actions_of(project.rig("apply", host.name, "--yes", "--json").ok().data)
    assert "model" in {action["kind"] for action in actions}
    assert "release" not in {action["kind"] for action in actions}
    served = host.ssh(f"ls -l /proc/{main_pid(host, UNIT)}/map_files 2>/dev/null | grep -o '{MODELS}/.*' | sort -u")
    assert digest in served
    assert chat(host, "Say hello.", tokens=8)
