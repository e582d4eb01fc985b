"""The places on a host where llamarig alone keeps things, and what lies there.

Links are never followed, mount points never crossed, and what has another form than ours is told and left.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_files import kind_of
from ansible.module_utils.rig_gc_dirs import DIRECTORY, NotOursError, Weight, open_directory, weigh

RELEASE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,127}")
_BEGUN = re.compile(r"\.[0-9A-Za-z][0-9A-Za-z._-]{0,127}\.tmp")
"""What is put together, or taken apart, beside the things that are whole."""
_CONTENT = re.compile(r"[0-9a-f]{64}")
_PART = re.compile(r"[0-9a-f]{64}\.part(\.etag)?|[0-9A-Za-z][0-9A-Za-z._-]{0,127}\.tar")
_JOB = re.compile(r"llamarig-fetch-[0-9a-f]{16}")
_LEADS = re.compile(r"\.\./sha256/([0-9a-f]{64})")
"""How a link to a model of ours reads."""
RESERVED = ("sha256", "incoming")
"""Names below a directory of models that are no model's."""
_OURS = {
    "root": {"releases", "current", "cuda", "libexec"},
    "state": {"build", "incoming", "jobs", "models", "mirror", "power"}
    | {f"{name}.json" for name in ("record", "wanted", "proven", "former", "held", "kernels", "reboot")},
}
MOST = 4096


Row = tuple[str, str, re.Pattern[str], str]
"""Kind, directory, form of the name, type."""


@dataclass(frozen=True)
class Trees:
    """Where to look."""

    models: tuple[str, ...]
    root: str = "/opt/llamarig"
    state: str = "/var/lib/llamarig"
    ccache: str = "/var/cache/llamarig/ccache"

    def rows(self) -> list[Row]:
        """(kind, directory, form of the name, type) of everything that may be ours, links to models aside."""
        cache, name = os.path.split(self.ccache)
        rows = [
            ("release", f"{self.root}/releases", RELEASE, "dir"),
            ("leftover", f"{self.root}/releases", _BEGUN, "dir"),
            ("toolkit", f"{self.root}/cuda", RELEASE, "dir"),
            ("leftover", f"{self.root}/cuda", _BEGUN, "dir"),
            ("build", f"{self.state}/build", RELEASE, "dir"),
            ("leftover", f"{self.state}/build", _BEGUN, "dir"),
            ("job", f"{self.state}/jobs", _JOB, "dir"),
            ("part", f"{self.state}/incoming", _PART, "file"),
            ("packages", self.state, re.compile("mirror"), "dir"),
            ("build-cache", cache, re.compile(re.escape(name)), "dir"),
        ]
        for models in self.models:
            rows.append(("model", f"{models}/sha256", _CONTENT, "file"))
            rows.append(("part", f"{models}/incoming", _PART, "file"))
        return rows

    def allows(self, kind: str, path: str) -> bool:
        """Whether a thing of this kind may lie at ``path``; nothing else is ever removed."""
        folder, name = os.path.split(path)
        if kind == "link":
            models, folder = os.path.split(folder)
            return models in self.models and folder not in RESERVED and _plain(folder) and _plain(name)
        return any(kind == known and folder == place and form.fullmatch(name) for known, place, form, _ in self.rows())


def _plain(name: str) -> bool:
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


@dataclass
class Found:
    """What lies in our trees."""

    things: list[dict[str, Any]] = field(default_factory=list)
    weights: dict[str, Weight] = field(default_factory=dict)
    """By path."""
    unknown: list[dict[str, str]] = field(default_factory=list)


