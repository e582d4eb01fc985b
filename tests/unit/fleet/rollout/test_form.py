"""Records with right sums and odd values: each is told with its line, whichever verb reads it, and nothing begins."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamarig.cli import main, rollout_view
from llamarig.errors import ExitCode, RigError
from llamarig.fleet import in_use
from llamarig.fleet.rollout import journal, places
from llamarig.fleet.rollout.back import changed
from llamarig.fleet.rollout.form import MOST_TEXT
from llamarig.fleet.rollout.journal import parse
from llamarig.fleet.rollout.session import Session, start
from llamarig.fleet.rollout.state import State
from llamarig.fleet.view import page
from tests.unit.fleet.rollout.stand_in import Fleet, Machinery, no_gate
from tests.unit.fleet.rollout.test_verbs import WISH

VERBS = (["status"], ["status", "--json"], ["pause"], ["abort", "--yes"], ["resume", "--yes"], ["rollback", "--yes"])


def summed(records: Sequence[dict[str, Any]]) -> bytes:
    """The records as a journal, each with its right number and sum."""
    before, text = journal._START, b""
    for number, record in enumerate(records):
        said = {**record, "seq": number}
        said.pop("sum", None)
        before = journal._sum(said, before)
        text += json.dumps(said | {"sum": before}).encode() + b"\n"
    return text


def fleet() -> Fleet:
    return Fleet({"a": Machinery(module="1", installed="1"), "b": Machinery(bad=True)}, driver="2")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project with one rollout: a is done after a reboot, b came back, and it stopped; no host is real."""
    root = tmp_path_factory.mktemp("project")
    start(Session(root, make_hands=lambda _r, _p, _s: fleet()), WISH)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "hands", lambda _self, _place, _private: fleet())
        patch.setattr(in_use, "UseGate", lambda *_: no_gate)
        yield root


@pytest.fixture(scope="module")
def whole(project: Path) -> list[dict[str, Any]]:
    path = places.find(project, None) / journal.FILE
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def told(root: Path, records: Sequence[dict[str, Any]], *verb: str) -> int:
    (places.find(root, None) / journal.FILE).write_bytes(summed(records))
    return main._run(["-C", str(root), "rollout", *verb])


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**30, 10**400, float("inf"), float("nan"), 1e308, "\ud800", "[/x]", "\x1b[2J", "x" * 9000]),
    st.sampled_from(
        [
            "done",
            "running",
            "applying",
            "returning",
            "a",
            "b",
            "rebooting",
            "waits",
            "begun",
            "../../x",
            "wave 1",
            "rolled-back",
        ]
    ),
    st.text(max_size=8),
)
junk = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.sampled_from("ab"), inner),
    max_leaves=6,
)


