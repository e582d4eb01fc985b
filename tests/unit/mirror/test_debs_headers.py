"""Headers that come along with a driver: those of the kernels of the host whose apt chooses, as far as there are any.

What apt-cache madison prints is in the form of apt 2.6.1: a name that no source has adds nothing, and the exit status
is 0 all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llamarig.converge.mirror import packages
from llamarig.converge.mirror.place import Place
from llamarig.converge.run import HostOutcome, Run
from llamarig.errors import RigError
from llamarig.spec.load import load_project
from tests.support.artifacts.onhost import load
from tests.support.observe.load import part

rig_debs = load("modules/rig_debs.py")
plan, nvidia = part("rig_driver_plan"), part("rig_nvidia")

OLD, CLOUD = "6.12.90+deb13-amd64", "6.12.117+deb13-cloud-amd64"
META = "Package: {}\nStatus: install ok installed\nArchitecture: amd64\nVersion: 6.12.117-1\n\n"
OFFERED = f"""linux-headers-{OLD} |  6.12.90-2 | http://a.invalid/debian trixie/main amd64 Packages
linux-headers-{OLD} |  6.12.90-1 | http://a.invalid/debian trixie/main amd64 Packages
linux-headers-cloud-amd64 | 6.12.118-1 | http://a.invalid/debian trixie/main amd64 Packages
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host with two kernels and the metapackage of one kind of them; it has headers of its older one."""
    for kernel in (OLD, CLOUD):
        (tmp_path / f"lib/modules/{kernel}").mkdir(parents=True)
        (tmp_path / "boot").mkdir(exist_ok=True)
        (tmp_path / f"boot/vmlinuz-{kernel}").touch()
    (tmp_path / f"usr/src/linux-headers-{OLD}").mkdir(parents=True)
    (tmp_path / f"usr/src/linux-headers-{OLD}/Makefile").touch()
    (tmp_path / f"lib/modules/{OLD}/build").symlink_to(f"/usr/src/linux-headers-{OLD}")
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(META.format("linux-image-cloud-amd64"))
    return tmp_path


def test_all_that_the_role_may_ask_for_on_such_a_host_is_asked_for(host: Path) -> None:
    names = rig_debs.headers_of_host(str(host))
    assert names == [f"linux-headers-{CLOUD}", f"linux-headers-{OLD}", "linux-headers-cloud-amd64"]
    by_role = [
        *plan.missing_headers(nvidia.kernels(str(host))),
        *plan.missing_metapackages(nvidia.flavours(str(host))),
    ]
    assert by_role == [f"linux-headers-{CLOUD}", "linux-headers-cloud-amd64"]
    assert set(by_role) <= set(names)


def test_a_host_without_a_kernel_adds_none(tmp_path: Path) -> None:
    assert rig_debs.headers_of_host(str(tmp_path)) == []


def test_a_kernel_whose_headers_are_gone_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def call(command: list[str], _seconds: int) -> tuple[int, str]:
        commands.append(command)
        return 0, OFFERED

    monkeypatch.setattr(rig_debs.rig_apt, "call", call)
    names = [f"linux-headers-{OLD}", f"linux-headers-{CLOUD}", "linux-headers-cloud-amd64", "linux-headers-My_Own"]
    assert rig_debs.offered(["-o", "x"], names) == [f"linux-headers-{OLD}", "linux-headers-cloud-amd64"]
    # What can be no package is not handed to apt.
    assert commands == [["apt-cache", "-o", "x", "madison", "--", *names[:3]]]


def test_nothing_is_asked_of_apt_for_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig_debs.rig_apt, "call", lambda *_words: pytest.fail("apt was asked"))
    assert rig_debs.offered([], []) == []
    assert rig_debs.offered([], ["--option"]) == []


def test_an_apt_that_fails_is_told_and_not_taken_for_no_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig_debs.rig_apt, "call", lambda *_words: (100, "E: The package lists could not be opened\n"))
    with pytest.raises(rig_debs.FailedError, match="could not be opened"):
        rig_debs.offered([], ["linux-headers-amd64"])


@pytest.mark.parametrize(
    ("name", "line", "there"),
    [
        ("linux-headers-x", "linux-headers-x | 1 | http://a.invalid/debian trixie/main Sources\n", False),
        ("linux-headers-x", "linux-headers-x-common | 1 | http://a.invalid/debian trixie/main amd64 Packages\n", False),
        ("linux-headers-x", "     linux-headers-x | 1 | http://a.invalid ./ Packages\n", True),
    ],
)
def test_only_a_package_of_that_name_counts(monkeypatch: pytest.MonkeyPatch, name: str, line: str, there: bool) -> None:
    monkeypatch.setattr(rig_debs.rig_apt, "call", lambda *_words: (0, line))
    assert rig_debs.offered([], [name]) == ([name] if there else [])


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Have the named host answer; the variables that it was asked with fill the dict that comes back."""

    def answer(found: dict[str, Any]) -> dict[str, Any]:
        given: dict[str, Any] = {}

        def played(_name: str, hosts: dict[str, dict[str, Any]], _private: Path) -> Run:
            [(host, variables)] = hosts.items()
            given.update(variables)
            return Run(0, {host: HostOutcome(ran=True, results={"rig_debs": {"architecture": "amd64", **found}})})

        monkeypatch.setattr(packages, "run_playbook", played)
        monkeypatch.setattr(packages, "connection_variables", lambda *_given: {})
        return given

    return answer


def _collect(tmp_path: Path, driver: dict[str, Any] | None) -> tuple[list[str], dict[str, Any]]:
    [loaded] = load_project(Path(__file__).resolve().parents[3]).valid(["demo"])
    with Place.opened(tmp_path / "m") as place:
        wanted = [{"packages": {"cmake": None}, "driver": driver}]
        lacking = packages.collect_packages(place, tmp_path, loaded, wanted, lambda *_said: None)
        return lacking, place.manifest.debian["debian-13-amd64"]


def test_with_a_driver_the_headers_of_the_named_host_are_asked_for(
    tmp_path: Path, answered: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    given = answered({"packages": [], "headers": [f"linux-headers-{OLD}"], "lacking": [f"linux-headers-{CLOUD}"]})
    lacking, held = _collect(tmp_path, {"packages": ["nvidia-driver-cuda"], "files": []})
    assert given["llamarig_mirror_headers"] is True
    assert lacking == [f"linux-headers-{CLOUD}"]
    assert held["packages"] == ["cmake", f"linux-headers-{OLD}", "linux-headers-amd64", "nvidia-driver-cuda"]


def test_without_a_driver_no_headers_are(tmp_path: Path, answered: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    given = answered({"packages": [], "headers": [], "lacking": []})
    lacking, held = _collect(tmp_path, None)
    assert given["llamarig_mirror_headers"] is False
    assert (lacking, held["packages"]) == ([], ["cmake"])


def test_a_host_that_answers_without_packages_is_an_error(
    tmp_path: Path, answered: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    answered({})
    with pytest.raises(RigError, match="without an answer"):
        _collect(tmp_path, None)
