"""Every difference of a driver gives its own action, in words that say what is and what is wanted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from llamarig.compare import Action, compare
from llamarig.compare.driver import without_module
from llamarig.converge.decide import decide
from llamarig.render import driver as rendered
from llamarig.render.wanted import UNITS
from tests.support.compare.cases import Case
from tests.support.compare.driver_case import driver_case
from tests.support.compare.driver_seen import KERNEL

VERSION = "610.57.04"
NEWER = "6.12.100+deb13-amd64"
CARD = {"bus-id": "0000:01:00.0", "device": "0x2b85"}
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
def case() -> Case:
    made = driver_case()
    made.observed["gpus"] = [CARD]
    return made


def actions(case: Case) -> list[Action]:
    return [action for action in compare(case.wanted, case.observed) if action.kind == "driver"]


def put(*path: str, value: Any) -> Change:
    def change(seen: dict[str, Any]) -> None:
        at = seen
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


def package(version: str, state: str = "installed", *, held: bool = True) -> dict[str, Any]:
    return {"version": version, "state": state, "held": held}


def kernel(state: str, *, headers: bool = True) -> dict[str, Any]:
    return {"headers": headers, "dkms": {f"nvidia/{VERSION}": state} if state else {}}


def test_another_revision_of_the_module_is_an_action_of_its_own(case: Case) -> None:
    assert actions(case) == []
    case.want(driver=replace(case.wanted.driver, revision="1"))
    assert actions(case) == []
    case.want(driver=replace(case.wanted.driver, revision="2"))
    [action] = actions(case)
    assert action.subject == "nvidia-kernel-open-dkms"
    assert action.reason == "nvidia-kernel-open-dkms is of revision 1, wanted 2"


PLANTED: dict[str, tuple[Change, str, str]] = {
    "another version of a library": (
        put("packages", "libnvidia-compute", value=package("570.133.07-1")),
        "libnvidia-compute",
        "libnvidia-compute is 570.133.07, wanted 610.57.04",
    ),
    "an older kernel module": (
        put("packages", "nvidia-kernel-open-dkms", value=package("1:570.124.06-1")),
        "nvidia-kernel-open-dkms",
        "nvidia-kernel-open-dkms is 570.124.06, wanted 610.57.04",
    ),
    "the other flavour": (
        put("packages", "nvidia-kernel-dkms", value=package(f"{VERSION}-1")),
        "nvidia-kernel-dkms",
        "nvidia-kernel-dkms is of the proprietary flavour, wanted open",
    ),
    "a package that is not held": (
        put("packages", "nvidia-driver-cuda", value=package(f"{VERSION}-1", held=False)),
        "nvidia-driver-cuda",
        "not held",
    ),
    "half-configured": (
        put("packages", "nvidia-kernel-open-dkms", value=package(f"{VERSION}-1", "half-configured")),
        "nvidia-kernel-open-dkms",
        "half-configured",
    ),
    "a keyring of its own": (put("packages", "cuda-keyring", value=package("1.1-1")), "cuda-keyring", "list and key"),
    "only added for a newer kernel": (
        put("kernels", NEWER, value=kernel("added")),
        f"kernel {NEWER}",
        f"the module for kernel {NEWER} is only added",
    ),
    "no headers of a newer kernel": (
        put("kernels", NEWER, value=kernel("added", headers=False)),
        f"kernel {NEWER}",
        "headers",
    ),
    "no module at all": (put("kernels", NEWER, value=kernel("")), f"kernel {NEWER}", f"there is no module {VERSION}"),
    "no kernel in boot": (put("kernels", value={}), "kernel", "no kernel lies in /boot"),
    "an old initramfs": (put("initramfs", value=[KERNEL]), f"initramfs {KERNEL}", "older than the list"),
    "an edited list": (
        put("files", rendered.NOUVEAU, "sha256", value="0" * 64),
        rendered.NOUVEAU,
        "differs from what the spec renders",
    ),
    "a list that is gone": (put("files", rendered.SOURCE, value={"type": "absent"}), rendered.SOURCE, "is not there"),
    "an old list": (
        put("stale", value=["/etc/apt/sources.list.d/cuda.list"]),
        "/etc/apt/sources.list.d/cuda.list",
        "another form",
    ),
    "a metapackage of kernels without that of their headers": (
        put("flavours", "cloud-amd64", value={"version": "6.12.117-1", "headers": False}),
        "linux-headers-cloud-amd64",
        "linux-image-cloud-amd64 brings new kernels, and nothing brings the headers",
    ),
    "nodes that nobody makes": (put("enabled", value=False), rendered.NODES, "does not start at boot"),
    "a persistence daemon that may not start": (
        put("persistence-masked", value=True),
        "nvidia-persistenced.service",
        "is masked, so the driver forgets limits",
    ),
    "an older module is loaded": (
        put("loaded", value="570.124.06"),
        "reboot",
        "module 570.124.06 (open) is loaded, wanted 610.57.04",
    ),
    "the other flavour is loaded": (put("open", value=False), "reboot", "module 610.57.04 is loaded"),
    "a .run file": (put("run-file", value=True), "run-file", "no package owns it"),
}


def test_a_host_with_the_wanted_driver_has_nothing_to_do(case: Case) -> None:
    assert actions(case) == []
    assert compare(case.wanted, case.observed) == []


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_planted_difference_gives_its_own_action(case: Case, name: str) -> None:
    change, subject, words = PLANTED[name]
    change(case.observed["driver"])
    found = actions(case)
    assert [action.subject for action in found] == [subject]
    assert words in found[0].reason


def test_a_nodes_unit_that_was_not_confined_is_one_file_and_no_service_restarts(case: Case) -> None:
    assert case.wanted.driver is not None
    path = f"{UNITS}/{rendered.NODES}"
    [unit] = [file for file in case.wanted.driver.files if file.path == path]
    head, _, rest = unit.content.partition("# Confinement")
    former = head + rest[rest.index("[Install]") :]
    assert "RestrictNamespaces" not in former
    case.observed["driver"]["files"][path]["sha256"] = replace(unit, content=former).sha256
    decision = decide(case.wanted.to_json(), case.observed)
    assert decision.todo == {"driver": [path]}
    assert [action.reason for action in decision.actions] == ["differs from what the spec renders"]
    assert decision.restarts == decision.stuck == ()


def test_a_package_apart_has_a_version_of_its_own(case: Case) -> None:
    case.observed["driver"]["packages"]["libnvidia-container1"] = package("1.17.4-1", held=False)
    assert actions(case) == []


def test_secure_boot_asks_for_the_key(case: Case) -> None:
    seen = case.observed["driver"]
    seen.update({"secure-boot": True, "signing-key": "enrolled"})
    assert actions(case) == []
    for state, words in (("unknown", "does not know it"), ("pending", "at the console"), ("absent", "none yet")):
        seen["signing-key"] = state
        assert [action.subject for action in actions(case)] == ["secure-boot"]
        assert words in actions(case)[0].reason
        assert "the key of dkms, /var/lib/dkms/mok.pub: " in actions(case)[0].reason
    seen["signing-certificate"] = "/root/\x1b[2J.der"
    assert "\x1b" not in actions(case)[0].reason


def test_without_a_card_nothing_has_to_be_loaded(case: Case) -> None:
    case.observed["driver"].update({"loaded": "", "open": False})
    assert [action.subject for action in actions(case)] == ["reboot"]
    case.observed["gpus"] = []
    assert actions(case) == []


def test_nouveau_is_named_as_the_reason(case: Case) -> None:
    case.observed["driver"].update({"loaded": "", "nouveau": ["0000:01:00.0"]})
    assert "a free driver holds the cards" in actions(case)[0].reason


def test_a_bare_host_needs_everything_and_a_run_file_nothing_else(case: Case) -> None:
    assert case.wanted.driver is not None
    seen = case.observed["driver"]
    seen.update({"packages": {}, "files": {}, "enabled": False, "kernels": {KERNEL: {"headers": False, "dkms": {}}}})
    subjects = {action.subject for action in actions(case)}
    assert set(case.wanted.driver.packages) <= subjects
    assert {file.path for file in case.wanted.driver.files} <= subjects
    seen["run-file"] = True
    assert [action.subject for action in actions(case)] == ["run-file"]


def test_a_run_file_is_never_written_over(case: Case) -> None:
    case.observed["driver"]["run-file"] = True
    stuck = decide(case.wanted.to_json(), case.observed).stuck
    assert len(stuck) == 1
    assert "nvidia-uninstall" in stuck[0]
    del case.observed["driver"]["run-file"]
    assert decide(case.wanted.to_json(), case.observed).stuck == ()


def test_a_reboot_is_safe_only_when_every_kernel_has_its_module(case: Case) -> None:
    assert case.wanted.driver is not None
    seen = case.observed["driver"]
    assert without_module(case.wanted.driver, seen) == {}
    # Field report open-gpu-kernel-modules 1272: the point release's kernel is there, its module was only added.
    seen["kernels"]["6.12.100+deb13-amd64"] = kernel("added")
    seen["kernels"]["6.12.96+deb13-amd64"] = kernel("installed")
    assert list(without_module(case.wanted.driver, seen)) == ["6.12.100+deb13-amd64"]


@pytest.mark.parametrize("hostile", [None, [], "x", {"packages": 7, "kernels": [], "files": {"/etc": 1}, "stale": 3}])
def test_a_hostile_observation_is_only_different(case: Case, hostile: Any) -> None:
    case.observed["driver"] = copy.deepcopy(hostile)
    assert {action.kind for action in actions(case)} == {"driver"}
