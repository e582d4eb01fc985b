"""A rollout that meets a host in use: it is deferred untouched, and done when nobody uses it any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab import Host
from lab.project import Project, demo_spec, tunnel

from tests.support.completion import Completion

FLEET: dict[str, Any] = {"schema-version": 1, "rollout": {"busy": {"drain-s": 0}}}


@pytest.mark.full_fleet
def test_a_host_in_use_is_deferred_and_done_later(tmp_path: Path, another: Callable[[str], Host]) -> None:
    host = another("in-use")
    project = Project(tmp_path)
    spec = demo_spec()
    spec["services"]["chat"]["alias"] = "another-name"
    project.describe(host, spec)
    (project.inventory / "fleet.yml").write_text(yaml.safe_dump(FLEET))
    started = host.ssh("systemctl show -P ExecMainStartTimestamp llama-chat.service")
    with tunnel(host) as url:
        running = Completion(host, url)
        planned = project.rig("rollout", "plan", "--all", "--json").ended(1).data
        rolled = project.rig("rollout", "start", "--all", "--yes", "--json").ended(1).data
        assert host.ssh("systemctl show -P ExecMainStartTimestamp llama-chat.service") == started
        running.stop()
    assert planned["hosts"]["in-use"]["verdict"] == "in-use"
    assert rolled["status"] == "incomplete"
    told = rolled["hosts"]["in-use"]
    assert (told["phase"], told["reason"]) == ("deferred", "chat answers 1 request")
    resumed = project.rig("rollout", "resume", "--yes", "--json").ok().data
    assert resumed["status"] == "done"
    assert resumed["hosts"]["in-use"]["phase"] == "done"
    assert host.ssh("systemctl show -P ExecMainStartTimestamp llama-chat.service") != started
    page = tmp_path / "page.html"
    project.rig("rollout", "status", "--html", str(page)).ok()
    assert "in-use" in page.read_text()
