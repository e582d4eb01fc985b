"""A reboot that did not bring what it was for is made once more by itself, and no third time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llamarig.compare.reboot import Policy, decide_reboot
from llamarig.compare.reboot_tried import NOTE, TRIES, in_vain, purpose
from llamarig.compare.state import state_of
from llamarig.compare.view import View
from tests.support.compare.cases import Case
from tests.support.compare.driver_case import driver_case, wanted_driver
from tests.support.compare.driver_seen import KERNEL
from tests.support.observe.load import module, part

boot = module("rig_boot")
noted = part("rig_reboot_note")

VERSION = "610.57.04"
NEWER = "6.12.120+deb13-amd64"
IDLE: dict[str, Any] = {"users": [], "services": {}}
BEFORE, SINCE, THIRD = (f"00000000-0000-4000-8000-00000000000{last}" for last in "abc")
NO_COUNT = '{"at": "t", "boot-id": "b", "kernel": "k", "module": "m", "packages": "p", "tries": "many"}'
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
def case() -> Case:
    """A host that has a newer kernel with its module, and needs a reboot."""
    made = driver_case()
    made.observed["boot-id"] = BEFORE
    made.observed["gpus"] = [{"bus-id": "0000:01:00.0", "device": "0x2b85"}]
    made.observed["driver"]["kernels"][NEWER] = {"headers": True, "dkms": {f"nvidia/{VERSION}": "installed"}}
    return made


def view(case: Case) -> View:
    return View(case.wanted, case.observed)


def decide(case: Case) -> Any:
    return decide_reboot(view(case), Policy("now"), IDLE, allowed=True)


def reboot(case: Case, root: Path, *, boots: bool = True) -> None:
    """What the role does: the decision is noted on the host, which boots, and is looked at again."""
    decided = decide(case)
    assert decided.verdict == "now"
    proc = root / "proc/sys/kernel/random/boot_id"
    proc.parent.mkdir(parents=True, exist_ok=True)
    proc.write_text(f"{case.observed['boot-id']}\n")
    assert boot.note(root, "try", decided.to_json()["purpose"]) is True
    case.observed["driver"]["reboot-tried"] = noted.read_note(str(root))
    if boots:
        case.observed["boot-id"] = SINCE if case.observed["boot-id"] == BEFORE else THIRD


def test_a_kernel_that_hung_is_not_tried_every_night(case: Case, tmp_path: Path) -> None:
    # The power was cut, and the former kernel runs again: once it may have failed by itself.
    reboot(case, tmp_path)
    reboot(case, tmp_path)
    decided = decide(case)
    assert decided.verdict == "refused"
    (why,) = decided.why
    assert why.startswith("2 reboots were made for just this, the last at 20")
    assert f"remove {NOTE} on the host" in why
    assert "llamarig doctor demo" in why


def test_a_module_that_never_loads_is_not_booted_for_again(case: Case, tmp_path: Path) -> None:
    del case.observed["driver"]["kernels"][NEWER]
    case.observed["driver"].update({"loaded": "", "open": False})
    reboot(case, tmp_path)
    reboot(case, tmp_path)
    assert decide(case).verdict == "refused"
    assert decide(case).needed == (f"no NVIDIA module is loaded, wanted {VERSION}",)


def test_power_that_failed_while_it_came_up_is_no_proof(case: Case, tmp_path: Path) -> None:
    reboot(case, tmp_path)
    assert decide(case).verdict == "now"
    assert in_vain(view(case), NEWER) == ""


def test_a_reboot_that_did_not_come_to_pass_is_none(case: Case, tmp_path: Path) -> None:
    for _ in range(TRIES + 1):
        reboot(case, tmp_path, boots=False)
    assert decide(case).verdict == "now"
    assert case.observed["driver"]["reboot-tried"]["tries"] == "1"


def test_what_changed_is_counted_from_the_first(case: Case, tmp_path: Path) -> None:
    reboot(case, tmp_path)
    CHANGES["a third kernel"](case.observed["driver"])
    reboot(case, tmp_path)
    assert case.observed["driver"]["reboot-tried"]["tries"] == "1"
    assert decide(case).verdict == "now"


CHANGES: dict[str, Change] = {
    "a third kernel": lambda seen: seen["kernels"].update({"6.12.121+deb13-amd64": seen["kernels"][NEWER]}),
    "the kernel is gone": lambda seen: seen["kernels"].pop(NEWER) and seen.update(loaded="570.1"),
    "a package of the driver": lambda seen: seen["packages"].update(
        {"libcuda1": {"version": f"{VERSION}-2", "state": "installed", "held": True}}
    ),
}


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_what_changed_since_makes_it_another_reboot(case: Case, tmp_path: Path, name: str) -> None:
    reboot(case, tmp_path)
    reboot(case, tmp_path)
    assert decide(case).verdict == "refused"
    CHANGES[name](case.observed["driver"])
    assert decide(case).verdict == "now"


def test_another_driver_is_another_purpose(case: Case) -> None:
    open_ = purpose(view(case), NEWER)
    assert open_["module"] == f"{VERSION} open"
    case.want(driver=wanted_driver("proprietary"))
    assert purpose(view(case), NEWER)["module"] == f"{VERSION} proprietary"
    assert purpose(view(case), KERNEL)["kernel"] == KERNEL
    case.want(driver=None)
    assert purpose(view(case), NEWER) == {}
    assert in_vain(view(case), NEWER) == ""


def test_a_boot_that_brings_it_is_needed_no_more(case: Case, tmp_path: Path) -> None:
    reboot(case, tmp_path)
    case.observed["kernel"] = NEWER
    assert decide(case).verdict == "not-needed"


@pytest.mark.parametrize("seen", [None, 7, [], {}, {"boot-id": 7}, {"boot-id": BEFORE, "kernel": NEWER}])
def test_what_is_no_note_stands_against_nothing(case: Case, seen: Any) -> None:
    case.observed["boot-id"] = SINCE
    case.observed["driver"]["reboot-tried"] = seen
    assert decide(case).verdict == "now"


def test_a_note_cannot_steer_a_terminal(case: Case) -> None:
    case.observed["boot-id"] = SINCE
    case.observed["driver"]["reboot-tried"] = {
        **purpose(view(case), NEWER),
        "boot-id": BEFORE,
        "at": "\x1b[2J",
        "tries": "2",
    }
    assert "\x1b" not in decide(case).why[0]


@pytest.mark.parametrize("tries", [None, 2, "", "0", "-2", "02", "two", "\u0662", "9" * 5000])
def test_a_count_that_is_none_stands_against_nothing(case: Case, tries: Any) -> None:
    case.observed["boot-id"] = SINCE
    case.observed["driver"]["reboot-tried"] = {**purpose(view(case), NEWER), "boot-id": BEFORE, "tries": tries}
    assert decide(case).verdict == "now"


def test_status_tells_of_it(case: Case, tmp_path: Path) -> None:
    told = state_of(case.wanted, case.observed)["reboot"]
    assert told == {"needed": [f"kernel {KERNEL} runs and {NEWER} is installed"], "in-vain": ""}
    reboot(case, tmp_path)
    assert state_of(case.wanted, case.observed)["reboot"] == told
    reboot(case, tmp_path)
    assert state_of(case.wanted, case.observed)["reboot"]["in-vain"] == decide(case).why[0]
    case.observed["kernel"] = NEWER
    assert state_of(case.wanted, case.observed)["reboot"] is None


@pytest.mark.parametrize("operation", ["keep", "choose"])
def test_a_boot_that_was_proven_or_chosen_is_noted_no_more(tmp_path: Path, operation: str) -> None:
    assert boot.note(tmp_path, operation, {}) is False
    boot.note(tmp_path, "try", {"kernel": NEWER, "module": "1 open", "packages": "x"})
    place = tmp_path / NOTE.lstrip("/")
    assert json.loads(place.read_text())["kernel"] == NEWER
    assert place.stat().st_mode & 0o777 == 0o644
    assert boot.note(tmp_path, operation, {}) is True
    assert not place.exists()


def test_nothing_is_noted_without_a_purpose(tmp_path: Path) -> None:
    assert boot.note(tmp_path, "try", {}) is False
    assert noted.read_note(str(tmp_path)) is None


@pytest.mark.parametrize("text", [NO_COUNT, "", "[]", "{}", '{"at": 7}', "x" * (1 << 15), "[" * 5000])
def test_a_file_of_another_form_is_no_note(tmp_path: Path, text: str) -> None:
    place = tmp_path / NOTE.lstrip("/")
    place.parent.mkdir(parents=True)
    place.write_text(text)
    assert noted.read_note(str(tmp_path)) is None
    place.unlink()
    place.symlink_to("/etc/passwd")
    assert noted.read_note(str(tmp_path)) is None


def test_both_sides_name_one_file() -> None:
    assert noted.NOTE == NOTE
