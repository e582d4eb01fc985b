"""When a host reboots: the whole table of need, safety, permission and idleness."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from llamarig.compare.reboot import Policy, ahead, busy, decide_reboot, differs_after, newest
from llamarig.compare.view import View
from llamarig.converge.hosts import reboot_policy
from tests.support.compare.cases import Case
from tests.support.compare.driver_case import driver_case
from tests.support.compare.driver_seen import KERNEL
from tests.support.docs.refusals import spec_of

VERSION = "610.57.04"
NEWER = "6.12.120+deb13-amd64"
BUILT = {"headers": True, "dkms": {f"nvidia/{VERSION}": "installed"}}
IDLE: dict[str, Any] = {"users": [], "services": {"chat": {"running": True, "processing": 0, "recent": 0, "error": ""}}}
CARD = {"bus-id": "0000:01:00.0", "device": "0x2b85", "uuid": "GPU-01234567-89ab-cdef-0123-456789abcdef"}
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
def case() -> Case:
    made = driver_case()
    made.observed["gpus"] = [CARD]
    return made


def view(case: Case) -> View:
    return View(case.wanted, case.observed)


def newer_kernel(case: Case, entry: dict[str, Any] | None = None) -> Case:
    case.observed["driver"]["kernels"][NEWER] = entry or BUILT
    return case


def test_a_host_on_which_all_agrees_needs_none(case: Case) -> None:
    decided = decide_reboot(view(case), Policy("now"), IDLE, allowed=True)
    assert (decided.verdict, decided.needed) == ("not-needed", ())


def test_a_host_whose_driver_is_not_managed_needs_none() -> None:
    plain = Case()
    plain.observed["kernel"] = "6.1.0-1-amd64"
    assert decide_reboot(View(plain.wanted, plain.observed), Policy("now"), IDLE).verdict == "not-needed"


@pytest.mark.parametrize("case_of", ["kernel", "module"])
def test_a_newer_kernel_and_another_module_need_one(case: Case, case_of: str) -> None:
    if case_of == "kernel":
        newer_kernel(case)
    else:
        case.observed["driver"]["loaded"] = "570.124.06"
    decided = decide_reboot(view(case), Policy("now"), IDLE)
    assert decided.verdict == "now"
    assert len(decided.needed) == 1
    assert decided.kernel == (NEWER if case_of == "kernel" else KERNEL)


@pytest.mark.parametrize(
    ("policy", "idle", "allowed", "verdict"),
    [
        (Policy("never"), IDLE, True, "refused"),
        (Policy("ask"), IDLE, False, "ask"),
        (Policy("ask"), IDLE, True, "now"),
        (Policy("ask"), {"users": ["anna on pts/0"], "services": {}}, True, "now"),
        (Policy("now"), IDLE, False, "now"),
        (Policy("now"), {"users": ["anna on pts/0"], "services": {}}, True, "waits"),
        (Policy("now"), None, True, "waits"),
        (Policy("now", local=True), IDLE, True, "refused"),
        (Policy("ask", local=True), IDLE, True, "refused"),
    ],
)
def test_who_may_and_when(case: Case, policy: Policy, idle: Any, allowed: bool, verdict: str) -> None:
    decided = decide_reboot(view(newer_kernel(case)), policy, idle, allowed=allowed)
    assert decided.verdict == verdict
    assert decided.why or verdict in ("now", "ask")


NOON = datetime(2026, 12, 2, 12, tzinfo=UTC).timestamp()
"""A Wednesday."""
CLOCK = {"utc-offset-s": 3600, "timezone": ""}
OPENS = "outside its maintenance window, which opens Sat 05 Dec 22:00 (its own time)"


@pytest.mark.parametrize("word", ["ask", "now"])
@pytest.mark.parametrize(
    ("policy", "clock", "why"),
    [
        (Policy(window=("Wed 13:00-14:00",)), CLOCK, ""),
        (Policy(window=("Wed 11:00-12:30",), timezone="UTC"), CLOCK, ""),
        (Policy(window=("Sat 22:00-23:00", "Sun 00:00-24:00")), CLOCK, OPENS),
        (Policy(window=("Wed 13:00-14:00",), timezone="UTC"), CLOCK, "outside its maintenance window, which opens Wed"),
        (Policy(window=("Wed 13:00-14:00",)), {}, "its clock does not say which time zone it is in"),
    ],
)
def test_a_reboot_waits_for_the_window_whoever_allows_it(
    case: Case, word: Any, policy: Policy, clock: dict[str, Any], why: str
) -> None:
    idle = IDLE | {"clock": clock}
    decided = decide_reboot(view(newer_kernel(case)), replace(policy, reboot=word), idle, allowed=True, now=NOON)
    assert decided.verdict == ("waits" if why else "now")
    assert [each[: len(why)] for each in decided.why] == ([why] if why else [])


def test_a_window_on_a_clock_that_nobody_read_is_closed(case: Case) -> None:
    policy = Policy("now", window=("00:00-24:00",))
    assert decide_reboot(view(newer_kernel(case)), policy, IDLE | {"clock": CLOCK}).verdict == "waits"


def test_the_spec_of_a_host_says_what_the_decision_needs() -> None:
    given = {"reboot": "now", "window": "Sat 02:00-06:00", "timezone": "Europe/Berlin", "idle-minutes": 30}
    assert policy_of(given) == Policy("now", 30, window=("Sat 02:00-06:00",), timezone="Europe/Berlin")
    several = ["Sat 02:00-06:00", "Sun 02:00-06:00"]
    assert policy_of(given | {"window": several}).window == tuple(several)
    assert policy_of({}) == Policy()


def policy_of(maintenance: dict[str, Any]) -> Policy:
    """As it comes to the host's plugin."""
    spec, _ = spec_of("cuda", json.dumps({"maintenance": maintenance}))
    return Policy.of(reboot_policy(spec))


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({}, ""),
        ({"loaded": "570.124.06"}, f"module 570.124.06 (open) is loaded, wanted {VERSION}"),
        ({"loaded": "", "nouveau": ["nouveau"]}, f"a free driver holds the cards, wanted {VERSION}"),
        ({"loaded": ""}, ""),
        (
            {"loaded": "570.124.06", "packages": {}, "kernels": {}},
            f"module 570.124.06 (open) is loaded, wanted {VERSION}",
        ),
        ({"loaded": VERSION, "packages": {}}, ""),
    ],
)
def test_a_reboot_is_foreseen_where_another_module_holds_the_cards(
    case: Case, seen: dict[str, Any], words: str
) -> None:
    case.observed["driver"].update(seen)
    assert ahead(view(case)) == words


