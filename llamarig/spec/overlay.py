"""An overlay: values that stand in for those of one host's spec, each with its reason.

It is for a machine that cannot have what the spec names (a test host, a staging box): the spec itself stays as it is,
and the file says, key by key, what is put in its place and why. A value replaces the whole value of its key; ``null``
takes the key away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llamarig.errors import RigErrors
from llamarig.spec.problem import SpecProblem, shown
from llamarig.spec.read_yaml import read_file
from llamarig.spec.tree import Loc, Tree, dotted

_KEYS = ("schema-version", "host", "replace", "lacking")
_ENTRY = {"replace": ("key", "value", "reason", "unproven"), "lacking": ("what", "instead", "unproven")}
_PATH = re.compile(r"[a-z0-9][a-z0-9-]*(\.[a-zA-Z0-9_][a-zA-Z0-9_-]*)*")
_FORM = "write `replace:`, a list of `{key, value, reason, unproven}`"


@dataclass(frozen=True, slots=True)
class Replaced:
    """One key of the spec and what stands in for its value."""

    key: Loc
    value: Tree
    """Keeps its place in the overlay's file, so that what is wrong with it is told there."""
    line: int
    reason: str
    unproven: str
    """What a run with the stand-in does not show; may be empty."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """Something that no key names and that is not there either: a card, say."""

    what: str
    instead: str
    unproven: str


@dataclass(frozen=True, slots=True)
class Overlay:
    """The file as it was read."""

    path: Path
    host: str
    replaced: tuple[Replaced, ...]
    lacking: tuple[Lacking, ...] = ()

    def laid_on(self, spec: Tree) -> tuple[Tree, list[SpecProblem]]:
        """The spec with every stand-in in place, and what does not fit it."""
        problems = []
        for each in self.replaced:
            spec, wrong = _replaced(spec, each.key, each.value)
            if wrong:
                message = f"the overlay replaces `{dotted(each.key)}`, and {wrong}"
                problems.append(SpecProblem(self.path, each.line, message, "name a key that the spec has"))
        return spec, problems


def _replaced(tree: Tree, key: Loc, value: Tree) -> tuple[Tree, str]:
    """A copy of the tree with one value exchanged; why that cannot be, or an empty text."""
    step, rest = key[0], key[1:]
    if not isinstance(tree.value, dict) or not isinstance(step, str):
        return tree, "what is above it is no mapping"
    below = tree.value.get(step)
    if below is None and (rest or value.value is None):
        return tree, f"the spec has no `{step}` there"
    children = dict(tree.value)
    if below is not None and rest:
        children[step], wrong = _replaced(below, rest, value)
        if wrong:
            return tree, wrong
    elif value.value is None:
        del children[step]
    else:
        children[step] = value
    return Tree(children, tree.path, tree.line), ""


def looks_like_one(tree: Tree) -> bool:
    """Whether a file that was read as a spec is an overlay: it replaces, and all its keys are those of one."""
    return isinstance(tree.value, dict) and "replace" in tree.value and all(key in _KEYS for key in tree.value)


def read_overlay(path: Path) -> Overlay:
    """The overlay in a file; raises :class:`RigErrors` with everything that is wrong with its form."""
    tree, problems = read_file(path)
    overlay = Overlay(path, "", ())
    if tree is not None:
        found = list(_problems(tree))
        problems += found
        if not found:
            overlay = _overlay(tree)
    if problems:
        raise RigErrors([problem.to_error() for problem in problems])
    return overlay


def _overlay(tree: Tree) -> Overlay:
    replaced = tuple(
        Replaced(
            key=tuple(_text(entry, "key").split(".")),
            value=_value(entry),
            line=entry.line,
            reason=_text(entry, "reason"),
            unproven=_text(entry, "unproven"),
        )
        for entry in _entries(tree, "replace")
    )
    lacking = tuple(
        Lacking(_text(entry, "what"), _text(entry, "instead"), _text(entry, "unproven"))
        for entry in _entries(tree, "lacking")
    )
    return Overlay(tree.path, _text(tree, "host"), replaced, lacking)


def _text(tree: Tree, key: str) -> str:
    child = tree.child(key)
    return child.value.strip() if child is not None and isinstance(child.value, str) else ""


def _value(entry: Tree) -> Tree:
    return entry.child("value") or Tree(None, entry.path, entry.line)


def _entries(tree: Tree, section: str) -> list[Tree]:
    child = tree.child(section)
    return child.value if child is not None and isinstance(child.value, list) else []


def _problems(tree: Tree) -> Iterator[SpecProblem]:
    """Everything that is wrong with the form of the file."""
    if not isinstance(tree.value, dict):
        yield SpecProblem(tree.path, tree.line, "an overlay is a mapping", _FORM)
        return
    for key, value in tree.value.items():
        if key not in _KEYS:
            fix = f"{_FORM}: spec keys stand in its entries"
            yield SpecProblem(tree.path, value.line, f"`{shown(key)}` is no key of an overlay", fix)
    version = tree.child("schema-version")
    if version is None or version.value != 1:
        line = version.line if version is not None else tree.line
        yield SpecProblem(tree.path, line, "`schema-version` must be 1", "begin with `schema-version: 1`")
    if not _text(tree, "host"):
        yield SpecProblem(tree.path, tree.line, "an overlay names the `host` whose spec it is for", "add `host: NAME`")
    if not _entries(tree, "replace"):
        yield SpecProblem(tree.path, tree.line, "the overlay replaces nothing", _FORM)
    for section, keys in _ENTRY.items():
        for entry in _entries(tree, section):
            yield from _entry_problems(entry, keys)
    yield from _overlaps(tree)


def _entry_problems(entry: Tree, keys: tuple[str, ...]) -> Iterator[SpecProblem]:
    if not isinstance(entry.value, dict):
        yield SpecProblem(entry.path, entry.line, "this is no mapping", f"write {', '.join(keys)}")
        return
    for key, value in entry.value.items():
        if key not in keys:
            yield SpecProblem(entry.path, value.line, f"`{shown(key)}` is no key here", f"keys are {', '.join(keys)}")
        elif key != "value" and not isinstance(value.value, str):
            yield SpecProblem(entry.path, value.line, f"`{key}` is no text", "write it in quotes")
    for key in keys:
        if key == "value" and "value" not in entry.value:
            fix = "add it; `value: null` takes the key away"
            yield SpecProblem(entry.path, entry.line, "`value` is missing: nothing says what stands in", fix)
        elif key in ("key", "reason", "what", "instead") and not _text(entry, key):
            yield SpecProblem(entry.path, entry.line, f"`{key}` is missing", f"every entry has its {key}")
    name = _text(entry, "key")
    if name and not _PATH.fullmatch(name):
        fix = "write keys with dots between them, such as `models.qwen`; a list is replaced as a whole"
        yield SpecProblem(entry.path, entry.line, f"`{shown(name)}` is no path of a key", fix)
    elif name.partition(".")[0] in ("host", "schema-version"):
        yield SpecProblem(entry.path, entry.line, f"`{name}` cannot be replaced", "it names which spec this is")


def _overlaps(tree: Tree) -> Iterator[SpecProblem]:
    """Two entries of which one lies within the other: the order would decide."""
    seen: list[tuple[str, ...]] = []
    for entry in _entries(tree, "replace"):
        key = tuple(_text(entry, "key").split("."))
        for other in seen:
            if key[: len(other)] == other or other[: len(key)] == key:
                message = f"`{'.'.join(key)}` and `{'.'.join(other)}` replace the same value"
                yield SpecProblem(entry.path, entry.line, message, "replace each value once")
        seen.append(key)
