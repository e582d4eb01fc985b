"""pydantic's errors in the words of somebody who writes a spec, each with its line and a fix."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from llamarig.spec.base import SpecValueError
from llamarig.spec.keys import unknown_key
from llamarig.spec.problem import SpecProblem, shown
from llamarig.spec.teach import teach
from llamarig.spec.tree import Loc, Tree, dotted, find
from llamarig.spec.words import PATTERNS, SAMPLES, example

Error = Mapping[str, Any]
"""One entry of ``ValidationError.errors()``."""

_TAUGHT = 100
"""Unknown keys of one document for which near names are looked up."""

_KIND_ERRORS = {
    "string_type",
    "int_type",
    "int_from_float",
    "float_type",
    "bool_type",
    "dict_type",
    "list_type",
    "model_type",
    "literal_error",
}
"""Errors that say: another kind of value belongs here."""
_OTHER_KINDS = _KIND_ERRORS - {"literal_error"}


def humanise(tree: Tree, errors: list[Error]) -> list[SpecProblem]:
    """Every error once, in the order of the document's sections."""
    groups: dict[Loc, list[Error]] = {}
    for error in errors:
        here, taken = find(tree, error["loc"])
        loc = (*taken, str(error["loc"][-1])) if error["type"] == "missing" else taken
        groups.setdefault(loc, []).append(error)
    above = {loc[:length] for loc in groups for length in range(len(loc))}
    problems = []
    unknown = 0
    for loc, group in groups.items():
        if loc in above and all(error["type"] in _KIND_ERRORS for error in group):
            continue
        here, _ = find(tree, loc)
        unknown += group[0]["type"] == "extra_forbidden"
        if group[0]["type"] == "extra_forbidden" and unknown > _TAUGHT:
            # Another kind of file, most likely: looking for near names would only take long.
            message, fix = f"`{shown(str(loc[-1]))}` is no key here", "check that this is the right file"
        else:
            message, fix = _words(here, loc, group)
        problems.append(SpecProblem(here.path, here.line, message, fix))
    return problems


def _words(here: Tree, loc: Loc, group: list[Error]) -> tuple[str, str]:
    kind = group[0]["type"]
    if kind == "missing":
        name = dotted(loc)
        return f"`{name}` is missing", f"add `{example(str(loc[-1]), name)}`"
    if kind == "extra_forbidden":
        return unknown_key(loc)
    return teach(here, loc) or _value(here, loc, group)


def _value(here: Tree, loc: Loc, group: list[Error]) -> tuple[str, str]:
    name = dotted(loc)
    first = group[0]
    if first["loc"][-1] == "[key]":
        what, sample = _expected(first)
        return f"`{shown(str(loc[-1]))}` is no legal name in {dotted(loc[:-1])}", f"use {what}, such as {sample}"
    if here.value is None:
        return f"`{name}` has no value", "give it one, or remove the key"
    if len(group) > 1:
        return _one_of(here, name, group)
    return _single(here, name, first)


def _single(here: Tree, name: str, error: Error) -> tuple[str, str]:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "value_error":
        cause = context.get("error")
        fix = cause.fix if isinstance(cause, SpecValueError) else "correct the value"
        return f"`{name}`: {cause}", fix
    if kind == "model_type" and name.rpartition(".")[2] in _MAPPINGS:
        sample = _MAPPINGS[name.rpartition(".")[2]]
        return f"`{name}` must be a mapping of keys, not {_kind(here)}", f"for example `{sample}`"
    if kind in ("dict_type", "model_type", "list_type"):
        wanted = "a list, with `- ` before each item or inside [ ]" if kind == "list_type" else "a mapping of keys"
        return f"`{name}` must be {wanted}, not {_kind(here)}", f"write what belongs below `{name}` as {wanted}"
    if isinstance(here.value, dict | list):
        return f"`{name}` must be a single value, not {_kind(here)}", "write the value behind the colon"
    return _scalar(here, name, error)


def _scalar(here: Tree, name: str, error: Error) -> tuple[str, str]:
    kind, context = error["type"], error.get("ctx", {})
    text = shown(here.text)
    if kind == "too_short" and isinstance(here.value, str):
        kind = "string_too_short"
    if kind == "string_type":
        return f"`{name}` must be text, but {text} reads as {_kind(here)}", f'write it in quotes: "{text}"'
    if kind == "literal_error":
        return _literal(here, name, _choices(error))
    if kind in _LIMITS:
        return f"`{name}` is {text}, {_LIMITS[kind](context)}", "choose a value within the limit"
    if kind == "string_pattern_mismatch":
        what, sample = _expected(error)
        return f"`{name}` is {text!r}, but must be {what}", f"for example {SAMPLES.get(name, sample)}"
    what, fix = _EXPECTED.get(kind, ("a value of another form", "compare it with the spec reference"))
    if kind == "bool_type" and text.lower() in ("yes", "on", "y", "no", "off", "n"):
        fix = f"write {'true' if text.lower() in ('yes', 'on', 'y') else 'false'}"
    return f"`{name}` must be {what}, not {text!r}", fix


