"""A site without internet access: collected where there is a network, carried, and applied from that alone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab
from lab.project import Project, Ran, demo_spec
from lab.report import actions_of

from tests.support.mirror.site import Site, site_spec
from tests.support.mirror.wire import wire

SYSTEM = "debian-13-amd64"
SOURCE = "/etc/apt/sources.list.d/llamarig-mirror.sources"
UNIT = "llama-chat.service"


@pytest.fixture(scope="module")
def collected(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Path, Host, Ran]:
    """What a connected controller collected, asking one connected machine for packages."""
    head = Project(tmp_path_factory.mktemp("head"))
    depot, machine = lab.host("depot", fresh=True), lab.host("site", fresh=True)
    head.describe(depot)
    head.describe(machine, site_spec(machine.connection()))
    before = depot.exec("dpkg-query -W; ls /var/lib/apt/lists").output
    made = tmp_path_factory.mktemp("made") / "mirror"
    ran = head.rig("mirror", str(made), "site", "--packages-from", "depot", "--json").ok()
    assert depot.exec("dpkg-query -W; ls /var/lib/apt/lists").output == before, "the depot was changed"
    return head, made, machine, ran


@pytest.fixture(scope="module")
def site(
    lab: Lab, collected: tuple[Project, Path, Host, Ran], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    _, made, machine, _ = collected
    with wire(lab, machine) as joined, Site.opened(joined, made, tmp_path_factory.mktemp("site")) as opened:
        yield opened


def test_everything_is_collected_and_a_second_run_fetches_nothing(
    collected: tuple[Project, Path, Host, Ran],
) -> None:
    head, made, _, first = collected
    report = first.data
    assert report["without-packages"] == []
    kinds = {entry["kind"] for entry in json.loads((made / "manifest.json").read_text())["files"].values()}
    assert {"source", "model", "package", "index", "python"} <= kinds
    sums = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=made, capture_output=True, check=False)
    assert sums.returncode == 0, sums.stdout
    again = head.rig("mirror", str(made), "site", "--packages-from", "depot", "--json").ok().data
    assert (again["added"], again["damaged"]) == ([], [])


def test_a_damaged_package_is_told_and_fetched_again(collected: tuple[Project, Path, Host, Ran]) -> None:
    head, made, _, _ = collected
    victim = sorted((made / "debian" / SYSTEM).glob("*.deb"))[0]
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    path = str(victim.relative_to(made))
    told = head.rig("mirror", str(made), "site", "--packages-from", "depot", "--verify", "--json").ok().data
    assert told["damaged"] == [path]
    assert told["added"] == [path]
    assert victim.read_bytes() == whole


def test_neither_end_of_the_wire_has_a_route_to_anywhere_else(site: Site) -> None:
    here = site.run("ip", "route").stdout.split("\n")
    there = site.wire.host.exec("ip route; ip -6 route show default").output.split("\n")
    for routes in (here, there):
        lines = [line for line in routes if line.strip()]
        assert len(lines) == 1
        assert lines[0].startswith("10.77.0.0/30 ")


def test_llamarig_is_installed_from_the_mirror_alone(site: Site) -> None:
    where = site.run(str(site.place / "venv/bin/python"), "-c", "import llamarig; print(llamarig.__file__)").stdout
    assert where.startswith(str(site.place / "venv"))


def test_the_first_apply_serves_and_the_second_finds_nothing(site: Site) -> None:
    first = site.rig("apply", "site", "--yes", "--json").ok()
    assert {"package", "release", "model", "file"} <= {action["kind"] for action in actions_of(first.data)}
    second = site.rig("apply", "site", "--yes", "--json").ok()
    assert actions_of(second.data) == []
    assert site.rig("verify", "site", "--json").ok().data["checks"]
    assert site.wire.host.exec(f"systemctl is-active {UNIT}").output.strip() == "active"


def test_the_model_and_the_packages_came_from_the_site_s_server(site: Site) -> None:
    asked = site.requests()
    model = demo_spec()["models"]["smol"]["sha256"]
    assert f"200 /sha256/{model} -" in asked
    assert any(line.startswith(f"200 /debian/{SYSTEM}/InRelease") for line in asked)
    assert any(line.split()[1].endswith(".deb") for line in asked)
    assert "Signed-By:" in site.wire.host.exec(f"cat {SOURCE}").output
    assert not (site.place / f"cache/llamarig/artifacts/{model}").exists()


def test_an_index_that_somebody_changed_is_refused_by_the_host(site: Site) -> None:
    release = site.mirror / "debian" / SYSTEM / "InRelease"
    good = release.read_text()
    release.write_text(good.replace("Origin: llamarig", "Origin: somebody"))
    try:
        only = f"-o Dir::Etc::sourcelist={SOURCE} -o Dir::Etc::sourceparts=-"
        said = site.wire.host.exec(f"apt-get {only} -o APT::Update::Error-Mode=any update 2>&1", check=False)
    finally:
        release.write_text(good)
    assert said.code != 0
    assert "not signed" in said.output or "signature" in said.output.lower()


def test_without_the_mirror_in_the_spec_its_list_goes_from_the_host(site: Site) -> None:
    spec = site_spec(site.wire.host.connection())
    del spec["mirror"]
    spec["models"]["smol"]["fetch"] = "controller"
    site.project.describe(site.wire.host, spec)
    ran = site.rig("apply", "site", "--yes", "--json").ok()
    assert [(action["kind"], action["subject"]) for action in actions_of(ran.data)] == [("file", SOURCE)]
    assert site.wire.host.exec(f"test -e {SOURCE}", check=False).code != 0
