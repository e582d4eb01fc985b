"""What a host says is hostile text: it is never believed by default, never raises, never steers a terminal."""

from __future__ import annotations

import copy
import json
import random
import unicodedata
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamarig.compare import Action, compare
from llamarig.compare.changes import file_diff
from llamarig.compare.drift import drift_json
from llamarig.compare.state import state_of
from llamarig.compare.text import hide_secrets, printable
from llamarig.errors import RigError
from tests.support.compare.cases import (
    KEYS,
    LINK,
    MODEL,
    RELEASE,
    UNIT,
    Case,
    bare_observation,
    observation,
    wanted_state,
)

WANTED = wanted_state()
CONVERGED = observation(WANTED)
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\n\u202eevil\u2066\u200b\u2028\x7f\x00 [bold red]x[/]"

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just(ESCAPES)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every value in a document."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    if isinstance(value, list):
        for at, item in enumerate(value):
            found += places(item, (*path, at))
    return found


PLACES = places(CONVERGED)


def planted(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    seen = copy.deepcopy(CONVERGED)
    at: Any = seen
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return seen


def clean(text: str) -> bool:
    return all(ch == " " or unicodedata.category(ch)[0] not in "CZ" for ch in text)


def compared(observed: dict[str, Any]) -> list[Action] | None:
    """The actions; None where what the host says of its system is not that of the spec's machine."""
    refused = None
    try:
        return compare(WANTED, observed)
    except RigError as error:
        refused = error
    assert refused.what.startswith("The host ")
    assert clean(refused.what)
    assert (observed.get("os"), observed.get("arch"), observed.get("systemd")) != MACHINE
    return None


MACHINE = (CONVERGED["os"], CONVERGED["arch"], CONVERGED["systemd"])


def assert_clean(actions: list[Action]) -> None:
    for action in actions:
        for text in (action.subject, action.reason, action.expected, action.observed, *action.restarts):
            assert clean(text), ascii(text)
        assert len(action.reason) <= 600
    json.dumps(drift_json("demo", actions), ensure_ascii=False).encode()


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(CONVERGED)), documents))
def test_any_document_gives_actions_or_a_named_error(parts: dict[str, Any]) -> None:
    system = {key: CONVERGED[key] for key in ("os", "arch")}
    observed = {**system, **parts, "schema": 1}
    state_of(WANTED, observed)
    actions = compared(observed)
    if actions is None:
        return
    assert_clean(actions)
    assert {"release", "switch"} <= {action.kind for action in actions} or {"releases", "current"} & set(parts)
    assert compare(WANTED, copy.deepcopy(observed)) == actions


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(PLACES), documents)
def test_any_value_in_any_place_is_survived(path: tuple[Any, ...], value: Any) -> None:
    observed = planted(path, value)
    if path == ("schema",):
        observed["schema"] = 1
    state_of(WANTED, observed)
    actions = compared(observed) or []
    assert_clean(actions)
    for action in actions:
        assert all(clean(line) for line in file_diff(WANTED, observed, action))


MANAGED = (
    "packages",
    "users",
    "files",
    "directories",
    "current",
    "releases",
    "models",
    "links",
    "credentials",
    "units",
    "processes",
    "ports",
    "record-state",
)


@pytest.mark.parametrize("part", MANAGED)
def test_what_was_not_looked_at_is_not_taken_for_right(part: str) -> None:
    for value in ("absent from the answer", None, [], "x", 7):
        observed = copy.deepcopy(CONVERGED)
        if value == "absent from the answer":
            del observed[part]
        else:
            observed[part] = value
        assert compare(WANTED, observed), f"{part}: {value!r} passed for converged"


@pytest.mark.parametrize("observed", [None, [], "x", 7, {}, {"schema": 2}, {"schema": "1"}, {"schema": None}])
def test_what_is_no_observation_is_refused_by_name(observed: Any) -> None:
    with pytest.raises(RigError) as caught:
        compare(WANTED, observed)
    assert caught.value.where == "demo"
    assert "malformed" in caught.value.what
    assert caught.value.fix


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"host": 7},
        WANTED.to_json() | {"services": "x"},
        WANTED.to_json() | {"release": []},
        WANTED.to_json() | {"files": [{"path": "/x"}]},
        WANTED.to_json() | {"directories": [["/x", "0755"]]},
    ],
)
def test_a_malformed_wanted_state_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(RigError, match="the wanted state is malformed"):
        compare(data, CONVERGED)