def _literal(here: Tree, name: str, choices: list[str]) -> tuple[str, str]:
    near = difflib.get_close_matches(here.text, choices, n=1)
    known = ", ".join(choices)
    if not isinstance(here.value, str) and here.text in choices:
        return f"`{name}` must be text, but {here.text} reads as {_kind(here)}", f'write it in quotes: "{here.text}"'
    return (
        f"`{name}` is {shown(here.text)!r}, but must be {'one of ' if len(choices) > 1 else ''}{known}",
        f"did you mean {near[0]}?" if near else f"write {'one of them' if len(choices) > 1 else known}",
    )


def _one_of(here: Tree, name: str, group: list[Error]) -> tuple[str, str]:
    """Several kinds of value are legal, and this is none of them."""
    own = [error for error in group if error["type"] == "value_error"]
    if own:
        return _single(here, name, own[0])
    beyond = [error for error in group if error["type"] in _LIMITS]
    if beyond and isinstance(here.value, int | float) and all(e in beyond or e["type"] in _OTHER_KINDS for e in group):
        # Of a legal kind, so that nothing is said of the others.
        return _single(here, name, beyond[0])
    wanted: list[str] = []
    for error in group:
        if error["type"] == "literal_error":
            wanted.extend(f"`{choice}`" for choice in _choices(error))
        elif error["type"] == "string_pattern_mismatch":
            wanted.append(_expected(error)[0])
        elif error["type"] in _LIMITS:
            words = _LIMITS[error["type"]](error.get("ctx", {}))
            number, many = f"a number that is {words[len(_BE) :]}", f"one with {words[len(_HAVE) :]}"
            wanted.append(number if words.startswith(_BE) else many)
        elif error["type"] in ("dict_type", "model_type"):
            wanted.append("a mapping of keys")
        elif error["type"] in _EXPECTED:
            wanted.append(_EXPECTED[error["type"]][0])
    known = " or ".join(dict.fromkeys(wanted))
    value = shown(here.text) if not isinstance(here.value, dict | list) else _kind(here)
    if "`unlocked`" in wanted:
        return f"`{name}` is {value!r}, but must be {known}", "write `unlocked`, and run `llamarig lock`, which pins it"
    return f"`{name}` is {value!r}, but must be {known}", "write one of these"


_MAPPINGS = {"kv-cache": "kv-cache: {k: q8_0, v: q8_0}"}
"""Keys that people give a single value where a mapping belongs, with an example."""

_EXPECTED = {
    "string_type": ("text", "write it in quotes"),
    "int_type": ("a whole number", "write digits only, without quotes, unit or separator"),
    "int_from_float": ("a whole number", "write digits only, without a fraction"),
    "float_type": ("a number", "write digits only, without quotes or unit"),
    "bool_type": ("true or false", "write true or false, without quotes"),
}

_BE, _HAVE = "but must be ", "but must have "
_LIMITS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than_equal": lambda context: f"but must be at least {context['ge']}",
    "greater_than": lambda context: f"but must be more than {context['gt']}",
    "less_than_equal": lambda context: f"but must be at most {context['le']}",
    "less_than": lambda context: f"but must be less than {context['lt']}",
    "string_too_short": lambda context: f"but must have at least {context['min_length']} characters",
    "string_too_long": lambda context: f"but must have at most {context['max_length']} characters",
    "too_short": lambda context: f"but must have at least {context['min_length']} entry",
    "too_long": lambda context: f"but must have at most {context['max_length']} entries",
    "finite_number": lambda _: "but must be finite",
}


def _expected(error: Error) -> tuple[str, str]:
    return PATTERNS.get(error.get("ctx", {}).get("pattern", ""), ("of another form", "see the spec reference"))


def _choices(error: Error) -> list[str]:
    """The values of a literal, from the text in which pydantic lists them."""
    listed = str(error.get("ctx", {}).get("expected", "")).replace(" or ", ", ")
    return [choice.strip().strip("'") for choice in listed.split(", ")]


def _kind(here: Tree) -> str:
    value = here.value
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "text" if isinstance(value, str) else "nothing"
