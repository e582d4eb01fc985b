"""Reads one YAML file into a :class:`~llamarig.spec.tree.Tree`, within bounds, and never with a traceback."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import yaml

from llamarig.spec.problem import SpecProblem
from llamarig.spec.tree import Tree
from llamarig.spec.yaml_build import Builder, StopReadingError
from llamarig.spec.yaml_words import syntax_words

MAX_BYTES = 1 << 20
"""A spec is some kilobytes; beyond a mebibyte it is a wrong file."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ODD_BREAK = re.compile("[\x85\u2028\u2029]")
"""What YAML 1.1 takes for a line break and no editor shows."""
_WRONG_FILE = "check that this is the right file"


OUTSIDE = ("this is a link that leads out of the project", "put the file itself here; nothing of the other was read")
"""Message and fix."""


def leads_outside(path: Path, *tops: Path) -> bool:
    """Whether a file is, or lies behind, a link that leaves every one of ``tops``.

    Messages quote what they read, and nothing of another file belongs into them.
    """
    try:
        reached = path.resolve()
        return not any(reached.is_relative_to(top.resolve()) for top in tops)
    except (OSError, RuntimeError):
        return True


def read_file(path: Path) -> tuple[Tree | None, list[SpecProblem]]:
    """The tree of a file, or None, and every problem on the way; raises nothing for any content."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            return None, [SpecProblem(path, 1, "this is not a regular file", _WRONG_FILE)]
        if info.st_size > MAX_BYTES:
            return None, [SpecProblem(path, 1, f"the file is larger than {MAX_BYTES:,} bytes", _WRONG_FILE)]
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return None, [SpecProblem(path, 1, f"the file cannot be read: {reason}", "check its path and permissions")]
    return read_bytes(content, path)


def read_bytes(content: bytes, path: Path) -> tuple[Tree | None, list[SpecProblem]]:
    """The same for content that is at hand; ``path`` is what problems name."""
    if len(content) > MAX_BYTES:
        return None, [SpecProblem(path, 1, f"the file is larger than {MAX_BYTES:,} bytes", _WRONG_FILE)]
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return None, [SpecProblem(path, line, "the file is not UTF-8 text", "save it as UTF-8")]
    return _parse(text, path)


def _parse(text: str, path: Path) -> tuple[Tree | None, list[SpecProblem]]:
    builder = Builder(path)
    odd = _ODD_BREAK.search(text)
    if odd is not None:
        line = text.count("\n", 0, odd.start()) + 1
        message = f"an invisible line break (U+{ord(odd[0]):04X}) stands here, which ends comments and values"
        builder.problem(line, message, "remove it; it often comes with text that is pasted from a web page")
        return None, builder.problems
    try:
        _feed(builder, text)
    except StopReadingError:
        return None, builder.problems
    except yaml.YAMLError as error:
        line, message, fix = syntax_words(error)
        if isinstance(error, yaml.reader.ReaderError):
            line = text.count("\n", 0, error.position) + 1
        builder.problem(line, message, fix)
        return None, builder.problems
    root = builder.root
    if root is None or root.value is None:
        builder.problem(1, "the file is empty", "write a host spec into it (`llamarig init` makes one), or remove it")
        return None, builder.problems
    return root, builder.problems


def _feed(builder: Builder, text: str) -> None:
    loader = _LOADER(text)
    try:
        event = loader.get_event()
        while event is not None and not isinstance(event, yaml.StreamEndEvent):
            builder.take(event)
            event = loader.get_event()
    finally:
        loader.dispose()
