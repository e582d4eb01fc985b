"""The documents of a mirror have the keys that the page shows, and content is collected by what a host wants."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from llamarig.converge.mirror.collect import Report
from llamarig.converge.mirror.content import collect_content
from llamarig.converge.mirror.manifest import Entry, Manifest
from llamarig.converge.mirror.packages import asked
from llamarig.converge.mirror.place import Place
from llamarig.converge.store import git
from llamarig.converge.store.releases import Releases
from llamarig.converge.store.shelf import Shelf, silent

ROOT = Path(__file__).resolve().parents[3]
SOURCE = b"an archive"
SHA = hashlib.sha256(SOURCE).hexdigest()


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _shown() -> list[dict[str, Any]]:
    page = (ROOT / "docs/reference/json.md").read_text(encoding="utf-8")
    section = page.split("\n## `mirror`\n")[1].split("\n## ")[0]
    return [json.loads(block) for block in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]


def test_the_page_shows_the_keys_of_both_documents() -> None:
    report, manifest = _shown()
    assert set(report) == set(Report(Path()).to_json())
    assert set(manifest) == set(Manifest().to_json())
    [entry] = manifest["files"].values()
    assert set(entry) == set(Entry(SHA, 1, "model", "m").to_json())


def _wanted(tmp_path: Path, artifact: dict[str, Any] | None = None, kind: str = "archive") -> dict[str, Any]:
    (tmp_path / "e.tar.gz").write_bytes(SOURCE)
    source = {"kind": kind, "ref": "e.tar.gz", "sha256": SHA, "subdir": ""}
    release = {"id": "r-1", "commit": "1" * 40, "source": source, "patches": [], "artifact": artifact}
    host_path = {"sha256": "0" * 64, "size": 1, "links": [], "origin": {"kind": "host-path", "path": "/x"}}
    return {"host": "demo", "release": release, "toolkit": None, "models": [host_path]}


def test_a_source_is_collected_where_no_release_is_held(tmp_path: Path) -> None:
    with Place.opened(tmp_path / "m") as place:
        collect_content(place, _wanted(tmp_path), tmp_path, silent)
    assert [(entry.kind, entry.hosts) for entry in place.manifest.files.values()] == [("source", {"demo"})]


def test_the_release_that_the_controller_holds_is_collected_instead(tmp_path: Path) -> None:
    shelf = Shelf.default()
    temporary = shelf.partial("r")
    temporary.write_bytes(SOURCE)
    shelf.put(temporary, SHA, "r")
    ours = Releases(shelf)
    note = {"release": "r-1", "sha256": SHA, "size": len(SOURCE), "origin": "demo", "at": "2026-12-01T00:00:00Z"}
    ours.note("r-1").parent.mkdir(parents=True)
    ours.note("r-1").write_text(json.dumps(note))
    with Place.opened(tmp_path / "m") as place:
        collect_content(place, _wanted(tmp_path, {"sha256": SHA, "size": len(SOURCE)}), tmp_path, silent)
    assert {path: entry.kind for path, entry in place.manifest.files.items()} == {
        f"sha256/{SHA}": "release",
        "releases/r-1.json": "note",
    }
    theirs = Releases(Shelf(tmp_path / "m/sha256")).get("r-1")
    assert theirs is not None
    assert theirs.sha256 == SHA


def test_an_archive_of_a_commit_is_found_in_the_mirror_by_its_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "1" * 40
    shelf = Shelf(tmp_path / "m/sha256")
    temporary = shelf.partial("x")
    temporary.write_bytes(SOURCE)
    shelf.put(temporary, SHA, "x")
    note = tmp_path / "m" / git.note_path(commit)
    note.parent.mkdir()
    note.write_text(json.dumps({"sha256": SHA}))
    monkeypatch.setattr(git, "_git", lambda *_words: pytest.fail("git was asked"))
    found = git.archive(Shelf.default().with_mirror(tmp_path / "m"), "https://example.invalid/x.git", commit, silent)
    assert found == (SHA, tmp_path / "m/sha256" / SHA)


def test_packages_of_several_hosts_are_asked_for_together_with_their_driver() -> None:
    driver = {
        "packages": ["nvidia-driver-cuda"],
        "files": [
            {"path": "/etc/apt/sources.list.d/llamarig-nvidia.sources", "content": "a"},
            {"path": "/etc/apt/preferences.d/llamarig-nvidia", "content": "b"},
            {"path": "/etc/modprobe.d/llamarig-nouveau.conf", "content": "c"},
        ],
    }
    names, files = asked(
        [
            {"packages": {"cmake": None, "g++": None}, "driver": None},
            {"packages": {"cmake": None, "ccache": "4.11.2-1"}, "driver": driver},
        ]
    )
    assert names == ["ccache=4.11.2-1", "cmake", "g++", "linux-headers-amd64", "nvidia-driver-cuda"]
    assert sorted(files) == [
        "/etc/apt/preferences.d/llamarig-nvidia",
        "/etc/apt/sources.list.d/llamarig-nvidia.sources",
    ]
