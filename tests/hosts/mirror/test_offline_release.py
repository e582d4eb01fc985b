"""A site without internet access, server and compilers: the controller copies the finished release, and all else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab import Host, Lab, archives
from lab.project import ROOT, Project
from lab.report import actions_of

from llamarig.converge.store.releases import Releases
from tests.support.mirror.site import Site, site_spec
from tests.support.mirror.wire import wire
from tests.support.toolkit.reference import play

COMPILERS = "cc c++ gcc g++ cmake ninja ccache"


@pytest.fixture(scope="module")
def carried(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Host]]:
    """A mirror that holds the release that one connected machine has built."""
    head = Project(tmp_path_factory.mktemp("head"))
    builder, machine = lab.host("builder", fresh=True), lab.host("plain", fresh=True)
    head.describe(builder)
    head.describe(machine, site_spec(machine.connection(), served=False))
    head.rig("apply", "builder", "--yes", "--json").ok()
    archives.take_back(builder)
    release = json.loads(builder.exec("cat /opt/llamarig/current/provenance.json").output)["release"]
    play(head, builder, ROOT / "playbooks/collect.yml")
    try:
        made = tmp_path_factory.mktemp("made") / "mirror"
        head.rig("mirror", str(made), "plain", "--packages-from", "builder", "--json").ok()
        yield made, machine
    finally:
        Releases.default().forget(release)


@pytest.fixture(scope="module")
def site(lab: Lab, carried: tuple[Path, Host], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made, machine = carried
    place = tmp_path_factory.mktemp("site")
    with wire(lab, machine) as joined, Site.opened(joined, made, place, served=False) as opened:
        yield opened


def _manifest(mirror: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((mirror / "manifest.json").read_text())
    return found


def test_the_mirror_holds_the_release_and_nothing_to_build_it(carried: tuple[Path, Host]) -> None:
    manifest = _manifest(carried[0])
    kinds = {entry["kind"] for entry in manifest["files"].values()}
    assert "release" in kinds
    assert not kinds & {"source", "patch", "toolkit"}
    assert not set(COMPILERS.split()) & set(manifest["debian"]["debian-13-amd64"]["packages"])


def test_it_serves_without_a_compiler_and_a_second_apply_finds_nothing(site: Site) -> None:
    first = site.rig("apply", "plain", "--yes", "--json").ok()
    assert {"package", "release", "model"} <= {action["kind"] for action in actions_of(first.data)}
    host = site.wire.host
    assert host.exec(f"command -v {COMPILERS}", check=False).output == ""
    assert host.exec("systemctl is-active llama-chat.service").output.strip() == "active"
    assert all(check["ok"] for check in site.rig("verify", "plain", "--json").ok().data["checks"])
    assert actions_of(site.rig("apply", "plain", "--yes", "--json").ok().data) == []


def test_nothing_of_the_copied_packages_stays_and_no_list_names_them(site: Site) -> None:
    host = site.wire.host
    assert host.exec("dpkg-query -W -f '${db:Status-Status}' libgomp1").output == "installed"
    assert (
        host.exec("ls /var/lib/llamarig/mirror /var/lib/llamarig/incoming/*.part 2>/dev/null", check=False).output == ""
    )
    assert host.exec("grep -rl llamarig /etc/apt", check=False).output == ""


def test_the_release_is_held_by_the_controller_from_the_mirror(site: Site) -> None:
    notes = list((site.place / "cache/llamarig/releases").glob("*.json"))
    assert len(notes) == 1
    sha256 = json.loads(notes[0].read_text())["sha256"]
    assert f"sha256/{sha256}" in _manifest(site.mirror)["files"]
