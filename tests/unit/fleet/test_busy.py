"""Whether a host is in use: users, requests, windows; what cannot be told counts as use."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from llamarig.fleet.policy import Rules, busy, rules_of
from llamarig.spec.host import HostSpec
from llamarig.spec.rollout import Rollout
from llamarig.spec.window import parse_window

DEMO = Path(__file__).resolve().parents[3] / "inventory/demo.yml"
NOON = datetime(2026, 12, 2, 12, tzinfo=UTC).timestamp()
"""A Wednesday."""
DEFER = Rules(requests="defer")


def idle(**service: Any) -> dict[str, Any]:
    state = {"running": True, "processing": 0, "recent": 0, "error": ""} | service
    return {"users": [], "services": {"chat": state}, "clock": {"utc-offset-s": 3600, "timezone": ""}}


def reason(seen: dict[str, Any] | None, rules: Rules) -> str:
    use = busy(seen, rules, NOON)
    return "" if use is None else use.reason


def test_an_idle_host_may_be_changed() -> None:
    assert busy(idle(), Rules(), NOON) is None
    assert busy(idle(), DEFER, NOON) is None
    assert busy(idle(running=False, processing=None, recent=None), DEFER, NOON) is None


def test_running_requests_drain_or_defer() -> None:
    use = busy(idle(processing=2), Rules(), NOON)
    assert use is not None
    assert use.drains
    assert use.reason == "chat answers 2 requests"
    at_once = busy(idle(processing=2), Rules(drain_s=0), NOON)
    assert at_once is not None
    assert not at_once.drains, "where nobody waits there is nothing to be waited for"
    deferred = busy(idle(processing=1), DEFER, NOON)
    assert deferred is not None
    assert not deferred.drains
    assert busy(idle(processing=2), Rules(requests="ignore"), NOON) is None


def test_requests_of_late_count_where_they_defer() -> None:
    assert reason(idle(recent=1), DEFER) == "chat had 1 request within 10 minutes"
    assert reason(idle(recent=1), Rules()) == ""


def test_users_defer_and_do_not_drain() -> None:
    seen = idle(processing=1) | {"users": ["ann on tty1", "bob on pts/0", "cy on pts/1", "dee on pts/2"]}
    use = busy(seen, Rules(), NOON)
    assert use is not None
    assert not use.drains
    assert use.reason == "logged in: ann on tty1, bob on pts/0, cy on pts/1 and 1 more"
    assert reason(seen, Rules(users="ignore")) == "chat answers 1 request"


def test_one_service_that_cannot_be_asked_keeps_the_host_from_draining() -> None:
    seen = idle(processing=1)
    seen["services"]["other"] = {"running": True, "processing": None, "recent": None, "error": "no answer\x1b[2J"}
    use = busy(seen, Rules(), NOON)
    assert use is not None
    assert not use.drains
    assert "chat answers 1 request; nobody knows whether other answers requests: no answer" in use.reason
    assert use.reason.isprintable()


@pytest.mark.parametrize("seen", [None, {}, {"users": 3}, {"users": [], "services": {"chat": 7}}])
def test_what_is_not_known_counts_as_use(seen: dict[str, Any] | None) -> None:
    assert busy(seen, Rules(), NOON) is not None


def test_outside_its_window_a_host_is_left_alone_in_whatever_zone() -> None:
    # Noon in UTC is 13:00 on this host, and 21:00 in Tokyo.
    rules = Rules(windows=(parse_window("Wed 12:30-14:00"),))
    assert busy(idle(), rules, NOON) is None
    assert reason(idle(), replace(rules, timezone="Etc/UTC")) == (
        "outside its maintenance window, which opens Wed 02 Dec 12:30 (Etc/UTC)"
    )
    assert reason(idle(), replace(rules, timezone="Asia/Tokyo")).endswith("opens Wed 09 Dec 12:30 (Asia/Tokyo)")
    named = idle() | {"clock": {"utc-offset-s": 3600, "timezone": "Asia/Tokyo"}}
    assert reason(named, rules).endswith("opens Wed 09 Dec 12:30 (its own time)")


@pytest.mark.parametrize(
    "clock", [{}, {"utc-offset-s": "3600"}, {"utc-offset-s": 10**9}, {"timezone": "../etc/passwd"}]
)
def test_a_clock_that_says_nothing_keeps_the_window_shut(clock: dict[str, Any]) -> None:
    rules = Rules(windows=(parse_window("00:00-24:00"),))
    assert "does not say which time zone" in reason(idle() | {"clock": clock}, rules)
    assert reason(idle() | {"clock": clock}, Rules()) == ""


json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**12) | st.text(max_size=9),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=9), below, max_size=3),
    max_leaves=9,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "users": json,
            "services": json | st.dictionaries(st.text(), st.fixed_dictionaries({"processing": json, "recent": json})),
            "clock": json | st.fixed_dictionaries({"utc-offset-s": json, "timezone": json}),
        },
    ),
    st.sampled_from(["drain", "defer"]),
)
def test_no_answer_of_a_host_breaks_the_decision(seen: dict[str, Any], requests: Any) -> None:
    use = busy(seen, Rules(requests=requests, windows=(parse_window("22:00-06:00"),)), NOON)
    assert use is None or use.reason.isprintable()


def test_a_host_has_its_fleets_rules_and_its_own_window() -> None:
    document = yaml.safe_load(DEMO.read_text())
    document["maintenance"] = {"window": ["Sat 02:00-06:00", "22:00-23:00"], "timezone": "Europe/Berlin"}
    policy = Rollout.model_validate({"busy": {"requests": "defer", "requests-within-min": 30, "drain-s": 7}})
    rules = rules_of(HostSpec.model_validate(document), policy)
    assert (rules.requests, rules.within_min, rules.drain_s, rules.users) == ("defer", 30, 7, "defer")
    assert len(rules.windows) == 2
    assert rules.timezone == "Europe/Berlin"
    document["maintenance"] = {"window": "22:00-23:00", "idle-minutes": 3}
    rules = rules_of(HostSpec.model_validate(document), policy)
    assert (rules.within_min, len(rules.windows), rules.timezone) == (3, 1, None)
