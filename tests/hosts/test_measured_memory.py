"""The planned memory of a real server against its own lines, its fit tool and the kernel, on a real host."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from lab import Host
from lab.project import Project


@pytest.fixture(scope="module")
def measured(demo: Host, project: Project) -> Iterator[dict[str, Any]]:
    """What `verify --memory` says, and the file that it leaves."""
    ran = project.rig("verify", "demo", "--memory", "--json")
    path = project.directory / "measured" / "demo.json"
    stored = json.loads(path.read_text()) if path.exists() else None
    yield {"code": ran.code, "checks": {each["name"]: each for each in ran.data["checks"]}, "stored": stored}
    shutil.rmtree(path.parent, ignore_errors=True)


def test_the_plan_agrees_with_engine_fit_tool_and_kernel(measured: dict[str, Any]) -> None:
    checks = measured["checks"]
    memory = {name for name in checks if name.startswith("chat/memory-")}
    assert memory >= {
        "chat/memory-weights",
        "chat/memory-kv-cache",
        "chat/memory-compute",
        "chat/memory-fit-tool",
        "chat/memory-ram",
    }
    assert [checks[name] for name in sorted(memory) if not checks[name]["ok"]] == []
    assert measured["code"] == 0


def test_what_was_measured_lies_in_the_project(measured: dict[str, Any]) -> None:
    service = measured["stored"]["services"]["chat"]
    assert 94 < service["ram-peak-mib"] < 2000, "the model alone has 94 MiB"
    assert measured["stored"]["host"] == "demo"
    assert measured["checks"]["host/memory-stored"]["detail"].startswith("measured/demo.json")


def test_the_doctor_finds_nothing_wrong_with_the_demo_host(demo: Host, project: Project) -> None:
    ran = project.rig("doctor", "demo", "--json").ok()
    assert ran.data == {"subject": "demo", "diagnoses": []}


def test_a_bundle_of_the_demo_host_is_read_back(demo: Host, project: Project) -> None:
    path = project.directory / "demo-bundle.json"
    project.rig("doctor", "demo", "--save", str(path)).ok()
    text = path.read_text()
    assert demo.ssh("uname -r").strip() in text
    assert demo.ssh("head -c 20 /etc/llamarig/keys/chat.keys | tail -c 12").strip() not in text
    assert project.rig("doctor", "--bundle", str(path)).ok().stdout.endswith("nothing known is wrong\n")
    again = project.rig("doctor", "demo", "--save", str(path)).ended(2)
    assert "name a file that is not there" in again.stderr
