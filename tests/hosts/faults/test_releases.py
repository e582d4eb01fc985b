"""Another patch, another commit, and the way back: what RUNS is asserted by its hash, seen from the kernel."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from lab import Host, archives
from lab.faults import main_pid
from lab.project import Project, chat, demo_spec
from lab.report import actions_of

UNIT = "llama-chat.service"
CURRENT = "/opt/llamarig/current"
MARK = "planted by a patch of the tests"
PATCH = f"""\
--- a/tools/server/server.cpp
+++ b/tools/server/server.cpp
@@ -69,3 +69,3 @@
             error = ERROR_TYPE_SERVER;
-            message = "unknown error";
+            message = "{MARK}";
         }}
"""
NEWER = {
    "commit": "0c1e57098",
    "build-number": 10900,
    "source": {
        "sdist": "llama_cpp_python==0.3.36",
        "sha256": "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
    },
}
"""Another commit of the engine; the build number is only a label and was chosen for this test."""


def running(host: Host) -> tuple[str, str]:
    """(release, sha256 of the executable) of what the service runs now."""
    pid = main_pid(host, UNIT)
    path = host.ssh(f"readlink /proc/{pid}/exe").strip()
    return path.split("/")[4], host.ssh(f"sha256sum /proc/{pid}/exe").split()[0]


def built(host: Host) -> tuple[str, str]:
    """(release, sha256 of the server) that the current release says it was built as."""
    provenance: dict[str, Any] = json.loads(host.ssh(f"cat {CURRENT}/provenance.json"))
    return provenance["release"], provenance["files"]["bin/llama-server"]


def test_a_patch_makes_another_release_whose_binary_carries_it(
    another: Callable[[str], Host], project: Project
) -> None:
    host = another("patch")
    before = running(host)
    patches = project.directory / "patches"
    patches.mkdir(exist_ok=True)
    (patches / "mark.patch").write_text(PATCH)
    spec = demo_spec()
    digest = hashlib.sha256(PATCH.encode()).hexdigest()
    spec["engine"]["patches"] = [{"file": "patches/mark.patch", "sha256": digest}]
    project.describe(host, spec)
    kinds = {action["kind"] for action in actions_of(project.rig("apply", host.name, "--yes", "--json").ok().data)}
    archives.take_back(host)
    assert {"release", "switch"} <= kinds
    assert running(host) == built(host)
    assert running(host) != before
    assert host.ssh(f"grep -l '{MARK}' -r {CURRENT}/bin {CURRENT}/lib").strip()
    assert json.loads(host.ssh(f"cat {CURRENT}/provenance.json"))["patches"][0]["sha256"] == digest


def test_a_patch_that_does_not_apply_is_refused_and_the_old_release_goes_on(
    another: Callable[[str], Host], project: Project
) -> None:
    host = another("badpatch")
    before = running(host)
    bad = PATCH.replace("unknown error", "never was there")
    (project.directory / "patches").mkdir(exist_ok=True)
    (project.directory / "patches" / "bad.patch").write_text(bad)
    spec = demo_spec()
    spec["engine"]["patches"] = [{"file": "patches/bad.patch", "sha256": hashlib.sha256(bad.encode()).hexdigest()}]
    project.describe(host, spec)
    ran = project.rig("apply", host.name, "--yes", "--json")
    assert ran.code == 3, ran.stdout + ran.stderr
    assert "bad.patch" in ran.stdout + ran.stderr
    assert running(host) == before
    assert chat(host, "Say hello.", tokens=8)


def test_an_upgrade_and_the_rollback_run_the_binaries_that_were_built(
    another: Callable[[str], Host], project: Project
) -> None:
    host = another("upgrade")
    old = running(host)
    assert old == built(host)
    spec = demo_spec()
    spec["engine"].update(NEWER)
    project.describe(host, spec)
    project.rig("apply", host.name, "--yes", "--json").ok()
    new = running(host)
    assert new == built(host)
    assert new[0].startswith("0c1e57098")
    assert new[1] != old[1]
    assert chat(host, "Say hello.", tokens=8)
    project.rig("rollback", host.name, "--yes", "--json").ok()
    assert running(host) == old
    assert running(host) == built(host)
    assert chat(host, "Say hello.", tokens=8)
