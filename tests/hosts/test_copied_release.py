"""The same inputs on a second host: what one host built is fetched, copied and checked, and nothing is compiled."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from lab import Host, Lab
from lab.project import ROOT, Project, Ran, chat
from lab.report import actions_of

from llamarig.converge.store.releases import Held, Releases
from tests.support.toolkit.reference import play

RELEASES = "/opt/llamarig/releases"
COMPILERS = "cc c++ gcc g++ cmake ninja ccache nvcc"


def collect(project: Project, host: Host) -> None:
    """Run playbooks/collect.yml as a user of plain Ansible would."""
    play(project, host, ROOT / "playbooks/collect.yml")


def provenance(host: Host) -> str:
    """The provenance of what runs, as it lies on the host."""
    return host.ssh("cat /opt/llamarig/current/provenance.json")


@pytest.fixture(scope="module")
def held(demo: Host, project: Project) -> Iterator[Held]:
    """The demo's release on the controller, for as long as this module's tests run."""
    release = json.loads(provenance(demo))["release"]
    store = Releases.default()
    store.forget(release)
    collect(project, demo)
    found = store.get(release)
    assert found is not None
    yield found
    store.forget(release)


@pytest.fixture(scope="module")
def applied(lab: Lab, held: Held, project: Project) -> Iterator[tuple[Host, Ran, Ran]]:
    """A second bare machine with the same spec: looked at, then applied to."""
    host = lab.host("second", fresh=True)
    project.describe(host)
    check = project.rig("apply", "second", "--check", "--json")
    apply = project.rig("apply", "second", "--yes", "--json").ok()
    yield host, check, apply
    lab.discard("second")
    (project.inventory / "second.yml").unlink(missing_ok=True)


def test_the_check_says_that_it_is_copied(applied: tuple[Host, Ran, Ran]) -> None:
    _, check, _ = applied
    actions = actions_of(check.data)
    [release] = [action for action in actions if action["kind"] == "release"]
    assert release["reason"] == "is not there, and is copied from the controller"
    packages = {action["subject"] for action in actions if action["kind"] == "package"}
    assert packages.isdisjoint({"gcc", "g++", "cmake", "ninja-build", "ccache", "libc6-dev", "libssl-dev"})


def test_nothing_is_compiled_and_the_service_is_proven(applied: tuple[Host, Ran, Ran], demo: Host, held: Held) -> None:
    host, _, apply = applied
    [report] = apply.data["hosts"]
    assert report["checks"]
    assert all(check["ok"] for check in report["checks"])
    assert host.ssh(f"for tool in {COMPILERS}; do command -v $tool; done; true") == ""
    assert host.ssh("journalctl -q -o cat --grep 'llamarig job llamarig-build|llamarig-build-[0-9a-f]' || true") == ""
    assert host.ssh("ls -A /var/lib/llamarig/build /var/lib/llamarig/incoming") == (
        "/var/lib/llamarig/build:\n\n/var/lib/llamarig/incoming:\n"
    )
    assert provenance(host) == provenance(demo)
    assert json.loads(provenance(host))["release"] == held.release
    assert chat(host, "Say hello.", tokens=8)


def test_the_build_leaves_the_trace_that_is_looked_for(demo: Host) -> None:
    """The twin of the test above: on the host that built, the journal names the job."""
    assert "llamarig-build-" in demo.ssh(
        "journalctl -q -o cat --grep 'llamarig job llamarig-build|llamarig-build-[0-9a-f]'"
    )


def test_a_second_apply_finds_nothing_to_do(applied: tuple[Host, Ran, Ran], project: Project) -> None:
    host, _, _ = applied
    assert actions_of(project.rig("apply", host.name, "--yes", "--json").ok().data) == []


def test_a_damaged_copy_of_the_controller_touches_nothing_on_the_host(
    applied: tuple[Host, Ran, Ran], held: Held, demo: Host, project: Project
) -> None:
    host, _, _ = applied
    library = f"{RELEASES}/{held.release}/lib/libmtmd.so"
    host.ssh(f"printf x >>$(readlink -f {library})")
    store = Releases.default()
    path = store.shelf.path(held.sha256)
    sound = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(sound[:5000] + bytes([sound[5000] ^ 1]) + sound[5001:])
    main_pid = host.ssh("systemctl show -P MainPID llama-chat.service")
    ran = project.rig("apply", host.name, "--yes", "--json").ended(3)
    [report] = ran.data["hosts"]
    assert "gone or damaged" in report["error"]["what"] + report["error"]["why"]
    assert host.ssh("systemctl show -P MainPID llama-chat.service") == main_pid
    assert store.get(held.release) is None
    collect(project, demo)
    again = store.get(held.release)
    assert again is not None
    assert (again.sha256, again.size) == (held.sha256, held.size)
    repaired = project.rig("apply", host.name, "--yes", "--json").ok()
    [release] = [action for action in actions_of(repaired.data) if action["kind"] == "release"]
    assert release["reason"].endswith("; it is copied from the controller")
    assert provenance(host) == provenance(demo)
    assert host.ssh(f"for tool in {COMPILERS}; do command -v $tool; done; true") == ""
