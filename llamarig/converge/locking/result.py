"""What locking found: changes of spec files, new files beside them, notes and problems. Nothing is written here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from llamarig.converge.locking.document import Value, dotted, unified, write_atomically
from llamarig.errors import RigError
from llamarig.spec.host import HostSpec
from llamarig.spec.tree import Loc


@dataclass(frozen=True)
class Change:
    """One value that gets known."""

    path: Path
    line: int
    key: str
    old: str
    new: Value

    def to_json(self, root: Path) -> dict[str, object]:
        """The documented form."""
        return {"file": below(self.path, root), "line": self.line, "key": self.key, "old": self.old, "new": self.new}


@dataclass
class HostWork:
    """Work on one host: values found so far, by location in its spec."""

    host: str
    path: Path
    spec: HostSpec
    values: dict[Loc, Value] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What moved upstream, what a patch changes."""
    problems: list[RigError] = field(default_factory=list)

    def attempt(self, loc: Loc, work: Callable[[], None]) -> None:
        """Do one piece of work; its problem names ``loc`` and does not keep the others from being done."""
        try:
            work()
        except RigError as error:
            place = f"{self.path}: {dotted(loc)}" if loc else str(self.path)
            self.problems.append(replace(error, where=f"{place}: {error.where}" if error.where else place))


@dataclass
class Locked:
    """What was found for all hosts together."""

    hosts: list[HostWork] = field(default_factory=list)
    files: dict[Path, tuple[str, str]] = field(default_factory=dict)
    """Spec files, as they are and as they shall be."""
    new_files: dict[Path, bytes] = field(default_factory=dict)
    """Header sidecars and patches."""

    @property
    def pending(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.new_files) or any(before != after for before, after in self.files.values())

    @property
    def problems(self) -> list[RigError]:
        """The problems of all hosts, each once."""
        return list({str(problem): problem for work in self.hosts for problem in work.problems}.values())

    def diff(self, root: Path) -> str:
        """The change of all spec files as a unified diff."""
        changed = {path: texts for path, texts in self.files.items() if texts[0] != texts[1]}
        return "".join(unified(below(path, root), before, after) for path, (before, after) in changed.items())

    def write(self) -> None:
        """Write everything, each file in one step; what specs will refer to comes first."""
        for path, content in self.new_files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
        for path, (before, after) in self.files.items():
            if before != after:
                write_atomically(path, after.encode())


def below(path: Path, root: Path) -> str:
    """A path as seen from the project."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def digest_of(data: bytes) -> str:
    """sha256 in hex."""
    return hashlib.sha256(data).hexdigest()


def digest(path: Path) -> str:
    """sha256 of a small file."""
    return digest_of(path.read_bytes())
