"""What verify says of a real server on a real host: green as planned, red for what was changed behind its back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from lab import Host
from lab.project import KEY_FILE, Project, demo_spec

from llamarig.converge.hosts import host_variables
from llamarig.converge.private import private_directory
from llamarig.converge.run import run_playbook
from llamarig.converge.wanted import wanted_for
from llamarig.prove import Check
from llamarig.prove.hosts import read_proof
from llamarig.spec.load import load_project

UNIT = "llama-chat.service"


def verified(project: Project) -> tuple[int, dict[str, Any]]:
    ran = project.rig("verify", "demo", "--json")
    return ran.code, {check["name"]: check for check in ran.data["checks"]}


def red(checks: dict[str, Any]) -> list[str]:
    return [name for name, check in checks.items() if not check["ok"] and check["blocked-by"] is None]


def test_a_provisioned_host_is_green_and_a_plain_verify_measures_nothing(demo: Host, project: Project) -> None:
    code, checks = verified(project)
    assert (code, red(checks)) == (0, [])
    assert {"host/release", "chat/executable", "chat/libraries", "chat/model", "chat/completion"} <= set(checks)
    assert all(set(check) == {"name", "ok", "detail", "blocked-by"} for check in checks.values())
    assert all(check["ok"] for check in checks.values()), checks
    assert not [name for name in checks if "/memory-" in name]


def test_a_real_cpu_server_is_red_under_a_plan_for_a_card(demo: Host, project: Project) -> None:
    """It is healthy and it answers; it is only not where the plan says."""
    (loaded,) = load_project(project.directory).valid(["demo"])
    with private_directory() as private:
        variables = host_variables(project.directory, loaded, wanted_for(project.directory, loaded), private)
        variables["llamarig_wanted"]["services"][0].update(backend="cuda", vram_mib=300.0)
        proof = read_proof(run_playbook("verify", {"demo": variables}, private), "demo")
    assert isinstance(proof, list), proof
    checks: dict[str, Check] = {check.name: check for check in proof}
    assert checks["chat/health"].ok
    assert checks["chat/completion"].ok
    assert [name for name, check in checks.items() if not check.ok] == ["chat/gpu"]
    assert "libcuda is not mapped" in checks["chat/gpu"].detail


@contextmanager
def drop_in(demo: Host, text: str) -> Iterator[None]:
    """A drop-in that somebody laid on the unit by hand, and the service restarted with it."""
    place = f"/etc/systemd/system/{UNIT}.d/by-hand.conf"
    again = f"systemctl daemon-reload && systemctl restart {UNIT}"
    demo.ssh(f"mkdir -p {Path(place).parent} && printf %s {shlex.quote(text)} > {place} && {again}")
    try:
        yield
    finally:
        demo.ssh(f"rm -r {Path(place).parent} && {again}")


def test_a_drop_in_is_red_and_its_variable_does_not_reach_the_engine(demo: Host, project: Project) -> None:
    """The start probe passes on planned variables alone, so only the drop-in itself is to be seen."""
    with drop_in(demo, "[Service]\nEnvironment=GGML_CUDA_FORCE_MMQ=1\n"):
        code, checks = verified(project)
    assert code == 1
    assert red(checks) == ["chat/files"]
    assert "by-hand.conf" in checks["chat/files"]["detail"]
    assert checks["chat/environment"]["ok"]


def test_a_server_that_is_started_past_the_probe_with_a_variable_is_red(demo: Host, project: Project) -> None:
    words = demo.ssh(f"tr '\\0' '\\n' < /proc/$(systemctl show -p MainPID --value {UNIT})/cmdline").split()
    text = f"[Service]\nExecStart=\nExecStart=/usr/bin/env GGML_CUDA_FORCE_MMQ=1 {' '.join(words)}\n"
    with drop_in(demo, text):
        code, checks = verified(project)
    assert code == 1
    assert set(red(checks)) == {"chat/files", "chat/environment"}
    assert "GGML_CUDA_FORCE_MMQ" in checks["chat/environment"]["detail"]


def test_a_stopped_service_blocks_what_stands_on_it(demo: Host, project: Project) -> None:
    demo.ssh(f"systemctl stop {UNIT}")
    try:
        code, checks = verified(project)
    finally:
        demo.ssh(f"systemctl start {UNIT}")
    assert code == 1
    assert red(checks) == ["chat/unit"]
    assert checks["chat/completion"]["blocked-by"] == "chat/unit"
    assert checks["host/release"]["ok"]


def test_a_key_file_whose_key_the_server_does_not_know_is_red(demo: Host, project: Project) -> None:
    demo.ssh(f"cp -p {KEY_FILE} {KEY_FILE}.kept && printf 'another-key-than-the-running-one\\n' > {KEY_FILE}")
    try:
        code, checks = verified(project)
    finally:
        demo.ssh(f"mv {KEY_FILE}.kept {KEY_FILE}")
    assert code == 1
    assert red(checks) == ["chat/key"]


def test_a_host_that_cannot_be_reached_ends_with_3(lab: Any, tmp_path: Path) -> None:
    project = Project(tmp_path)
    spec = {**demo_spec(), "connection": {"address": "127.0.0.1", "port": 1}}
    (project.inventory / "demo.yml").write_text(yaml.safe_dump(spec, sort_keys=False))
    ran = project.rig("verify", "demo", "--json")
    assert ran.code == 3
    assert ran.data["checks"] == []
    assert "cannot be reached" in ran.data["error"]["what"]


def test_init_describes_the_host_and_the_description_is_valid(demo: Host, project: Project, tmp_path: Path) -> None:
    connection = demo.connection()
    arguments = ["--host-key", connection["host-key"], "--identity", connection["identity-file"]]
    demo.ssh("touch /run/before-init && sleep 1")
    other = Project(tmp_path / "other")
    ran = other.rig("init", connection["address"], *arguments, "--json").ok()
    assert demo.ssh("find /etc /opt /usr /var/lib/llamarig -xdev -newer /run/before-init").strip() == ""
    assert ran.data["looked"]["os"]["id"] == "debian"
    assert any(server["unit"] == UNIT for server in ran.data["looked"]["servers"])
    assert Path(ran.data["file"]).is_file()
    (loaded,) = load_project(other.directory).valid(None)
    assert loaded.spec is not None
    assert loaded.spec.services["chat"].listen.port == 8081
    assert other.rig("init", connection["address"], *arguments, "--json").code == 2


def test_init_trusts_no_unknown_host_key(demo: Host, tmp_path: Path) -> None:
    connection = demo.connection()
    other = Project(tmp_path)
    ran = other.rig("init", connection["address"], "--identity", connection["identity-file"])
    assert ran.code == 3
    assert "never accepted silently" in ran.stderr
    assert "SHA256:" in ran.stderr
    assert list(other.inventory.iterdir()) == []
