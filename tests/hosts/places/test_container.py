"""A workstation whose release is made in a container of the controller: what the container may, and what it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml
from docker.models.containers import Container
from lab import Host, Lab, faults
from lab.image import ensure_image
from lab.packages import cache_dir
from lab.project import Project, chat, demo_spec
from lab.report import actions_of

from llamarig.converge.build.engine import LABEL, LABEL_TURN, owner
from llamarig.converge.build.ensure import make_releases
from llamarig.converge.private import private_directory
from llamarig.converge.store.releases import Releases
from llamarig.spec.load import load_project

NAME = "bench"
_COMPILING = (
    "exec 2>/dev/null; for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q '^ninja' && "
    "echo $(stat -c %U $p) $(grep -E 'CapEff|NoNewPrivs' $p/status); done"
)
"""Prints who runs the build, and with which rights; processes that end meanwhile are no matter."""


@pytest.fixture(scope="module")
def engine(lab: Lab) -> Iterator[docker.DockerClient]:
    """The engine, with the lab's compiler cache as the volume that builds in containers keep theirs in."""
    kept = cache_dir() / "ccache"
    kept.mkdir(parents=True, exist_ok=True)
    volume = f"llamarig-ccache-{owner()}"
    options = {"type": "none", "o": "bind", "device": str(kept)}
    made = lab.client.volumes.create(volume, driver="local", driver_opts=options, labels={LABEL: owner()})
    yield lab.client
    made.remove()


def builders(client: docker.DockerClient) -> list[Container]:
    """The containers of builds of this user, running or not."""
    # One that is just being made, with its volume, is listed before it can be asked for.
    found: list[Container] = client.containers.list(
        all=True, filters={"label": f"{LABEL}={owner()}"}, ignore_removed=True
    )
    return found


@pytest.fixture(scope="module")
def bench(lab: Lab, engine: docker.DockerClient, project: Project) -> Iterator[tuple[Host, str]]:
    """A bare machine and the release that its spec asks for, which nobody has."""
    host = lab.host(NAME, fresh=True)
    spec = demo_spec()
    spec["engine"]["build"] = {
        "where": "container",
        "image": ensure_image(engine),
        "options": {"GGML_CPU_REPACK": False, "GGML_LLAMAFILE": False},
    }
    project.describe(host, spec)
    check = project.rig("apply", NAME, "--check", "--json").ok()
    [action] = [action for action in actions_of(check.data) if action["kind"] == "release"]
    assert "is built in a container of" in action["reason"]
    Releases.default().forget(action["subject"])
    yield host, str(action["subject"])
    Releases.default().forget(action["subject"])
    lab.discard(NAME)
    (project.inventory / f"{NAME}.yml").unlink(missing_ok=True)


def compiling(client: docker.DockerClient, release: str) -> Container | None:
    """The container in which the release is being compiled; None before the first object is there."""
    for container in builders(client):
        if container.labels[LABEL_TURN] == release and container.status == "running":
            code, said = container.exec_run(["sh", "-c", "find /var/lib/llamarig/build -name '*.o' | head -3 | wc -l"])
            if code == 0 and isinstance(said, bytes) and said.strip() == b"3":
                return container
    return None


def said(container: Container, command: str, user: str = "root") -> str:
    """What a command in the container prints."""
    _, output = container.exec_run(["sh", "-c", command], user=user)
    assert isinstance(output, bytes)
    return output.decode(errors="replace").strip()


@pytest.fixture(scope="module")
def story(bench: tuple[Host, str], engine: docker.DockerClient, project: Project) -> dict[str, Any]:
    """An apply whose controller is killed in the middle of the build; then one that goes on with it."""
    _, release = bench
    process = project.start("apply", NAME, "--yes", "--json")
    seen: list[Container] = []

    def builds() -> bool:
        assert process.poll() is None, process.communicate()
        seen[:] = [container for container in [compiling(engine, release)] if container is not None]
        return bool(seen)

    faults.wait_for("the first objects of the build", builds, 600)
    container = seen[0]
    looked = {
        "networks": said(container, "ls /sys/class/net"),
        "rights": said(container, _COMPILING),
        "attrs": container.attrs,
    }
    kill(process)
    alive = compiling(engine, release)
    second = project.rig("apply", NAME, "--yes", "--json").ok()
    third = project.rig("apply", NAME, "--yes", "--json").ok()
    return {**looked, "id": container.id, "alive": alive, "second": second, "third": third}


def kill(process: subprocess.Popen[str]) -> None:
    """End an apply and all that it has started here, without a word to any of it."""
    started = faults.descendants(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    faults.wait_for("the end of all that the apply started here", lambda: not any(map(faults.runs, started)), 60)


def test_nothing_but_the_loopback_is_there_while_it_compiles(story: dict[str, Any]) -> None:
    assert story["networks"].split() == ["lo"]
    assert list(story["attrs"]["NetworkSettings"]["Networks"]) == ["none"]


def test_the_container_has_few_rights_and_no_way_to_the_engine(story: dict[str, Any]) -> None:
    config = story["attrs"]["HostConfig"]
    assert not config["Privileged"]
    assert config["CapDrop"] == ["ALL"]
    assert "SYS_ADMIN" not in " ".join(config["CapAdd"])
    assert "no-new-privileges" in config["SecurityOpt"]
    assert story["rights"].split() == ["llamarig-build", "CapEff:", "0" * 16, "NoNewPrivs:", "1"]
    [mount] = story["attrs"]["Mounts"]
    assert (mount["Type"], mount["Destination"]) == ("volume", "/var/cache/llamarig/ccache")


def test_the_build_goes_on_without_its_controller_and_the_next_apply_joins_it(story: dict[str, Any]) -> None:
    assert story["alive"] is not None
    assert story["alive"].id == story["id"]


def test_no_container_is_left(story: dict[str, Any], engine: docker.DockerClient) -> None:
    assert story["third"].code == 0
    assert builders(engine) == []


def test_the_workstation_serves_it_without_a_compiler(bench: tuple[Host, str], story: dict[str, Any]) -> None:
    host, release = bench
    assert actions_of(story["third"].data) == []
    assert host.ssh("readlink /opt/llamarig/current").strip() == f"releases/{release}"
    assert chat(host, "Say hello.", tokens=8)
    assert host.ssh("for tool in cc g++ cmake ninja ccache; do command -v $tool; done; true").split() == []


def test_an_image_of_another_system_is_refused_and_leaves_nothing(
    engine: docker.DockerClient, project: Project, tmp_path: Path
) -> None:
    spec = demo_spec()
    spec["os"] = {"distribution": "debian", "release": "12"}
    spec["engine"]["build"] = {"where": "container", "image": ensure_image(engine)}
    (tmp_path / "other.yml").write_text(yaml.safe_dump(spec | {"host": "other"}))
    [loaded] = load_project(tmp_path).valid(None)
    with private_directory() as private:
        errors = make_releases(tmp_path, [loaded], private, lambda _event: None)
    assert "is debian 13, and its hosts run debian 12" in errors["other"].what
    assert builders(engine) == []


def test_the_provenance_says_which_image(bench: tuple[Host, str], story: dict[str, Any]) -> None:
    host, _ = bench
    assert story["second"].code == 0
    provenance = json.loads(host.ssh("cat /opt/llamarig/current/provenance.json"))
    assert provenance["built-in"]["kind"] == "container"
    assert provenance["built-in"]["image-id"].startswith("sha256:")
