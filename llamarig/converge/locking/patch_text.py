"""Reading a unified diff strictly: which files it changes, and what of it is refused.

A patch is applied to a tree that is then built and run, so everything that it touches is shown, and what could reach
beyond the sources (a path outside the tree, a link, a submodule) or change how the build runs is found here. A line
that belongs to no head and no hunk is refused: `patch` finds indented, normal and ed-style diffs in such lines.
plugins/module_utils/rig_patch.py holds hosts to the same form, and to the files that are named here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from llamarig.errors import RigError

MAX_BYTES = 4 << 20
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@.*")
_DIFF = re.compile(r"diff --git a/(?P<old>[^\s\"]+) b/(?P<new>[^\s\"]+)")
_MODE = re.compile(
    r"(?:(?:new file|new|old|deleted file) mode (?P<mode>[0-7]{6})"
    r"|index [0-9a-f]+\.\.[0-9a-f]+(?: (?P<kept>[0-7]{6}))?)"
)
_NAME = re.compile(r"(?:---|\+\+\+) (?P<path>[^\s\"]+)(?:\t[-+0-9:. ]*)?")
_NO_NEWLINE = "\\ No newline at end of file"
_BUILD_NAMES = {"CMakeLists.txt", "CMakePresets.json", "Makefile", "GNUmakefile", "configure", "build.ninja"}
_BUILD_SUFFIXES = {".cmake", ".sh", ".bash", ".py", ".mk", ".bat", ".ps1"}
_BUILD_FOLDERS = {"cmake", "scripts", ".github", ".devops", "ci"}
_REGULAR = {"100644", "100755"}


@dataclass(slots=True)
class FileChange:
    """One file of a patch: lines that it gains and loses."""

    path: str
    added: int = 0
    removed: int = 0
    modes: set[str] = field(default_factory=set)
    binary: bool = False


@dataclass(frozen=True, slots=True)
class PatchSummary:
    """What a patch does."""

    files: tuple[FileChange, ...]

    def diffstat(self) -> str:
        """A line a file, and a sum, in the form that git users know."""
        width = max((len(change.path) for change in self.files), default=0)
        lines = [f" {change.path:<{width}} | +{change.added} -{change.removed}" for change in self.files]
        added, removed = (sum(getattr(each, what) for each in self.files) for what in ("added", "removed"))
        return "\n".join([*lines, f" {len(self.files)} files, {added} lines added, {removed} removed"])

    def refusals(self) -> list[str]:
        """What makes the patch unusable, whoever acknowledges it."""
        found = []
        for change in self.files:
            parts = change.path.split("/")
            if (
                change.path.startswith("/")
                or ".." in parts
                or "" in parts
                or ".git" in (part.lower() for part in parts)
            ):
                found.append(f"{change.path} lies outside the tree")
            if "\\" in change.path or not change.path.isprintable():
                found.append(f"{change.path!r} is no plain path")
            found += [f"{change.path} is a link or submodule (mode {mode})" for mode in change.modes - _REGULAR]
            if change.binary:
                found.append(f"{change.path} is changed as binary data, which nobody can review")
        return found

    def build_changes(self) -> list[str]:
        """Files that change how the build runs."""
        return [change.path for change in self.files if _steers_build(change.path) or "100755" in change.modes]


def _steers_build(path: str) -> bool:
    pure = PurePosixPath(path)
    name = pure.name.removesuffix(".in")
    return (
        name in _BUILD_NAMES
        or PurePosixPath(name).suffix in _BUILD_SUFFIXES
        or (bool(pure.parts[:-1]) and not _BUILD_FOLDERS.isdisjoint(pure.parts[:-1]))
    )


def read_patch(data: bytes, where: str) -> PatchSummary:
    """The files of a patch. Raises :class:`RigError` when it is not a plain unified diff from beginning to end."""
    if len(data) > MAX_BYTES:
        raise RigError("the patch is bigger than any that can be reviewed", where, f"{len(data):,} bytes")
    reader = _Reader(data.decode("utf-8", "surrogateescape").split("\n"), where)
    return PatchSummary(tuple(reader.read()))


class _Reader:
    """One pass over the lines; a hunk is as long as its head says, so that no content is taken for a head."""

    def __init__(self, lines: list[str], where: str) -> None:
        self._lines = lines
        self._where = where
        self._at = 0
        self._in_head = False
        """Whether git's own lines (modes, index) may come."""

    def read(self) -> list[FileChange]:
        changes: list[FileChange] = []
        current: FileChange | None = None
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if line.startswith("diff --git "):
                current = self._head(line)
                self._in_head = True
                changes.append(current)
            elif current is not None and current.binary:
                continue  # Refused as a whole, whatever it holds.
            elif line.startswith("--- ") and self._peek().startswith("+++ "):
                current = self._names(line, current, changes)
                self._in_head = False
            elif line.startswith("@@ ") and not self._in_head:
                self._hunk(line, current)
            elif line:
                self._extended(line, current)
        if not changes:
            raise RigError("the file is no patch", self._where, "it has no `diff` or `---` line")
        return changes

    def _peek(self) -> str:
        return self._lines[self._at] if self._at < len(self._lines) else ""

    def _head(self, line: str) -> FileChange:
        found = _DIFF.fullmatch(line)
        if found is None or found["old"] != found["new"]:
            raise RigError("the patch renames or names files in a way that cannot be reviewed", self._where, line[:200])
        return FileChange(found["new"])

    def _names(self, line: str, current: FileChange | None, changes: list[FileChange]) -> FileChange:
        """The ``---`` and ``+++`` pair; git's own head, where there is one, must name the same file."""
        found = [_NAME.fullmatch(each) for each in (line, self._peek())]
        names = [each["path"] for each in found if each is not None]
        if len(names) != len(found):
            raise self._stray(line)
        self._at += 1
        paths = {name.partition("/")[2] for name in names if name != "/dev/null"}
        if any(name != "/dev/null" and not name.startswith(("a/", "b/")) for name in names):
            paths = {name for name in names if name != "/dev/null"}
        if len(paths) != 1:
            raise RigError("the patch names two files as one", self._where, " and ".join(sorted(paths))[:200])
        (path,) = paths
        if current is None or current.added or current.removed:
            current = FileChange(path)
            changes.append(current)
        elif current.path != path:
            raise RigError("the patch names two files as one", self._where, f"{current.path} and {path}"[:200])
        return current

    def _extended(self, line: str, current: FileChange | None) -> None:
        """A line of git's own between ``diff --git`` and the names; nothing else stands outside of hunks."""
        if current is None or not self._in_head:
            raise self._stray(line)
        if line.startswith(("rename ", "copy ", "similarity ")):
            raise RigError("the patch renames files", self._where, line[:200], "make it without renames")
        if line == "GIT binary patch" or line.startswith("Binary files "):
            current.binary = True
        elif found := _MODE.fullmatch(line):
            current.modes |= {mode for mode in (found["mode"], found["kept"]) if mode}
        else:
            raise self._stray(line)

    def _stray(self, line: str) -> RigError:
        return RigError(
            "the patch holds a line that belongs to no change",
            self._where,
            f"line {self._at}: {line[:100]!r}; text around a diff can hide another one",
            "make it with `git diff`, which writes the changes alone",
        )

    def _hunk(self, line: str, current: FileChange | None) -> None:
        found = _HUNK.fullmatch(line)
        if found is None or current is None:
            raise RigError("the patch is damaged", self._where, f"line {self._at}: {line[:100]}")
        old, new = (int(found[side]) if found[side] is not None else 1 for side in (1, 2))
        while old > 0 or new > 0:
            sign = self._peek()[:1]
            self._at += 1
            if sign == "-":
                old, current.removed = old - 1, current.removed + 1
            elif sign == "+":
                new, current.added = new - 1, current.added + 1
            elif sign in (" ", ""):
                old, new = old - 1, new - 1
            elif self._lines[self._at - 1] != _NO_NEWLINE:
                raise RigError("the patch is damaged", self._where, f"line {self._at} is no line of its hunk")
            if self._at > len(self._lines) or old < 0 or new < 0:
                raise RigError(
                    "the patch is damaged", self._where, f"line {self._at}: a hunk is not as long as it says"
                )
        if self._peek() == _NO_NEWLINE:
            self._at += 1
