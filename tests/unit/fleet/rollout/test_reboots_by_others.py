"""Hosts whose reboot somebody else makes while a rollout waits for it, or is about to make it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.fleet.rollout.stand_in import Killed, begin, forward, phases
from tests.unit.fleet.rollout.test_reboots import NEW, fleet, go_on, host


@pytest.mark.parametrize("release", ["old", "new"])
def test_a_host_that_somebody_rebooted_by_hand_is_brought_to_its_end(tmp_path: Path, release: str) -> None:
    hosts = fleet(3, h0=host(verdict="refused", why=("maintenance.reboot is `never`",), release=release))
    place = tmp_path / "r"
    forward(begin(place, hosts, [1, 2]), hosts, place)
    hosts.hosts["h0"].module = NEW
    told = go_on(place, hosts)
    assert phases(told) == dict.fromkeys(("h0", "h1", "h2"), "done")
    assert (hosts.hosts["h0"].rebooted, told.hosts["h0"].reboot, told.hosts["h1"].reboot) == (0, "", "made")


def test_the_users_of_a_host_that_was_rebooted_by_hand_have_a_say(tmp_path: Path) -> None:
    hosts, place = fleet(2, h1=host(verdict="ask")), tmp_path / "r"
    forward(begin(place, hosts, [1, 1]), hosts, place)
    hosts.hosts["h1"].module = NEW
    told = go_on(place, hosts, lambda names: dict.fromkeys(names, "3 requests are answered"))
    assert (told.status, told.hosts["h1"].reason) == ("incomplete", "3 requests are answered")
    assert (told.hosts["h1"].between, hosts.hosts["h1"].touched) == (True, 1)
    assert go_on(place, hosts).status == "done"


@pytest.mark.parametrize("begun", [True, False])
def test_nobody_is_asked_for_what_is_in_the_middle_or_still_waits(tmp_path: Path, begun: bool) -> None:
    hosts, place = fleet(2, h1=host(verdict="ask")), tmp_path / "r"
    forward(begin(place, hosts, [1, 1]), hosts, place)
    if begun:
        hosts.hosts["h1"].module, hosts.on_apply = NEW, lambda: (_ for _ in ()).throw(Killed())
        with pytest.raises(Killed):
            go_on(place, hosts)
        hosts.on_apply = None
    asked: list[str] = []

    def gate(names: Sequence[str]) -> dict[str, str]:
        asked.extend(names)
        return dict.fromkeys(names, "in use")

    assert go_on(place, hosts, gate).status == ("done" if begun else "incomplete")
    assert asked == []


def test_a_host_that_needs_none_any_more_when_it_is_asked_goes_on(tmp_path: Path) -> None:
    hosts = fleet(1, h0=host(verdict="ask"))
    place = tmp_path / "r"
    log, asked = begin(place, hosts, [1]), hosts.may_reboot

    def by_hand(names: Sequence[str]) -> dict[str, Any]:
        hosts.hosts["h0"].module = NEW
        return asked(names)

    hosts.may_reboot = by_hand  # type: ignore[method-assign]  # a hand that is quicker than the question
    assert phases(forward(log, hosts, place)) == {"h0": "done"}


def test_a_host_that_somebody_rebooted_right_before_goes_on(tmp_path: Path) -> None:
    hosts = fleet(2)

    def comes() -> None:
        hosts.hosts["h0"].module, hosts.hosts["h0"].verdict, hosts.on_reboot = NEW, "not-needed", None

    hosts.on_reboot = comes
    told = forward(begin(tmp_path / "r", hosts, [1, 1]), hosts, tmp_path / "r")
    assert (told.status, phases(told)) == ("done", {"h0": "done", "h1": "done"})
    assert (hosts.hosts["h0"].rebooted, told.hosts["h0"].reboot, told.hosts["h1"].reboot) == (0, "", "made")
    assert hosts.proven[0] == "h0"
