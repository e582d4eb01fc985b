"""What is taken away is what was listed, whole or not at all; nothing beside it is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.compare.cases import sha
from tests.support.gc_tree import NOW, OLD, Tree, gc
from tests.support.observe.load import part

remove = part("rig_gc_remove")
dirs = part("rig_gc_dirs")
READ = "import mmap, sys; path = sys.stdin.readline().rstrip(); "
WAIT = "print('held', flush=True); sys.stdin.read()"
HOLDER = f"{READ} held = open(path, 'rb'); {WAIT}"
MAPPER = (
    f"{READ} file = open(path, 'rb'); held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ); file.close(); {WAIT}"
)
NAMER = f"{READ} {WAIT}"
"""Names on its command line alone what it was given there."""


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def process() -> Iterator[Callable[..., int]]:
    """Starts a process that waits, and returns its id."""
    running: list[subprocess.Popen[str]] = []

    def start(code: str, told: str = "", *words: str, **named: Any) -> int:
        command = [sys.executable, "-c", code, *words]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **named)
        running.append(child)
        assert child.stdin is not None
        child.stdin.write(f"{told}\n")
        child.stdin.flush()
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        return child.pid

    yield start
    for child in running:
        child.communicate()


def test_a_release_goes_whole_and_nothing_beside_it(tree: Tree) -> None:
    path = tree.release(OLD)
    (path / "lib").symlink_to("/etc")
    answer = tree.remove(tree.things()[f"opt/releases/{OLD}"])
    assert answer["changed"]
    assert [each["path"] for each in answer["removed"]] == [str(path)]
    assert names(path.parent) == [NOW]
    assert Path("/etc/passwd").exists()


def test_the_second_time_nothing_changes(tree: Tree) -> None:
    tree.release(OLD)
    thing = tree.things()[f"opt/releases/{OLD}"]
    assert tree.remove(thing)["changed"] is True
    assert tree.remove(thing) == {"changed": False, "removed": [], "left": []}


def test_a_dry_run_says_the_same_and_removes_nothing(tree: Tree) -> None:
    path = tree.release(OLD)
    answer = tree.remove(tree.things()[f"opt/releases/{OLD}"], dry=True)
    assert answer["changed"]
    assert (path / "bin/llama-server").exists()


def test_what_has_taken_its_place_stays(tree: Tree) -> None:
    path = tree.release(OLD)
    thing = tree.things()[f"opt/releases/{OLD}"]
    path.rename(path.with_name("aside"))
    tree.release(OLD)
    answer = tree.remove(thing)
    assert answer["left"][0]["reason"] == "something else has taken its place"
    assert (path / "provenance.json").exists()


def test_a_link_that_has_taken_its_place_is_neither_followed_nor_removed(tree: Tree, tmp_path: Path) -> None:
    path = tree.release(OLD)
    thing = tree.things()[f"opt/releases/{OLD}"]
    moved = tmp_path / "moved"
    path.rename(moved)
    path.symlink_to(moved)
    assert tree.remove(thing)["removed"] == []
    assert (moved / "bin/llama-server").exists()
    assert path.is_symlink()
    with pytest.raises(dirs.NotOursError):
        remove.remove("release", str(path), thing["id"])


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/opt/llamarig/releases/../../etc", "/var/lib/llamarig/models/sha256/x"]
)
def test_nothing_outside_of_our_places_is_allowed(tree: Tree, path: str) -> None:
    for kind in ("release", "model", "link", "part", "build", "leftover", "toolkit", "job", "packages", "build-cache"):
        assert not tree.trees.allows(kind, path)


def test_a_model_goes_with_its_link_and_the_directory_that_held_it_alone(tree: Tree) -> None:
    old, kept = tree.model("old", link="gone"), tree.model("kept", link="smol")
    found = tree.things()
    tree.remove(found[f"var/models/sha256/{sha('old')}"], found["var/models/gone/x.gguf"])
    assert not old.exists()
    assert kept.exists()
    assert names(tree.models) == ["sha256", "smol"]


def test_the_compiler_cache_is_emptied_and_stays_a_directory(tree: Tree) -> None:
    cache = tree.base / "cache/ccache"
    (cache / "a/b").mkdir(parents=True)
    (cache / "a/b/c").write_text("x")
    cache.chmod(0o750)
    assert tree.remove(tree.things()["cache/ccache"])["changed"]
    assert list(cache.iterdir()) == []
    assert cache.stat().st_mode & 0o777 == 0o750


def test_a_mount_below_is_not_crossed(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tree.release(OLD)
    thing = tree.things()[f"opt/releases/{OLD}"]
    inside = (path / "bin").stat().st_ino

    def mount_id(handle: int) -> str:
        return "2" if os.fstat(handle).st_ino == inside else "1"

    monkeypatch.setattr(remove, "mount_id", mount_id)
    with pytest.raises(dirs.NotOursError, match="mounted"):
        remove.remove("release", str(path), thing["id"])
    assert list(path.parent.glob("**/llama-server"))


def test_a_run_that_is_killed_leaves_nothing_that_looks_whole(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tree.release(OLD)
    thing = tree.things()[f"opt/releases/{OLD}"]

    def killed(*_words: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(remove, "_tree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove.remove("release", str(path), thing["id"])
    assert not path.exists()
    [left] = [each for each in tree.things().values() if each["kind"] == "leftover"]
    assert tree.remove(left)["changed"]
    assert names(path.parent) == [NOW]


@pytest.mark.parametrize("code", [HOLDER, MAPPER, NAMER])
def test_what_a_process_holds_maps_or_names_is_used(tree: Tree, process: Callable[..., int], code: str) -> None:
    path = tree.model("old", link="smol")
    tree.model("free")
    listed = tree.things()
    pid = process(code, "", f"--model={path}") if code == NAMER else process(code, str(path))
    tree.sees(pid)
    found = tree.things()
    assert found[f"var/models/sha256/{sha('old')}"]["used"]["pid"] == pid
    assert found[f"var/models/sha256/{sha('free')}"]["used"] is None
    answer = tree.remove(*(each for each in listed.values() if each["kind"] == "model"))
    assert [each["path"] for each in answer["removed"]] == [str(tree.models / "sha256" / sha("free"))]
    assert f"process {pid}" in answer["left"][0]["reason"]
    assert path.exists()


def test_a_file_that_is_held_under_another_name_is_used(
    tree: Tree, process: Callable[..., int], tmp_path: Path
) -> None:
    path = tree.model("old")
    (tmp_path / "other.gguf").hardlink_to(path)
    pid = process(HOLDER, str(tmp_path / "other.gguf"))
    tree.sees(pid)
    assert tree.things()[f"var/models/sha256/{sha('old')}"]["used"]["pid"] == pid


def test_the_directory_of_a_process_is_used(tree: Tree, process: Callable[..., int]) -> None:
    path = tree.release(OLD)
    pid = process(NAMER, cwd=path / "bin")
    tree.sees(pid)
    assert tree.things()[f"opt/releases/{OLD}"]["used"]["pid"] == pid


def test_the_user_of_a_process_is_seen(tree: Tree) -> None:
    tree.sees(os.getppid())
    uses = part("rig_gc_uses").Scan([], set(), str(tree.proc)).run()
    assert uses.uids[os.getuid()]["pid"] == os.getppid()


def test_nothing_goes_while_a_process_cannot_be_looked_into(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tree.release(OLD)
    thing = tree.things()[f"opt/releases/{OLD}"]
    tree.sees(os.getppid())
    uses = part("rig_gc_uses")

    def refused(*_words: object) -> None:
        raise PermissionError

    monkeypatch.setattr(uses.Scan, "_maps", refused)
    assert [each["pid"] for each in tree.listed()["blind"]] == [os.getppid()]
    assert "looked into" in tree.remove(thing)["left"][0]["reason"]
    assert path.exists()


def test_what_cannot_be_removed_is_an_error_that_names_it(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = tree.release(OLD), tree.model("old")
    found, real = tree.things(), remove.remove
    monkeypatch.setattr(remove, "remove", lambda kind, *words: busy_or(real, kind, *words))
    answer = tree.remove(found[f"opt/releases/{OLD}"], found[f"var/models/sha256/{sha('old')}"])
    assert answer["failed"]
    assert str(path) in answer["msg"]
    assert not other.exists(), "the others go on"


def busy_or(real: Callable[..., bool], kind: str, *words: Any) -> bool:
    """Like the real one, but that no release can be removed."""
    if kind == "release":
        raise OSError(16, "Device or resource busy")
    return real(kind, *words)


def test_the_unit_of_a_finished_job_ends_with_what_it_left(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree.base / f"var/build/{OLD}/out").mkdir(parents=True)
    said: list[list[str]] = []
    monkeypatch.setattr(gc.subprocess, "run", lambda words, **_named: said.append(words))
    tree.remove(tree.things()[f"var/build/{OLD}"])
    unit = f"llamarig-build-{OLD}.service"
    assert [words[1:] for words in said] == [["stop", "--", unit], ["reset-failed", "--", unit]]
    assert not (tree.base / f"var/build/{OLD}").exists()
