"""Whatever one host says, its drift is told with clean words and no guessed time, and the view of a fleet stands."""

from __future__ import annotations

import json
import random
import unicodedata
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamarig.cli.drift import of_host
from llamarig.cli.looked import Looked, judged
from llamarig.fleet.drift.fleet import counts, shared
from llamarig.fleet.drift.page import page
from llamarig.fleet.drift.words import difference_words, record_words, since_words
from tests.negative.compare.test_hostile_observations import CONVERGED, WANTED, documents, places, planted
from tests.support.compare.cases import KEYS, MODEL, PROBE, UNIT
from tests.support.compare.changes import OLDER

TIMES = ("/var/lib/dpkg/status", "/etc/passwd", "/opt/llamarig/current", UNIT, PROBE, KEYS, MODEL)
AT = datetime(2026, 11, 29, tzinfo=UTC)


def clean(text: str) -> bool:
    return all(ch == "\n" or unicodedata.category(ch)[0] != "C" for ch in text)


def fleet_of(observed: dict[str, Any]) -> list[Looked]:
    other = CONVERGED | {"current": f"releases/{OLDER}"}
    return [judged(WANTED, observed), judged(WANTED, other), judged(WANTED, CONVERGED)]


def assert_told(observed: dict[str, Any]) -> None:
    found = [of_host(each) for each in fleet_of(observed)]
    evil = found[0]
    for each in evil.differences:
        assert clean(difference_words(each.action))
        assert clean(since_words(each.since))
        for time in (each.since.after, each.since.before):
            assert time is None or (len(time) == 20 and time.endswith("Z"))
    assert clean(record_words(evil.record or {}))
    json.dumps([host.to_json() for host in found], allow_nan=False)
    assert counts(found).hosts == 3
    assert all(len(group.hosts) > 1 for group in shared(found))
    assert clean(page(found, AT))


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted({*CONVERGED, "changed"})), documents))
def test_any_document_is_told_beside_the_others(parts: dict[str, Any]) -> None:
    assert_told({**{key: CONVERGED[key] for key in ("os", "arch")}, **parts, "schema": 1})


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(places(CONVERGED)), documents, st.integers())
def test_any_value_anywhere_is_told_beside_the_others(path: tuple[Any, ...], value: Any, seed: int) -> None:
    observed = planted(path, value)
    pick = random.Random(seed)
    lies = [1795971600.0, 1e300, float("inf"), float("nan"), "\x1b[2J", None, True, -5, {}, [value]]
    observed["changed"] = {name: pick.choice(lies) for name in TIMES}
    assert_told(observed)
