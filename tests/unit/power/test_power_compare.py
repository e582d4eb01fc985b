"""What of power differs gives its own action, and what holds gives none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llamarig.compare.learn import learn
from llamarig.compare.load import wanted_from_json
from llamarig.compare.power import SLEEP_TARGETS, power
from llamarig.compare.view import View
from llamarig.render.power import CONFIG_FILE, PROGRAM, SERVICE, TIMER
from tests.golden.cases import wanted_of
from tests.support.power.cases import BLACKWELL, observed, wanted

UNIT = f"/etc/systemd/system/{SERVICE}"
Change = Callable[[dict[str, Any]], Any]


def subjects(state: Any, seen: dict[str, Any]) -> list[str]:
    found = list(power(View(state, seen)))
    assert all(action.kind == "power" and action.reason for action in found)
    return [action.subject for action in found]


def state_of(seen: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = seen["power"]["state"]
    return found


def blackwell(seen: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = state_of(seen)["cards"][BLACKWELL]
    return found


def test_a_host_on_which_all_holds_has_nothing_to_do() -> None:
    state = wanted()
    assert subjects(state, observed(state)) == []


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        (lambda seen: seen["power"]["files"][UNIT].update(sha256="0" * 64), UNIT),
        (lambda seen: seen["power"]["files"][UNIT].update(mode="0666"), UNIT),
        (lambda seen: seen["power"]["files"].update({PROGRAM: {"type": "absent"}}), PROGRAM),
        (lambda seen: seen["power"]["files"].update({CONFIG_FILE: {"type": "link", "target": "/x"}}), CONFIG_FILE),
        (lambda seen: seen["power"]["masked"].remove("suspend.target"), "sleep"),
        (lambda seen: seen["units"][SERVICE].update(enabled="disabled"), SERVICE),
        (lambda seen: seen["units"][SERVICE].update(active="failed"), SERVICE),
        (lambda seen: seen["units"][SERVICE].update({"drop-ins": [f"{UNIT}.d/x.conf"]}), SERVICE),
        (lambda seen: seen["units"][TIMER].update(active="inactive"), TIMER),
        (lambda seen: seen["units"][TIMER].update(enabled="disabled"), TIMER),
        (lambda seen: seen["power"].update(state=None), "limits"),
        (lambda seen: state_of(seen).update({"boot-id": "of another boot"}), "limits"),
        (lambda seen: state_of(seen).update(error="nvidia-smi names no card"), "limits"),
        (lambda seen: blackwell(seen).update({"limit-w": 70.0}), "card blackwell"),
        (lambda seen: blackwell(seen).update({"limit-w": None}), "card blackwell"),
        (lambda seen: blackwell(seen).update({"limit-w": "60"}), "card blackwell"),
        (lambda seen: blackwell(seen).update({"enforced-w": 65.0}), "card blackwell"),
        (lambda seen: blackwell(seen).update(error="not taken"), "card blackwell"),
        (lambda seen: state_of(seen).update(cards={}), "card blackwell"),
    ],
)
def test_a_planted_change_is_its_own_action(change: Change, subject: str) -> None:
    state = wanted()
    seen = observed(state)
    change(seen)
    assert subjects(state, seen) == [subject]


@pytest.mark.parametrize(
    "change",
    [
        lambda seen: blackwell(seen).update({"limit-w": 60.04}),
        lambda seen: blackwell(seen).update({"enforced-w": 45.0}),
        lambda seen: blackwell(seen).update({"enforced-w": None}),
        lambda seen: seen["units"][SERVICE].update(active="activating"),
    ],
)
def test_what_is_no_difference(change: Change) -> None:
    """Heat may hold a card below its limit, and the timer may run at the moment of the look."""
    state = wanted()
    seen = observed(state)
    change(seen)
    assert subjects(state, seen) == []


@pytest.mark.parametrize(
    "seen", [{}, {"power": 7}, {"power": {"files": [], "state": [], "masked": "x"}, "units": None}]
)
def test_a_malformed_look_counts_as_different(seen: dict[str, Any]) -> None:
    assert PROGRAM in subjects(wanted(), seen)


def test_what_the_spec_no_longer_has_is_removed() -> None:
    before = wanted()
    after = wanted_of("demo")
    seen = observed(before)
    assert sorted(subjects(after, seen)) == sorted(seen["power"]["files"])
    seen["power"]["files"] = {path: {"type": "absent"} for path in seen["power"]["files"]}
    assert subjects(after, seen) == [], "masks that an owner has made without us stay"


def test_without_a_watch_the_timer_goes() -> None:
    seen = observed(wanted())
    state = wanted(("power", {"watch": False}))
    assert f"/etc/systemd/system/{TIMER}" in subjects(state, seen)


def test_only_our_own_masks_are_taken_away() -> None:
    state = wanted(("power", {"mask-sleep": False}))
    seen = observed(state)
    assert subjects(state, seen) == ["sleep"]
    seen["power"]["we-masked"] = False
    assert subjects(state, seen) == []


def test_a_cpu_host_wants_nothing_of_power() -> None:
    assert wanted_of("demo").power is None


def test_a_learned_uuid_reaches_the_configuration() -> None:
    state = wanted(("gpus.ada.uuid", None), ("gpus.ada.power-limit-w", 50))
    assert state.power is not None
    assert [card.uuid for card in state.power.cards] == [BLACKWELL, None]
    told = "GPU-11111111-2222-3333-4444-555555555555"
    gpus = [{"bus-id": "0000:01:00.0", "uuid": BLACKWELL}, {"bus-id": "0000:02:00.0", "uuid": told}]
    known = learn(state, {"schema": 1, "record-state": "absent", "gpus": gpus})
    assert known.power is not None
    (config,) = [file for file in known.power.files if file.path == CONFIG_FILE]
    assert f'"uuid": "{told}"' in config.content
    assert wanted_from_json(known.to_json()) == known


def test_every_sleep_target_is_one_that_the_observer_looks_at() -> None:
    from tests.support.observe.load import part

    looked = part("rig_power")
    assert looked.SLEEP_TARGETS == SLEEP_TARGETS
    assert (looked.CONFIG, looked.SERVICE, looked.TIMER) == (CONFIG_FILE, SERVICE, TIMER)
    assert set(looked.FILES) == set(observed(wanted())["power"]["files"])