class Look:
    """One look at all our trees: things of ours by kind, with identity and weight, and what is none of ours."""

    def __init__(self, trees: Trees, mounts: list[str]) -> None:
        self._trees, self._mounts = trees, mounts
        self.found = Found()

    def run(self) -> Found:
        """Everything that lies there."""
        rows = self._trees.rows()
        cache = str(Path(self._trees.ccache).parent)
        ours = {self._trees.state: _OURS["state"], self._trees.root: _OURS["root"]}
        for place in dict.fromkeys([*(row[1] for row in rows), *ours]):
            self._place(place, [row for row in rows if row[1] == place], ours.get(place, set()), strict=place != cache)
        for models in self._trees.models:
            self._named(models)
        return self.found

    def _tell(self, path: str, what: str) -> None:
        if len(self.found.unknown) < MOST:
            self.found.unknown.append({"path": path, "what": what})

    def _names(self, handle: int, place: str) -> list[os.DirEntry[str]]:
        with os.scandir(handle) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        if len(listed) > MOST:
            self._tell(place, f"holds {len(listed):,} entries, of which {MOST:,} were looked at")
        return listed[:MOST]

    def _opened(self, place: str) -> int | None:
        """A descriptor of a place; None where it is not there, or is told because it is no plain directory."""
        if not os.path.lexists(place):
            return None
        try:
            return open_directory(place)
        except NotOursError as error:
            self._tell(place, f"is not looked into: {error}")
            return None

    def _place(self, place: str, rows: list[Row], ours: set[str], *, strict: bool) -> None:
        """List one directory. ``strict``: whatever has none of the forms, and is not among ``ours``, is told."""
        handle = self._opened(place)
        if handle is None:
            return
        try:
            for entry in self._names(handle, place):
                kind = _kind(entry)
                row = next((each for each in rows if each[2].fullmatch(entry.name) and each[3] == kind), None)
                if row is not None:
                    self._take(handle, row[0], f"{place}/{entry.name}", entry)
                elif strict and (entry.name not in ours or (kind == "link" and entry.name != "current")):
                    self._tell(f"{place}/{entry.name}", _told(handle, entry.name, kind))
        finally:
            os.close(handle)

    def _take(self, handle: int, kind: str, path: str, entry: os.DirEntry[str]) -> dict[str, Any]:
        info, weight = entry.stat(follow_symlinks=False), weigh(handle, entry.name)
        # The compiler cache may be a disk of its own: only what is in it goes.
        if any(point.startswith(f"{path}/") or (point == path and kind != "build-cache") for point in self._mounts):
            weight.odd = "something is mounted in it"
        if kind == "packages" and os.path.lexists(f"{path}/manifest.json"):
            weight.odd = "it is a mirror of its own, not what an apply has copied"
        self.found.weights[path] = weight
        thing = {
            "kind": kind, "path": path, "bytes": weight.used, "id": [info.st_dev, info.st_ino], "odd": weight.odd,
            "used": None, "target": "",
        }  # fmt: skip
        self.found.things.append(thing)
        return thing

    def _named(self, models: str) -> None:
        """Links to models by name, and whatever else somebody put beside them."""
        handle = self._opened(models)
        if handle is None:
            return
        try:
            for entry in self._names(handle, models):
                kind = _kind(entry)
                if kind != "dir" or not entry.name.isprintable():
                    self._tell(f"{models}/{entry.name}", _told(handle, entry.name, kind))
                elif entry.name not in (*RESERVED, "lost+found"):
                    self._links(handle, models, entry.name)
        finally:
            os.close(handle)

    def _links(self, parent: int, models: str, folder: str) -> None:
        place = f"{models}/{folder}"
        handle = os.open(folder, DIRECTORY, dir_fd=parent)
        try:
            entries = self._names(handle, place)
            targets = {entry.name: _leads(handle, entry) for entry in entries}
            if entries and not any(targets.values()):
                self._tell(place, "a directory without a link to a model")
                return
            for entry in entries:
                path = f"{place}/{entry.name}"
                if target := targets[entry.name]:
                    self._take(handle, "link", path, entry)["target"] = f"{models}/sha256/{target}"
                else:
                    self._tell(path, _told(handle, entry.name, _kind(entry)))
        finally:
            os.close(handle)


def _kind(entry: os.DirEntry[str]) -> str:
    return kind_of(entry.stat(follow_symlinks=False).st_mode)


def _told(handle: int, name: str, kind: str) -> str:
    if kind == "link":
        try:
            return f"a link to {os.readlink(name, dir_fd=handle)}"
        except OSError:
            return "a link"
    return f"a {'directory' if kind == 'dir' else kind}"


def _leads(handle: int, entry: os.DirEntry[str]) -> str:
    """The content that a link of ours leads to; empty for anything else."""
    if not entry.is_symlink() or not entry.name.isprintable():
        return ""
    try:
        match = _LEADS.fullmatch(os.readlink(entry.name, dir_fd=handle))
    except OSError:
        return ""
    return match[1] if match else ""