def test_the_order_of_keys_does_not_matter() -> None:
    observed = bare_observation(WANTED)
    dice = random.Random(7)

    def shuffled(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        items = list(value.items())
        dice.shuffle(items)
        return {key: shuffled(item) for key, item in items}

    assert compare(WANTED, shuffled(observed)) == compare(WANTED, observed)


def test_a_hostile_host_cannot_steer_the_terminal_from_anywhere() -> None:
    case = Case()
    case.observed["current"] = ESCAPES
    case.observed["users"]["llama-chat"]["shell"] = ESCAPES
    case.observed["links"][LINK] = ESCAPES
    case.observed["models"][MODEL]["mode"] = ESCAPES
    case.observed["files"][UNIT] |= {
        "sha256": ESCAPES,
        "lines": [ESCAPES, "ExecStart=x --api-key sk-1"],
        "owner": ESCAPES,
    }
    case.observed["credentials"][KEYS]["clients"] = [ESCAPES]
    case.observed["releases"][RELEASE]["files"][f"lib/{ESCAPES}"] = {"type": "file"}
    case.observed["ports"]["127.0.0.1:8080"] = [{"pid": 7, "command": ESCAPES}]
    case.unit("embed").update(
        {"active": ESCAPES, "sub": ESCAPES, "result": ESCAPES, "drop-ins": [f"/etc/llama-x.d/{ESCAPES}"]}
    )
    case.process()["argv"] = [ESCAPES, f"--{ESCAPES}", ESCAPES]
    case.process()["environment"] = {f"LLAMA_{ESCAPES}": ESCAPES}
    actions = compare(case.wanted, case.observed)
    assert len(actions) >= 7
    assert_clean(actions)
    assert any("\\x1b" in action.reason for action in actions), "it is shown as an escape, not hidden"
    unit = next(action for action in actions if action.subject == UNIT)
    lines = file_diff(case.wanted, case.observed, unit)
    assert lines
    assert all(clean(line) for line in lines)
    assert "sk-1" not in "\n".join(lines)
    assert clean(json.dumps(state_of(case.wanted, case.observed), ensure_ascii=False))


def test_no_secret_reaches_a_reason() -> None:
    case = Case()
    case.process()["argv"] += ["--api-key", "sk-secret", "--hf-token=hf-secret"]
    case.process()["environment"] = {"LLAMA_API_KEY": "sk-secret"}
    said = json.dumps([action.to_json() for action in compare(case.wanted, case.observed)])
    assert "--api-key" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--api-key sk-1 --x", "--api-key <hidden> --x"),
        ("--api-key=sk-1", "--api-key=<hidden>"),
        ("LLAMA_API_KEY=abc", "LLAMA_API_KEY=<hidden>"),
        ("--api-key-file /etc/k", "--api-key-file /etc/k"),
        ("HF_TOKEN=hf_1 x", "HF_TOKEN=<hidden> x"),
    ],
)
def test_secrets_are_blotted_out(text: str, shown: str) -> None:
    assert hide_secrets(text) == shown
    assert printable(text) == shown


@given(st.text(max_size=400) | st.just(ESCAPES))
def test_printable_is_one_clean_line_of_bounded_length(text: str) -> None:
    shown = printable(text)
    assert clean(shown)
    assert len(shown) <= 160
    assert printable("plain ümläut 日本 text") == "plain ümläut 日本 text"


def test_escaping_keeps_apart_what_differs() -> None:
    assert printable("\x1b[1m") == "\\x1b[1m"
    assert printable("\u202e") == "\\u202e"
    assert printable("\U000e0041") == "\\U000e0041"


@pytest.mark.parametrize("argv", [[], None, "x", [7], [["x"]], {}])
def test_arguments_that_are_none_are_said_to_be_unknown(argv: Any) -> None:
    (action,) = compare(WANTED, planted(("processes", "812", "argv"), argv))
    assert action.kind == "service"
    assert "the arguments of the running process are not known" in action.reason
