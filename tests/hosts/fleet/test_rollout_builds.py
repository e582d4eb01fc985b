"""One host of a release compiles it; the others get what it made, by its hash."""

from __future__ import annotations

from typing import Any

import pytest
from lab.project import chat, demo_spec

from llamarig.converge.store.releases import Releases


@pytest.mark.full_fleet
def test_one_host_builds_for_all(rolling: Any) -> None:
    for host in rolling.hosts:
        spec = demo_spec()
        # The label alone: every file but one is known to the compiler cache, and the release is another.
        spec["engine"]["build-number"] += 1
        rolling.project.describe(host, spec)
    ran = rolling.rig("start", "--all", "--yes").ok()
    assert {each["phase"] for each in ran.data["hosts"].values()} == {"done"}
    [release] = {each["to-release"] for each in ran.data["hosts"].values()}
    question = f"journalctl --quiet --output=cat --unit=llamarig-build-{release}.service | wc -l"
    built = [host.name for host in rolling.hosts if int(host.exec(question).output)]
    assert built == [rolling.names[0]]
    of = {host.ssh("cat /opt/llamarig/current/provenance.json") for host in rolling.hosts}
    assert len(of) == 1, "a copy is the same to the byte"
    assert chat(rolling.hosts[-1], "Say hello.", tokens=8)

    assert rolling.rig("rollback", "--yes").ok().data["status"] == "rolled-back"
    Releases.default().forget(release)
    rolling.want(rolling.context)
    assert rolling.rig("start", "--all", "--yes").ok().data["status"] == "done"
