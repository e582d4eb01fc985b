"""Whatever stands in a spec, loading gives a spec or problems in human words: never a traceback."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamarig.spec.read_yaml import read_bytes
from llamarig.spec.validate import Validated, validate
from llamarig.spec.walk import places

ROOT = Path(__file__).resolve().parents[3]
REFERENCE: dict[str, Any] = yaml.safe_load(
    (ROOT / "inventory/dual-gpu-256k.yml").read_text().replace(": on\n", ": 'on'\n")
)
PYDANTIC = re.compile(r"Input should|Extra inputs|Field required|valid string|type=|pydantic|Value error")

values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 70_000),
        st.floats(-10, 10, allow_nan=False),
        st.text(max_size=10),
        st.sampled_from(["unlocked", "cuda", "cpu", "q4_0", "iq4_nl", "on", "0", "CUDA0", "/x.gguf", "::", "\x1b[2J"]),
    ),
    lambda below: st.one_of(
        st.lists(below, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(sorted(places())), st.text(max_size=6)), below, max_size=4),
    ),
    max_leaves=8,
)


def check(document: Any) -> Validated | None:
    tree, problems = read_bytes(json.dumps(document).encode(), Path("spec.yml"))
    if tree is None or problems or not isinstance(tree.value, dict):
        return None
    result = validate(tree, Path())
    for problem in result.errors + result.warnings + result.notes:
        assert problem.message.isprintable()
        assert problem.fix
        assert problem.line >= 1
        assert not PYDANTIC.search(problem.message + problem.fix)
    assert (result.spec is None) == bool(result.errors)
    return result


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    if isinstance(value, dict):
        for key, below in value.items():
            found += paths(below, (*at, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            found += paths(below, (*at, index))
    return found


PATHS = paths(REFERENCE)


def put(document: Any, at: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    here = copy
    for step in at[:-1]:
        here = here[step]
    here[at[-1]] = value
    return copy


@given(st.dictionaries(st.sampled_from(sorted(places())), values, max_size=8))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_document_is_judged(document: dict[str, Any]) -> None:
    check(document)


@given(st.sampled_from(PATHS), values)
@settings(max_examples=400, deadline=None)
def test_any_value_at_any_place_of_a_real_spec_is_judged(at: tuple[Any, ...], value: Any) -> None:
    check(put(REFERENCE, at, value))


@given(st.lists(st.tuples(st.sampled_from(PATHS), values), min_size=2, max_size=5))
@settings(max_examples=150, deadline=None)
def test_several_faults_at_once_are_judged(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    document = REFERENCE
    for at, value in changes:
        try:
            document = put(document, at, value)
        except (KeyError, IndexError, TypeError):
            continue
    check(document)


@given(st.sampled_from(PATHS), st.text(min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_an_unknown_key_is_an_error_wherever_it_stands(at: tuple[Any, ...], key: str) -> None:
    here: Any = REFERENCE
    for step in at:
        here = here[step]
    if not isinstance(here, dict) or at in (("gpus",), ("models",), ("services",)) or at[-1] == "environment":
        return
    name = f"zz {key}"
    result = check(put(REFERENCE, (*at, name), "x"))
    if result is not None:
        assert result.spec is None
        assert len(result.errors) == 1
        assert "is no key of" in result.errors[0].message


def test_the_reference_itself_has_no_error() -> None:
    result = check(REFERENCE)
    assert result is not None
    assert result.errors == []
