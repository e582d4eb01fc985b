"""A host's trees in a directory of the test's own, with the real module at work on them. Composed, not recorded."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.compare.cases import sha
from tests.support.observe.load import module, part

places = part("rig_gc_places")
files = part("rig_files")
gc = module("rig_gc")
NOW, OLD, FORMER = "4df29be4f-0123456789ab", "1df29be4f-0123456789ab", "2df29be4f-0123456789ab"


@dataclass
class Tree:
    """Trees below ``base``, and the processes that are seen."""

    base: Path
    proc: Path

    @property
    def trees(self) -> Any:
        return places.Trees((), str(self.base / "opt"), str(self.base / "var"), str(self.base / "cache/ccache"))

    @property
    def models(self) -> Path:
        return self.base / "var/models"

    def release(self, name: str, size: int = 100_000) -> Path:
        path = self.base / "opt/releases" / name
        (path / "bin").mkdir(parents=True)
        (path / "bin/llama-server").write_bytes(b"x" * size)
        (path / "provenance.json").write_text("{}")
        return path

    def model(self, word: str, link: str | None = None) -> Path:
        path = self.models / "sha256" / sha(word)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"GGUF" + word.encode() * 1000)
        if link is not None:
            (self.models / link).mkdir(exist_ok=True)
            (self.models / link / "x.gguf").symlink_to(f"../sha256/{sha(word)}")
        return path

    def write(self, name: str, content: Any) -> Path:
        """A document of the state directory."""
        path = self.base / "var" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
        return path

    def record(self, **more: Any) -> None:
        record = {"schema": 1, "release": NOW, "former-release": None, "files": {}, **more}
        self.write("record.json", record | {"digest": files.canonical_digest(record)})

    def sees(self, pid: int) -> None:
        """Let a process be seen."""
        (self.proc / str(pid)).symlink_to(f"/proc/{pid}")

    def listed(self, **params: Any) -> dict[str, Any]:
        found: dict[str, Any] = gc.listing(
            {"models": [str(self.models)], "users": [], "search": True, **params}, self.trees
        )
        return found

    def things(self, **params: Any) -> dict[str, dict[str, Any]]:
        """What is listed, by path below the base."""
        return {os.path.relpath(each["path"], self.base): each for each in self.listed(**params)["things"]}

    def remove(self, *things: dict[str, Any], dry: bool = False) -> dict[str, Any]:
        params = {"models": [str(self.models)], "users": [], "things": list(things), "search": True}
        answer: dict[str, Any] = gc.absent(params, dry, self.trees)
        return answer


def wanted_document(release: str, models: dict[str, list[str]]) -> dict[str, Any]:
    """The parts of a wanted state that name something."""
    return {
        "release": {"id": release},
        "models": [{"path": path, "links": links} for path, links in models.items()],
        "users": [],
        "toolkit": None,
    }


def made(base: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A host with one release, which is the current one, and a record."""
    proc = base / "proc"
    proc.mkdir()
    tree = Tree(base / "host", proc)
    tree.release(NOW)
    (tree.base / "opt/current").symlink_to(f"releases/{NOW}")
    (tree.base / "cache").mkdir()
    tree.record()
    monkeypatch.setattr(gc, "Scan", functools.partial(gc.Scan, proc=str(proc)))
    monkeypatch.setattr(gc.rig_gc_users, "made_by_us", lambda _wanted: {})
    return tree
