"""From bare to serving: what the applies said, and what the host then is, seen over SSH from outside."""

from __future__ import annotations

import hashlib
import json
import shlex
from typing import Any

import httpx
from lab import Host
from lab.faults import main_pid
from lab.project import KEY_FILE, Project, api_key, chat, demo_spec, tunnel
from lab.report import actions_of

UNIT = "llama-chat.service"
CURRENT = "/opt/llamarig/current"


def test_check_mode_on_a_bare_host_says_what_it_would_do_and_touches_nothing(story: Any) -> None:
    ran = story.check_before.ok()
    kinds = {action["kind"] for action in actions_of(ran.data)}
    assert {"package", "release", "model", "credential", "file"} <= kinds
    assert "cmake" not in story.bare_packages
    assert "llamarig" not in story.bare_packages


def test_the_first_apply_does_everything_that_check_mode_announced(story: Any) -> None:
    announced = {(action["kind"], action["subject"]) for action in actions_of(story.check_before.data)}
    done = {(action["kind"], action["subject"]) for action in actions_of(story.first.data)}
    assert done == announced
    assert all(action["reason"] for action in actions_of(story.first.data))


def test_the_second_apply_does_nothing(story: Any) -> None:
    assert actions_of(story.second.data) == []


def test_check_mode_on_the_converged_host_finds_nothing(story: Any) -> None:
    assert actions_of(story.check_after.ok().data) == []


def test_the_service_answers_a_chat_request_with_text(demo: Host) -> None:
    assert len(chat(demo, "In one sentence: what is a workstation?")) > 10


def test_without_a_key_or_with_another_one_it_says_401(demo: Host) -> None:
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}
    with tunnel(demo) as url:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            assert httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers).status_code == 401
        good = {"Authorization": f"Bearer {api_key(demo)}"}
        assert httpx.get(f"{url}/v1/models", headers=good).status_code == 200


def test_the_key_is_long_and_readable_by_root_only(demo: Host, inside: Any) -> None:
    key_file = inside.file(KEY_FILE)
    assert (key_file.user, key_file.mode) == ("root", 0o600)
    assert len(api_key(demo)) >= 32


def test_the_key_is_on_no_command_line_and_in_no_environment(demo: Host) -> None:
    key = api_key(demo)
    pid = main_pid(demo, UNIT)
    seen = demo.ssh(f"cat /proc/{pid}/cmdline /proc/{pid}/environ /etc/systemd/system/{UNIT} | tr '\\0' ' '")
    assert "llama-server" in seen
    assert key not in seen


def test_the_unit_is_enabled_and_runs_as_its_own_user_without_login(inside: Any) -> None:
    service = inside.service(UNIT)
    assert service.is_running
    assert service.is_enabled
    process = inside.process.get(comm="llama-server")
    assert process.user == "llama-chat"
    assert inside.user("llama-chat").shell.endswith("/nologin")


def test_it_listens_on_loopback_only(inside: Any) -> None:
    assert inside.socket("tcp://127.0.0.1:8080").is_listening
    assert not inside.socket("tcp://0.0.0.0:8080").is_listening


def test_the_running_binary_is_the_one_that_was_built(demo: Host, inside: Any) -> None:
    pid = main_pid(demo, UNIT)
    provenance = json.loads(inside.file(f"{CURRENT}/provenance.json").content_string)
    running = demo.ssh(f"sha256sum /proc/{pid}/exe").split()[0]
    assert running == provenance["files"]["bin/llama-server"]
    assert inside.file(CURRENT).linked_to == f"/opt/llamarig/releases/{provenance['release']}"


def test_the_models_content_is_what_the_spec_pins(demo: Host, inside: Any) -> None:
    pinned = demo_spec()["models"]["smol"]["sha256"]
    content = inside.file(f"/var/lib/llamarig/models/sha256/{pinned}")
    assert content.sha256sum == pinned
    assert (content.user, content.mode) == ("root", 0o444)


def test_nothing_of_the_build_is_left_writable_for_the_service(demo: Host) -> None:
    writable = demo.ssh("find /opt/llamarig /etc/llamarig -perm /022 ! -type l -print").split()
    assert writable == []
    foreign = demo.ssh("find /opt/llamarig ! -user root -print").split()
    assert foreign == []


def test_no_unit_of_the_host_failed(demo: Host) -> None:
    assert demo.ssh("systemctl is-system-running", check=False).strip() == "running"


def test_every_unit_passes_systemd_analyze_verify_where_it_runs(demo: Host) -> None:
    verify = "systemd-analyze verify --man=no --recursive-errors=one"
    said = demo.ssh(f"{verify} /etc/systemd/system/{UNIT} 2>&1; echo status=$?", check=False)
    assert said.strip() == "status=0"


def test_the_record_says_what_was_applied(demo: Host, inside: Any) -> None:
    record = json.loads(inside.file("/var/lib/llamarig/record.json").content_string)
    digest = record.pop("digest")
    canonical = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert record["host"] == demo.name
    assert record["release"] in inside.file(CURRENT).linked_to
    assert digest == hashlib.sha256(canonical.encode()).hexdigest()


def test_status_and_drift_agree_that_all_is_well(project: Project, demo: Host) -> None:
    assert project.rig("drift", demo.name, "--json").ok().data["drift"] == []
    assert project.rig("status", demo.name, "--json").ok().data


def test_the_process_has_no_variable_that_the_plan_does_not_name(demo: Host) -> None:
    pid = main_pid(demo, UNIT)
    names = demo.ssh(f"tr '\\0' '\\n' </proc/{pid}/environ | cut -d= -f1").split()
    assert [name for name in names if name.startswith(("LLAMA_", "GGML_", "MTMD_", "HF_", "AIP_"))] == []


def test_the_running_argv_is_the_planned_one(project: Project, demo: Host) -> None:
    pid = main_pid(demo, UNIT)
    running = demo.ssh(f"tr '\\0' '\\n' </proc/{pid}/cmdline").splitlines()
    planned = project.rig("plan", demo.name, "--json").ok().data["services"]["chat"]["argv"]
    assert running == planned, shlex.join(running)
