"""Builds a tree from the events of a YAML parser, and refuses what a spec has no use for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import yaml

from llamarig.spec.problem import SpecProblem, shown
from llamarig.spec.scalar import resolve
from llamarig.spec.tree import Tree

MAX_NODES = 50_000
"""Values in one document, each use of an alias counted in full."""
MAX_DEPTH = 32


class StopReadingError(Exception):
    """The document cannot be read further; the problem is noted already."""


@dataclass(slots=True)
class _Open:
    """A mapping or a list that is not closed yet."""

    tree: Tree
    anchor: str | None
    nodes_before: int
    entries: dict[str, Tree] | None
    items: list[Tree]
    key: str | None = None
    """The key whose value comes next."""
    key_line: int = 0
    refused: bool = False
    """Whether that key is refused and its value dropped."""

    def wants_key(self) -> bool:
        return self.entries is not None and self.key is None


@dataclass
class Builder:
    """Takes events in order; afterwards ``root`` is the document and ``problems`` what is wrong with it.

    The first value of a repeated key wins, so that the rest can still be checked.
    """

    path: Path
    problems: list[SpecProblem] = field(default_factory=list)
    root: Tree | None = None
    _open: list[_Open] = field(default_factory=list)
    _anchors: dict[str, tuple[Tree, int]] = field(default_factory=dict)
    _nodes: int = 0
    _documents: int = 0

    def problem(self, line: int, message: str, fix: str = "") -> None:
        """Note a problem and go on."""
        self.problems.append(SpecProblem(self.path, line, message, fix))

    def take(self, event: yaml.Event) -> None:
        """Take the next event; raises :class:`StopReadingError` where going on is senseless."""
        line = event.start_mark.line + 1 if event.start_mark is not None else 1
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event, line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._stop(line, "a second YAML document begins here", "keep one document a file")

    def _stop(self, line: int, message: str, fix: str) -> StopReadingError:
        self.problem(line, message, fix)
        return StopReadingError()

    def _count(self, line: int, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise self._stop(
                line,
                f"the file holds more than {MAX_NODES:,} values (each use of an alias counted in full)",
                "check that this is the right file",
            )

    def _tag(self, tag: str | None, line: int) -> None:
        if tag is not None and tag != "!":
            self.problem(
                line,
                f"the YAML tag {shown(tag)} means nothing here",
                "write the plain value; a secret is named by its file, never written into a spec",
            )

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        # Most of a document are scalars without a tag: this path is kept short.
        if event.tag is not None:
            self._tag(event.tag, line)
        parent = self._open[-1] if self._open else None
        if parent is not None and parent.entries is not None and parent.key is None:
            self._key(parent, event.value, line)
            return
        self._count(line, 1)
        text, plain = event.value, not event.style
        value = resolve(text) if plain and event.tag is None else text
        self._put(Tree(value, self.path, line, text, plain), event.anchor, 1)

    def _key(self, parent: _Open, key: str, line: int) -> None:
        parent.key, parent.key_line, parent.refused = key, line, False
        if key == "<<":
            parent.refused = True
            self.problem(
                line,
                "merge keys (`<<`) are not part of YAML 1.2",
                "put what hosts share under `defaults` in a fleet.yml beside or above them",
            )
        elif parent.entries is not None and key in parent.entries:
            parent.refused = True
            self.problem(
                line,
                f"`{shown(key)}` is given twice, first on line {parent.entries[key].line}",
                "keep one of the two",
            )

    def _start(self, event: yaml.CollectionStartEvent, line: int) -> None:
        self._tag(event.tag, line)
        self._count(line, 1)
        if len(self._open) >= MAX_DEPTH:
            raise self._stop(line, f"values are nested more than {MAX_DEPTH} deep", "check brackets and indentation")
        if self._open and self._open[-1].wants_key():
            raise self._stop(line, "a list or mapping stands where a key belongs", "write `key: value`")
        entries: dict[str, Tree] | None = {} if isinstance(event, yaml.MappingStartEvent) else None
        items: list[Tree] = []
        tree = Tree(items if entries is None else entries, self.path, line)
        self._open.append(_Open(tree, event.anchor, self._nodes - 1, entries, items))

    def _end(self) -> None:
        done = self._open.pop()
        self._put(done.tree, done.anchor, self._nodes - done.nodes_before)

    def _alias(self, event: yaml.AliasEvent, line: int) -> None:
        name = event.anchor or ""
        if name not in self._anchors:
            raise self._stop(line, f"`*{shown(name)}` names no anchor above it", "write the value itself")
        if self._open and self._open[-1].wants_key():
            raise self._stop(line, "an alias stands where a key belongs", "write the key itself")
        origin, nodes = self._anchors[name]
        self._count(line, nodes)
        self._put(Tree(origin.value, self.path, line, origin.text, origin.plain), None, nodes)

    def _put(self, tree: Tree, anchor: str | None, nodes: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (tree, nodes)
        if not self._open:
            self.root = tree
            return
        parent = self._open[-1]
        if parent.entries is None:
            parent.items.append(tree)
            return
        if parent.key is not None and not parent.refused:
            tree.line = parent.key_line
            parent.entries[parent.key] = tree
        parent.key = None