def test_none_is_foreseen_where_no_driver_is_managed() -> None:
    plain = Case()
    plain.observed["driver"] = {"loaded": "570.124.06"}
    assert ahead(View(plain.wanted, plain.observed)) == ""


UNSAFE: dict[str, tuple[Change, str]] = {
    "the module of the new kernel is only added": (
        lambda seen: seen["kernels"].update({NEWER: {"headers": True, "dkms": {f"nvidia/{VERSION}": "added"}}}),
        f"the module for kernel {NEWER} is only added",
    ),
    "built, but not installed": (
        lambda seen: seen["kernels"].update({NEWER: {"headers": True, "dkms": {f"nvidia/{VERSION}": "built"}}}),
        "is only built",
    ),
    "no headers": (lambda seen: seen["kernels"].update({NEWER: {"headers": False, "dkms": {}}}), "headers"),
    "a module of another version": (
        lambda seen: seen["kernels"].update({NEWER: {"headers": True, "dkms": {"nvidia/570.1": "installed"}}}),
        f"there is no module {VERSION}",
    ),
    "an old kernel without its module": (
        lambda seen: seen["kernels"].update({"6.1.0-1-amd64": {"headers": True, "dkms": {}}}),
        "for kernel 6.1.0-1-amd64",
    ),
    "half-configured": (
        lambda seen: seen["packages"]["nvidia-kernel-open-dkms"].update(state="half-configured"),
        "dpkg has not finished",
    ),
    "not signed for Secure Boot": (lambda seen: seen.update({"secure-boot": True}), "Secure Boot"),
    "signed, and not enrolled yet": (
        lambda seen: seen.update({"secure-boot": True, "signing-key": "pending"}),
        "confirmed at the console",
    ),
    "an initramfs that may load nouveau": (lambda seen: seen.update(initramfs=[KERNEL]), "initramfs"),
}


@pytest.mark.parametrize("name", sorted(UNSAFE))
def test_what_is_not_safe_is_refused_whoever_allows_it(case: Case, name: str) -> None:
    change, words = UNSAFE[name]
    newer_kernel(case)
    change(case.observed["driver"])
    decided = decide_reboot(view(case), Policy("now"), IDLE, allowed=True)
    assert decided.verdict == "refused"
    assert any(words in why for why in decided.why), decided.why


