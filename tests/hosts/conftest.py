"""The lab of this test session, and the demo host as the tests find it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import testinfra
from lab import Host, Lab, archives
from lab.project import Project, Ran

HERE = Path(__file__).resolve()


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """One lab a checkout: leftovers of a run that was cut off are taken away first."""
    name = "test-" + hashlib.sha256(str(HERE).encode()).hexdigest()[:8]
    made = Lab(name)
    made.clear()
    try:
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


@dataclass(frozen=True)
class Story:
    """What happened to the demo host, in this order."""

    host: Host
    check_before: Ran
    first: Ran
    second: Ran
    check_after: Ran
    bare_packages: str
    """What dpkg listed after the check and before the first apply."""


@pytest.fixture(scope="session")
def story(lab: Lab, project: Project) -> Story:
    """A bare machine, looked at, applied to twice, and looked at again."""
    host = lab.host("demo", fresh=True)
    project.describe(host)
    check_before = project.rig("apply", "demo", "--check", "--json")
    bare_packages = host.ssh("dpkg-query -W; ls /opt /etc/llamarig /var/lib/llamarig 2>/dev/null || true")
    first = project.rig("apply", "demo", "--yes", "--json").ok()
    archives.take_back(host)
    second = project.rig("apply", "demo", "--yes", "--json").ok()
    check_after = project.rig("apply", "demo", "--check", "--json")
    return Story(host, check_before, first, second, check_after, bare_packages)


@pytest.fixture(scope="session")
def demo(story: Story) -> Host:
    """The demo host, provisioned."""
    return story.host


@pytest.fixture(scope="session")
def inside(demo: Host) -> Any:
    """testinfra on the demo host, over SSH."""
    return testinfra.get_host(f"ssh://{demo.name}", ssh_config=str(demo.ssh_config))


@pytest.fixture(scope="session")
def provisioned_image(lab: Lab, demo: Host) -> str:
    """The disk of the demo host right after its story."""
    return lab.snapshot(demo, "provisioned")


@pytest.fixture
def another(lab: Lab, provisioned_image: str, project: Project) -> Iterator[Callable[[str], Host]]:
    """Makes further machines that are provisioned already, each with its spec; they go with the test."""
    made: list[str] = []

    def make(name: str) -> Host:
        made.append(name)
        host = lab.host(name, fresh=True, image=provisioned_image)
        project.describe(host)
        return host

    yield make
    for name in made:
        lab.discard(name)
        (project.inventory / f"{name}.yml").unlink(missing_ok=True)
