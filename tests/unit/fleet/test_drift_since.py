"""Since when a thing differs: bounded by the record and by what the host's file system and systemd tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llamarig.compare import compare
from llamarig.compare.view import view_of
from llamarig.fleet.drift.host import Difference, host_drift
from llamarig.fleet.drift.since import Since, since
from llamarig.fleet.drift.words import since_words
from tests.support.compare import changes
from tests.support.compare.cases import KEYS, MODEL, PROBE, UNIT, Case, observation, sha
from tests.support.compare.driver_case import driver_case
from tests.support.compare.planted import PLANTED, Planted
from tests.support.power.cases import BLACKWELL
from tests.support.power.cases import observed as power_observed
from tests.support.power.cases import wanted as power_wanted

RECORD = "2026-11-29T16:00:00Z"
RECORD_S = 1795968000.0
LATER_S, LATER = RECORD_S + 3600, "2026-11-29T17:00:00Z"
EARLIER_S = RECORD_S - 3600
CURRENT = "/opt/llamarig/current"
DPKG = "/var/lib/dpkg/status"
Change = Callable[[Case], None]


def drift(case: Case) -> tuple[Difference, ...]:
    return host_drift(case.wanted, case.observed, compare(case.wanted, case.observed)).differences


def only(case: Case) -> Since:
    (found,) = drift(case)
    return found.since


def changed(case: Case, at: float, *paths: str) -> Case:
    case.observed["changed"] = dict.fromkeys(paths, at)
    return case


def after(change: Change, at: float, *paths: str) -> Since:
    case = changed(Case(), at, *paths)
    change(case)
    return only(case)


def test_a_converged_host_has_no_drift() -> None:
    case = changed(Case(), LATER_S, UNIT, PROBE, KEYS, CURRENT, DPKG, "/etc/passwd")
    assert drift(case) == ()


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name.replace(" ", "-"))
def test_every_planted_change_is_found_and_has_bounds_that_are_no_guess(planted: Planted) -> None:
    case = changed(Case(), LATER_S, UNIT, PROBE, KEYS, CURRENT, DPKG, "/etc/passwd", MODEL)
    planted.change(case)
    (found,) = drift(case)
    assert (found.action.kind, found.action.subject) == (planted.kind, planted.subject)
    since = found.since
    assert since.after is None or since.after in (RECORD, since.before)
    assert bool(since.before) == bool(since.by)
    assert since_words(since) or planted.name == "record removed"


def test_an_edited_file_is_bounded_by_record_and_ctime() -> None:
    assert after(changes.edit_unit, LATER_S, UNIT) == Since(RECORD, LATER, "the last change of it", "host")


def test_a_removed_file_is_bounded_by_its_directory() -> None:
    gone = changes.put("files", PROBE, value={"type": "absent"})
    assert after(gone, LATER_S, PROBE) == Since(RECORD, LATER, "the last change in its directory", "host")


def test_a_changed_spec_is_told_apart_from_a_changed_host() -> None:
    found = after(changes.change_flag_in_spec, LATER_S, UNIT)
    assert found == Since(RECORD, None, "", "spec"), "the file is as recorded, whenever its inode changed"


def test_a_file_edited_while_its_apply_ran_is_older_than_the_record() -> None:
    assert after(changes.edit_unit, EARLIER_S, UNIT) == Since(
        None, "2026-11-29T15:00:00Z", "the last change of it", "host"
    )


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (changes.put("packages", "cmake", value=None), DPKG),
        (changes.put("users", "llama-chat", value=None), "/etc/shadow"),
        (changes.put("directories", "/opt/llamarig", "mode", value="0777"), "/opt/llamarig"),
        (changes.put("credentials", KEYS, "mode", value="0644"), KEYS),
    ],
)
def test_what_holds_a_thing_bounds_it_and_tells_when_only_the_spec_can_have_changed(change: Change, path: str) -> None:
    found = after(change, LATER_S, path)
    assert (found.after, found.before) == (RECORD, LATER)
    assert found.cause in ("host", "unknown")
    assert after(change, EARLIER_S, path) == Since(RECORD, None, "", "spec")
    assert after(change, EARLIER_S, "/elsewhere").before is None


def test_a_stopped_service_tells_the_very_moment() -> None:
    case = Case()
    case.stop()
    case.unit()["stopped"] = LATER_S
    assert only(case) == Since(LATER, LATER, "systemd: the service stopped", "host")


def test_a_process_with_other_arguments_has_them_since_its_start() -> None:
    case = Case()
    changes.run_other_arguments(case)
    case.unit()["started"] = LATER_S
    assert only(case) == Since(LATER, LATER, "systemd: the service started", "host")


def test_a_service_that_is_only_disabled_says_nothing_of_when() -> None:
    found = after(changes.put("units", "llama-chat.service", "enabled", value="disabled"), LATER_S)
    assert found == Since(RECORD, None, "", "host")


def test_a_replaced_binary_is_bounded_by_its_own_ctime() -> None:
    case = Case()
    changes.replace_binary(case)
    case.release()["files"]["bin/llama-server"]["stat"][4] = int(LATER_S * 1e9)
    assert only(case) == Since(RECORD, LATER, "the last change of its files", "host")


def test_a_wanted_release_that_is_not_the_recorded_one_is_the_specs_doing() -> None:
    case = Case()
    case.observed["releases"] = {}
    case.observed["record"]["release"] = changes.OLDER
    case.observed["current"] = f"releases/{changes.OLDER}"
    causes = {each.action.kind: each.since.cause for each in drift(case)}
    assert (causes["release"], causes["switch"]) == ("spec", "spec")


def test_a_moved_link_is_the_hosts_doing() -> None:
    assert after(changes.move_link, LATER_S, CURRENT) == Since(RECORD, LATER, "the last change of it", "host")


def test_without_a_record_nothing_is_known_to_have_been_right() -> None:
    case = changed(Case(), LATER_S, UNIT)
    changes.edit_unit(case)
    case.observed["record-state"] = "unreadable"
    found = {each.action.kind: each.since for each in drift(case)}
    assert found["file"].after is None
    assert found["file"].cause == "unknown"


@pytest.mark.parametrize("lie", ["yesterday", "2026-11-29T16:00:00Z\x1b[2J", 7, None, ["x"], {"a": 1}])
def test_a_record_that_tells_no_time_is_not_quoted(lie: Any) -> None:
    case = changed(Case(), LATER_S, UNIT)
    changes.edit_unit(case)
    case.observed["record"]["applied-at"] = lie
    assert only(case).after is None


@pytest.mark.parametrize("lie", ["soon", 1e30, -1e30, float("nan"), True, None, [], {"a": 1}])
def test_times_that_are_none_are_not_known(lie: Any) -> None:
    case = Case()
    case.observed["changed"] = dict.fromkeys((UNIT, PROBE, KEYS, CURRENT, DPKG, "/etc/passwd", MODEL), lie)
    changes.edit_unit(case)
    changes.remove_credential(case)
    case.observed["packages"]["cmake"] = None
    case.observed["users"]["llama-chat"] = None
    case.release()["files"]["bin/llama-server"] |= {"sha256": sha("x"), "stat": [lie] * 5}
    found = drift(case)
    assert len(found) == 5
    assert {each.since.before for each in found} == {None}
    stopped = Case()
    stopped.stop()
    stopped.unit()["stopped"] = lie
    assert only(stopped).before is None


def gpu_case() -> Case:
    return changed(driver_case(), LATER_S, DPKG)


@pytest.mark.parametrize(
    ("name", "package", "words"),
    [
        ("nvidia-driver-cuda", {"version": "610.57.04-1", "state": "installed", "held": False}, "not held"),
        ("libnvidia-compute", {"version": "570.133.07-1", "state": "installed", "held": True}, "is 570.133.07"),
        ("nvidia-kernel-dkms", {"version": "610.57.04-1", "state": "installed", "held": True}, "flavour"),
    ],
    ids=["hold", "driver", "flavour"],
)
def test_driver_hold_and_flavour_are_found(name: str, package: dict[str, Any], words: str) -> None:
    case = gpu_case()
    assert drift(case) == ()
    case.observed["driver"]["packages"][name] = package
    (found,) = drift(case)
    assert found.action.subject == name
    assert words in found.action.reason
    assert found.since == Since(RECORD, LATER, "the last change of any package", "unknown")


def test_what_is_no_package_of_the_driver_is_not_dated_by_the_packages() -> None:
    case = gpu_case()
    case.observed["driver"]["enabled"] = False
    assert only(case).before is None


def test_a_power_limit_is_found_and_dated_by_the_watch() -> None:
    wanted = power_wanted()
    seen = observation(wanted) | {key: power_observed(wanted)[key] for key in ("power",)}
    seen["units"] |= power_observed(wanted)["units"]
    seen["boot-id"] = power_observed(wanted)["boot-id"]
    card = seen["power"]["state"]["cards"][BLACKWELL]
    card["limit-w"] = 70.0
    power = [action for action in compare(wanted, seen) if action.kind == "power"]
    assert [action.subject for action in power] == ["card blackwell"]
    view = view_of(wanted, seen)
    card["changed-by-others"] = {"count": 1, "at": LATER, "from-w": 70.0}
    assert since(view, power[0]) == Since(LATER, LATER, "the watch over power", "host")
    card["changed-by-others"] = {"count": 1, "at": "\x1b[2Jnow"}
    assert since(view, power[0]).before is None