def test_secure_boot_with_an_enrolled_key_is_safe(case: Case) -> None:
    newer_kernel(case).observed["driver"].update({"secure-boot": True, "signing-key": "enrolled"})
    assert decide_reboot(view(case), Policy("now"), IDLE).verdict == "now"


@pytest.mark.parametrize("seen", [{"release": "x"}, {"begun": True}, {"begun": None}, {"begun": 0}, {}, [], "x", 0])
def test_an_apply_that_had_begun_to_change_what_runs_comes_first(case: Case, seen: Any) -> None:
    newer_kernel(case).observed["unfinished"] = seen
    assert decide_reboot(view(case), Policy("now"), IDLE).verdict == "refused"


def test_an_apply_that_was_killed_before_that_is_in_nobodys_way(case: Case) -> None:
    """It cannot end: the next one ends for the reboot, whatever was held before."""
    case.observed["driver"]["loaded"] = "570.124.06"
    case.observed["unfinished"] = {"release": "x", "begun": False}
    assert decide_reboot(view(case), Policy("now"), IDLE).verdict == "now"


@pytest.mark.parametrize("seen", [{}, {"kernels": []}, {"kernels": None, "loaded": 7}, 7, None])
def test_a_malformed_look_reboots_nothing(case: Case, seen: Any) -> None:
    case.observed["driver"] = seen
    assert decide_reboot(view(case), Policy("now"), IDLE, allowed=True).verdict in ("not-needed", "refused")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"running": True, "processing": 1, "recent": 1, "error": ""}, "chat answers 1 request"),
        ({"running": True, "processing": 0, "recent": 3, "error": ""}, "chat had 3 requests within 10 minutes"),
        ({"running": True, "processing": None, "recent": None, "error": "timed out"}, "nobody knows"),
        ({"running": True, "processing": True, "recent": 0}, "nobody knows"),
        (7, "nobody knows"),
    ],
)
def test_a_service_that_somebody_uses(entry: Any, words: str) -> None:
    (found,) = busy({"users": [], "services": {"chat": entry}}, 10)
    assert words in found


def test_a_service_that_is_down_keeps_nobody_waiting() -> None:
    assert busy({"users": [], "services": {"chat": {"running": False}}}, 10) == []
    assert busy({"services": {}}, 10) == ["users are unknown"]


@pytest.mark.parametrize(
    ("kernels", "last"),
    [
        (["6.12.96+deb13-amd64", "6.12.117+deb13-amd64"], "6.12.117+deb13-amd64"),
        (["6.12.117+deb13-amd64", "7.3.4+deb14-amd64"], "7.3.4+deb14-amd64"),
        (["6.12.9-amd64", "6.12.10-amd64", "6.1.0-30-amd64"], "6.12.10-amd64"),
        (["6.12.117+deb13-cloud-amd64", "6.12.117+deb13-amd64"], "6.12.117+deb13-cloud-amd64"),
        ([], ""),
    ],
)
def test_the_newest_kernel_is_the_one_that_boots(kernels: list[str], last: str) -> None:
    assert newest(dict.fromkeys(kernels)) == last
    assert newest(dict.fromkeys(reversed(kernels))) == last


def test_after_the_boot_all_agrees(case: Case) -> None:
    assert differs_after(view(case), KERNEL) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda seen: seen.update(kernel="6.1.0-1-amd64"), "kernel: 6.1.0-1-amd64 runs"),
        (lambda seen: seen["driver"].update(loaded="570.124.06"), "module: 570.124.06 is loaded"),
        (lambda seen: seen["driver"].update(loaded=""), "module: none is loaded"),
        (
            lambda seen: seen["driver"]["packages"].update({"libcuda1": {"version": "570.133.07-1"}}),
            "library: libcuda1 is 570.133.07",
        ),
        (
            lambda seen: seen["record"].update(gpus={"upper": "GPU-ffffffff-89ab-cdef-0123-456789abcdef"}),
            "record: card upper",
        ),
    ],
)
def test_after_the_boot_what_differs_is_named(case: Case, change: Change, word: str) -> None:
    change(case.observed)
    (found,) = differs_after(view(case), KERNEL)
    assert word in found