def spots(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value within a record."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*here, key)
        if isinstance(each, dict | list):
            yield from spots(each, (*here, key))


def bent(records: Sequence[dict[str, Any]], data: st.DataObject) -> list[dict[str, Any]]:
    """The beginning of a journal, with one or two values changed or taken away."""
    found = copy.deepcopy(list(records))[: data.draw(st.integers(1, len(records)))]
    for _ in range(data.draw(st.integers(1, 2))):
        way = data.draw(st.sampled_from([spot for spot in spots(found) if len(spot) > 1]))
        inner: Any = found
        for key in way[:-1]:
            inner = inner[key]
        if data.draw(st.booleans()):
            inner[way[-1]] = data.draw(junk)
        else:
            del inner[way[-1]]
    return found


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_what_is_folded_can_be_shown(whole: list[dict[str, Any]], data: st.DataObject) -> None:
    try:
        found = State.fold(parse(summed(bent(whole, data))).records)
    except RigError as error:
        refused = error
    else:
        _can_be_shown(found)
        return
    assert refused.where.startswith("line ")
    assert refused.why
    assert refused.fix


def _can_be_shown(found: State) -> None:
    json.dumps(found.to_json(), allow_nan=False)
    page(found).encode()
    assert all(isinstance(rollout_view.detail(host), str) for host in found.hosts.values())
    assert set(found.open()) | set(changed(found)) <= set(found.hosts)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_verb_falls_over_whatever_a_record_holds(
    project: Path, whole: list[dict[str, Any]], data: st.DataObject
) -> None:
    records = bent(whole, data)
    for verb in VERBS:
        assert told(project, records, *verb) in set(ExitCode)


ODD: list[tuple[dict[str, Any], str]] = [
    ({"policy": 3}, "`policy` is 3, not a map"),
    ({"policy": {"failures": "none"}}, "`policy.failures` is 'none', not a whole number"),
    ({"policy": {"canary": True}}, "`policy.canary` is true, not a whole number"),
    ({"policy": {"unreachable": "never"}}, "`policy.unreachable` is 'never', not one of defer, fail"),
    ({"options": []}, "`options` is a list, not a map"),
    ({"options": {"overlay": "x"}}, "`options.overlay` is 'x', not a map"),
    ({"options": {"overlay": {"path": ["x"]}}}, "`options.overlay.path` is a list, not a text"),
    ({"waves": {"a": 1}}, "`waves` is a map, not a list"),
    ({"waves": ["a"]}, "a wave is 'a', not a map"),
    ({"waves": [{"name": "x"}]}, "`waves.hosts` is missing, not a list of names"),
    ({"waves": [{"name": "x", "hosts": ["a", "a", "b"]}]}, "a host stands in more than one place"),
    ({"waves": [{"name": "x", "hosts": ["a"]}]}, "the host 'b' stands in one of `waves` and `hosts` alone"),
    ({"waves": [{"name": "x", "hosts": ["a", "b", "c"]}]}, "the host 'c' stands in one of"),
    ({"hosts": [1]}, "`hosts` is a list, not a map"),
    ({"hosts": {"a": 1, "b": {}}}, "`hosts.a.given` is 1, not a map"),
    ({"hosts": {"a": {"spec": 1}, "b": {}}}, "`hosts.a.spec` is 1, not a text"),
    ({"id": "y" * (MOST_TEXT + 1)}, f"`id` is a text of {MOST_TEXT + 1} characters, not a text of {MOST_TEXT}"),
    ({"by": "\ud800"}, r"`by` is '\\ud800', not a text"),
    ({"event": "host"}, "it begins no rollout"),
]


@pytest.mark.parametrize(("odd", "flaw"), ODD, ids=lambda each: each if isinstance(each, str) else "")
def test_an_odd_beginning_is_told(whole: list[dict[str, Any]], odd: dict[str, Any], flaw: str) -> None:
    State.fold(whole)
    with pytest.raises(RigError, match="line 1: the journal is not understood") as error:
        State.fold([whole[0] | odd])
    assert flaw in error.value.why


LATER: list[tuple[dict[str, Any], str]] = [
    ({"event": "host", "host": "a"}, "`phase` is missing, not one of applying"),
    ({"event": "host", "host": "a", "phase": "resting"}, "`phase` is 'resting', not one of applying"),
    ({"event": "host", "host": "a", "phase": ["done"]}, "`phase` is a list, not one of applying"),
    ({"event": "host", "host": "c", "phase": "done"}, "`host` is 'c', and no host of this rollout has that name"),
    ({"event": "host", "host": ["a"], "phase": "done"}, "`host` is a list, and no host"),
    ({"event": "host", "host": "a", "phase": "done", "seconds": "long"}, "`seconds` is 'long', not a number"),
    ({"event": "host", "host": "a", "phase": "done", "seconds": 10**400}, "`seconds` is a number beyond all reason"),
    ({"event": "host", "host": "a", "phase": "done", "seconds": float("inf")}, "`seconds` is a number beyond"),
    ({"event": "host", "host": "a", "phase": "done", "actions": 1.5}, "`actions` is 1.5, not a whole number"),
    ({"event": "host", "host": "a", "phase": "done", "checks": [1]}, "`checks` is a list, not a map of the numbers"),
    ({"event": "host", "host": "a", "phase": "done", "checks": {"passed": 1}}, "`checks` is a map, not a map of"),
    ({"event": "host", "host": "a", "phase": "done", "from-release": {}}, "`from-release` is a map, not a text"),
    ({"event": "host", "host": "a", "phase": "done", "between": "no"}, "`between` is 'no', not true or false"),
    ({"event": "host", "host": "a", "phase": "done", "reason": [[[[]]]]}, "`reason` is a list, not a text"),
    (
        {"event": "host", "host": "a", "phase": "done", "reboot": True},
        "`reboot` is true, not one of nothing, begun, made",
    ),
    ({"event": "resumed", "reboot": "yes"}, "`reboot` is 'yes', not true or false"),
    ({"event": "wave", "name": "wave 9"}, "`name` is 'wave 9', and no wave of this rollout has that name"),
    ({"event": "wave"}, "`name` is missing, and no wave"),
    ({"event": "finished"}, "`status` is missing, not one of aborted"),
    ({"event": "finished", "status": "well"}, "`status` is 'well', not one of aborted"),
    ({"event": "paused", "at": 3}, "`at` is 3, not a text"),
    ({"event": "rollout-started", "id": "x"}, "it begins a rollout a second time"),
]


@pytest.mark.parametrize(("odd", "flaw"), LATER, ids=lambda each: each if isinstance(each, str) else "")
def test_an_odd_record_is_told_with_its_line(whole: list[dict[str, Any]], odd: dict[str, Any], flaw: str) -> None:
    with pytest.raises(RigError, match=r"x/journal\.jsonl:3: the journal is not understood") as error:
        State.fold([*whole[:2], odd], "x/journal.jsonl")
    assert flaw in error.value.why


def test_what_a_later_version_tells_besides_is_passed_over(whole: list[dict[str, Any]]) -> None:
    more = [*whole, {"event": "sung", "song": [1]}, {"event": "host", "host": "a", "phase": "done", "mood": {}}]
    assert State.fold(more).records == len(more)


def test_no_file_is_named_after_a_host_that_is_no_host(whole: list[dict[str, Any]]) -> None:
    hosts = {"../../x": {"spec": "s"}}
    odd = whole[0] | {"waves": [{"name": "w", "hosts": ["../../x"]}], "hosts": hosts}
    with pytest.raises(RigError, match="has a spec, and is no name of a host"):
        State.fold([odd])
    refused = whole[0] | {"waves": odd["waves"], "hosts": {"../../x": {}}}
    assert State.fold([refused]).open() == ["../../x"]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_tells_where_why_and_what_to_do(
    project: Path, whole: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], verb: list[str]
) -> None:
    path = places.find(project, None) / journal.FILE
    assert told(project, [*whole[:2], {"event": "host", "host": "kim", "phase": "done"}], *verb) == 2
    said = capsys.readouterr().err
    assert f"{path}:3: the journal is not understood" in said
    assert "no host of this rollout has that name" in said
    assert "fix: find out who changed it" in said


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_no_verb_follows_a_link(
    project: Path, whole: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], tmp_path: Path, verb: list[str]
) -> None:
    path = places.find(project, None) / journal.FILE
    (tmp_path / "elsewhere").write_bytes(summed(whole))
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    try:
        assert main._run(["-C", str(project), "rollout", *verb]) == 2
    finally:
        path.unlink()
        path.write_bytes(summed(whole))
    said = capsys.readouterr().err
    assert f"{path}: the journal is no file of its own, and is not read" in said
    assert (tmp_path / "elsewhere").read_bytes() == summed(whole)


def test_the_journal_of_another_rollout_is_told(tmp_path: Path, whole: list[dict[str, Any]]) -> None:
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / journal.FILE).write_bytes(summed(whole))
    with pytest.raises(RigError, match="in the directory of another"):
        State.read(tmp_path / "moved")
