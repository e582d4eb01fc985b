"""The strict form of a patch on the host: git's heads and whole hunks, and not one line beside them.

`patch` also applies indented, normal and ed-style diffs that it finds between other text, which no reviewer saw;
so such text is refused here as it is on the controller (llamarig/converge/locking/patch_text.py).
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from ansible.module_utils.rig_unpack import RefusedError

_HEAD = re.compile(r"diff --git a/(?P<old>[^\s\"]+) b/(?P<new>[^\s\"]+)")
_NAME = re.compile(r"(?:---|\+\+\+) (?P<path>[^\s\"]+)(?:\t[-+0-9:. ]*)?")
_MODE = re.compile(r"(?:new file mode|new mode|old mode|deleted file mode) (?P<mode>[0-7]+)")
_INDEX = re.compile(r"index [0-9a-f]+\.\.[0-9a-f]+(?: (?P<mode>[0-7]+))?")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@.*")
_NO_NEWLINE = "\\ No newline at end of file"


def patched_paths(text: str) -> set[str]:
    """The paths that a patch touches, without their ``a/`` and ``b/``.

    Raises :class:`RefusedError` for a path outside the tree, a rename, a link, a submodule, a special mode, binary
    content, or a line outside of heads and hunks.
    """
    paths = _Form(text.split("\n")).read()
    if not paths:
        raise RefusedError("it names no file")
    return paths


class _Form:
    """One pass over the lines."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self._path: str | None = None
        self._in_head = False
        self._paths: set[str] = set()

    def read(self) -> set[str]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if line.startswith("diff --git "):
                self._head(line)
            elif line.startswith("--- ") and self._next().startswith("+++ "):
                self._names(line)
            elif line.startswith("@@ ") and self._path is not None and not self._in_head:
                self._hunk(line)
            elif line:
                self._extended(line)
        return self._paths

    def _next(self) -> str:
        return self._lines[self._at] if self._at < len(self._lines) else ""

    def _take(self, path: str) -> None:
        self._path = _checked(path)
        self._paths.add(path)

    def _head(self, line: str) -> None:
        found = _HEAD.fullmatch(line)
        if found is None:
            raise RefusedError(f"line {self._at} does not name one file as git writes it: {line[:100]!r}")
        for path in (found["old"], found["new"]):
            _checked(path)
        if found["old"] != found["new"]:
            raise RefusedError(f"it renames {found['old'][:200]!r}")
        self._take(found["new"])
        self._in_head = True

    def _names(self, line: str) -> None:
        found = [_NAME.fullmatch(each) for each in (line, self._next())]
        names = [each["path"] for each in found if each is not None]
        if len(names) != len(found):
            raise self._stray(line)
        self._at += 1
        paths = {_stripped(name) for name in names if name != "/dev/null"}
        if len(paths) != 1 or (self._in_head and paths != {self._path}):
            raise RefusedError(f"line {self._at} names two files as one")
        self._take(paths.pop())
        self._in_head = False

    def _extended(self, line: str) -> None:
        if line == "GIT binary patch" or line.startswith("Binary files "):
            raise RefusedError("it holds binary content, which cannot be reviewed")
        found = (_MODE.fullmatch(line) or _INDEX.fullmatch(line)) if self._in_head else None
        if found is None:
            raise self._stray(line)
        if found["mode"] not in (None, "100644", "100755"):
            raise RefusedError(f"it makes a link, submodule or special file (mode {found['mode']})")

    def _stray(self, line: str) -> RefusedError:
        return RefusedError(f"line {self._at} belongs to no change: {line[:100]!r}")

    def _hunk(self, line: str) -> None:
        found = _HUNK.fullmatch(line)
        if found is None:
            raise self._stray(line)
        old, new = (int(found[side]) if found[side] is not None else 1 for side in (1, 2))
        while old > 0 or new > 0:
            if self._at >= len(self._lines):
                raise RefusedError("its last hunk is cut off")
            content = self._next()
            self._at += 1
            sign = content[:1]
            if sign not in ("", " ", "-", "+") and content != _NO_NEWLINE:
                raise self._stray(content)
            old -= sign in ("", " ", "-")
            new -= sign in ("", " ", "+")
            if old < 0 or new < 0:
                raise RefusedError(f"line {self._at}: a hunk is not as long as it says")
        if self._next() == _NO_NEWLINE:
            self._at += 1


def _stripped(path: str) -> str:
    first, _, rest = path.partition("/")
    if first not in ("a", "b") or not rest:
        raise RefusedError(f"path {path[:200]!r} does not begin with a/ or b/ as git writes it")
    return rest


def _checked(path: str) -> str:
    parts = PurePosixPath(path).parts
    if path.startswith(("/", '"')) or ".." in parts or ".git" in (part.lower() for part in parts):
        raise RefusedError(f"path {path[:200]!r} lies outside the tree")
    return path
