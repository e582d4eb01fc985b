"""One builder, two workstations: a release is built once, both serve it, and no compiler is on either of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from lab import Host, Lab
from lab.project import Project, Ran, chat, demo_spec
from lab.report import actions_of, host_reports

from llamarig.converge.store.releases import Held, Releases

COMPILERS = "cc gcc g++ cmake ninja ccache"
NAMES = ("desk-1", "desk-2")


@dataclass(frozen=True)
class Fleet:
    """The machines, and what the applies to both workstations said."""

    builder: Host
    desks: tuple[Host, ...]
    check: Ran
    first: Ran
    second: Ran
    held: Held
    built: list[str]
    """What the builder's journal says of builds."""


def release_of(project: Project, host: str) -> str:
    """The release id that a host's spec asks for."""
    rendered = project.rig("apply", host, "--check", "--json").ok()
    [subject] = [action["subject"] for action in actions_of(rendered.data) if action["kind"] == "release"]
    return str(subject)


@pytest.fixture(scope="module")
def fleet(lab: Lab, demo: Host, project: Project) -> Iterator[Fleet]:
    """The demo host builds for two bare ones; an option of its own makes a release that nobody has."""
    spec = demo_spec()
    spec["engine"]["build"] = {"where": "builder", "builder": demo.name, "options": {"GGML_CPU_REPACK": False}}
    desks = tuple(lab.host(name, fresh=True) for name in NAMES)
    for desk in desks:
        project.describe(desk, spec)
    release, store = release_of(project, NAMES[0]), Releases.default()
    store.forget(release)
    try:
        check = project.rig("apply", *NAMES, "--check", "--json").ok()
        first = project.rig("apply", *NAMES, "--yes", "--json").ok()
        second = project.rig("apply", *NAMES, "--yes", "--json").ok()
        held = store.get(release)
        assert held is not None
        built = demo.ssh(f"journalctl --no-pager -o cat | grep -c 'Started.*llamarig-build-{release}' || true").split()
        yield Fleet(demo, desks, check, first, second, held, built)
    finally:
        store.forget(release)
        for name in NAMES:
            lab.discard(name)
            (project.inventory / f"{name}.yml").unlink(missing_ok=True)


def test_the_check_says_where_it_is_built_and_wants_no_compiler(fleet: Fleet) -> None:
    for report in host_reports(fleet.check.data):
        [release] = [action for action in report["actions"] if action["kind"] == "release"]
        assert release["reason"] == f"is not there, and is built on the builder {fleet.builder.name}, then copied"
        packages = {action["subject"] for action in report["actions"] if action["kind"] == "package"}
        assert packages.isdisjoint({"gcc", "g++", "cmake", "ninja-build", "ccache", "libc6-dev", "libssl-dev"})


def test_it_was_built_once_on_the_builder(fleet: Fleet) -> None:
    assert fleet.built == ["1"]
    assert fleet.held.origin == fleet.builder.name
    provenance = json.loads(fleet.builder.ssh(f"cat /opt/llamarig/releases/{fleet.held.release}/provenance.json"))
    assert provenance["built-in"] == {"kind": "builder", "host": fleet.builder.name}


def test_both_workstations_serve_it_without_a_compiler(fleet: Fleet) -> None:
    for desk in fleet.desks:
        assert desk.ssh("readlink /opt/llamarig/current").strip() == f"releases/{fleet.held.release}"
        assert chat(desk, "Say hello.", tokens=8)
        assert desk.ssh(f"for tool in {COMPILERS}; do command -v $tool; done; true").split() == []


def test_the_second_apply_does_nothing(fleet: Fleet) -> None:
    assert actions_of(fleet.second.data) == []


def test_every_check_of_the_proof_passed(fleet: Fleet) -> None:
    reports: list[dict[str, Any]] = host_reports(fleet.first.data)
    assert [report["host"] for report in reports] == list(NAMES)
    assert all(report["checks"] and all(check["ok"] for check in report["checks"]) for report in reports)
