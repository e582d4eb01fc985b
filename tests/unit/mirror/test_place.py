"""What is there and right is kept, what is damaged is told and fetched again, and nothing else is taken away."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from llamarig.converge.mirror.manifest import Entry
from llamarig.converge.mirror.place import Place
from llamarig.converge.store.shelf import Shelf
from llamarig.errors import RigError

CONTENT = b"GGUF" + bytes(range(256)) * 8
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Origin:
    """Fetches one content, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, shelf: Shelf) -> Path:
        self.asked += 1
        temporary = shelf.partial(SHA)
        temporary.write_bytes(CONTENT)
        return shelf.put(temporary, SHA, "m.gguf")


def _collect(root: Path, make: Callable[[Shelf], Path], *, verify: bool = False, prune: bool = False) -> Place:
    with Place.opened(root) as place:
        if verify:
            place.verify()
        place.content(SHA, "model", "m.gguf", "demo", make)
        if prune:
            place.prune()
        place.save()
    return place


def test_a_second_run_fetches_nothing(tmp_path: Path) -> None:
    origin = Origin()
    assert _collect(tmp_path / "m", origin).added == [f"sha256/{SHA}"]
    assert _collect(tmp_path / "m", origin).added == []
    assert origin.asked == 1
    done = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path / "m", check=False)
    assert done.returncode == 0


def test_what_the_controller_holds_is_copied_and_not_fetched(tmp_path: Path) -> None:
    origin = Origin()
    origin(Shelf.default())
    assert _collect(tmp_path / "m", origin).added == [f"sha256/{SHA}"]
    assert origin.asked == 1
    assert (tmp_path / "m/sha256" / SHA).read_bytes() == CONTENT


def test_a_run_that_was_killed_before_it_wrote_its_manifest_is_gone_on_with(tmp_path: Path) -> None:
    origin = Origin()
    with Place.opened(tmp_path / "m") as place:
        place.content(SHA, "model", "m.gguf", "demo", origin)
        deb = place.scratch("x.deb")
        deb.write_bytes(CONTENT)
        place.adopt(deb, "debian/x/x.deb", SHA, "package", "x.deb")
    assert json.loads((tmp_path / "m/manifest.json").read_text())["files"] == {}
    with Place.opened(tmp_path / "m") as place:
        assert place.found("debian/x/x.deb", SHA)
        assert not place.found("debian/x/x.deb", "0" * 64)
    assert _collect(tmp_path / "m", origin).added == []
    assert origin.asked == 1


def test_a_directory_whose_manifest_was_taken_away_is_left_alone(tmp_path: Path) -> None:
    _collect(tmp_path / "m", Origin())
    (tmp_path / "m/manifest.json").unlink()
    with pytest.raises(RigError, match="other things than a mirror"):
        _collect(tmp_path / "m", Origin())


@pytest.mark.parametrize("damage", [b"GGUE" + CONTENT[4:], CONTENT[:-1], None])
def test_a_damaged_or_missing_file_is_told_and_fetched_again(tmp_path: Path, damage: bytes | None) -> None:
    origin = Origin()
    _collect(tmp_path / "m", origin)
    victim = tmp_path / "m/sha256" / SHA
    victim.unlink()
    if damage is not None:
        victim.write_bytes(damage)
    place = _collect(tmp_path / "m", origin, verify=True)
    assert (place.damaged, place.added) == ([f"sha256/{SHA}"], [f"sha256/{SHA}"])
    assert victim.read_bytes() == CONTENT
    assert _collect(tmp_path / "m", origin, verify=True).damaged == []


def test_without_verify_a_file_of_another_size_is_still_seen(tmp_path: Path) -> None:
    origin = Origin()
    _collect(tmp_path / "m", origin)
    victim = tmp_path / "m/sha256" / SHA
    victim.unlink()
    victim.write_bytes(CONTENT[:-1])
    place = _collect(tmp_path / "m", origin)
    assert (place.damaged, place.added) == ([f"sha256/{SHA}"], [f"sha256/{SHA}"])


def test_prune_takes_away_what_nobody_asked_for_and_nothing_else(tmp_path: Path) -> None:
    origin = Origin()
    _collect(tmp_path / "m", origin)
    with Place.opened(tmp_path / "m") as place:
        place.file("git/old.json", "note", "an old commit", b"{}", "gone")
        place.save()
    (tmp_path / "m/stray").write_text("x")
    assert _collect(tmp_path / "m", origin).pruned == []
    place = _collect(tmp_path / "m", origin, prune=True)
    assert place.pruned == ["git/old.json", "stray"]
    assert set(json.loads((tmp_path / "m/manifest.json").read_text())["files"]) == {f"sha256/{SHA}"}
    assert origin.asked == 1


def test_what_another_host_needs_stays_when_one_needs_it_no_more(tmp_path: Path) -> None:
    with Place.opened(tmp_path / "m") as place:
        for host in ("one", "two"):
            place.content(SHA, "model", "m.gguf", host, Origin())
        place.forget_host("one")
        assert place.manifest.files[f"sha256/{SHA}"].hosts == {"two"}


def test_two_runs_do_not_collect_into_one_mirror(tmp_path: Path) -> None:
    with (
        Place.opened(tmp_path / "m"),
        pytest.raises(RigError, match="another llamarig collects"),
        Place.opened(tmp_path / "m"),
    ):
        pass


def test_a_directory_of_somebody_s_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RigError, match="other things than a mirror"), Place.opened(tmp_path):
        pass

    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]


def _hostile(root: Path, path: str, **said: object) -> Path:
    """A mirror whose manifest names one file that llamarig has not put there."""
    root.mkdir()
    entry = Entry(SHA, 1, "model", "m").to_json() | said
    (root / "manifest.json").write_text(json.dumps({"schema": 1, "files": {path: entry}, "debian": {}, "python": {}}))
    return root


def test_what_lies_behind_a_linked_directory_is_not_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letter").write_text("x")
    root = _hostile(tmp_path / "m", "sub/letter")
    (root / "sub").symlink_to(tmp_path / "home")
    with Place.opened(root) as place:
        place.verify()
    assert place.damaged == ["sub/letter"]
    assert (tmp_path / "home/letter").read_text() == "x"


def test_a_link_in_the_place_of_the_lock_empties_no_file(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("x")
    (tmp_path / "m").mkdir()
    (tmp_path / "m/.llamarig-lock").symlink_to(tmp_path / "letter")
    with pytest.raises(RigError, match="cannot be written"), Place.opened(tmp_path / "m"):
        pass
    assert (tmp_path / "letter").read_text() == "x"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_told_as_damaged(tmp_path: Path, make: Callable[[Path], None]) -> None:
    root = _hostile(tmp_path / "m", "x")
    make(root / "x")
    with Place.opened(root) as place:
        place.verify()
    assert place.damaged == ["x"]


@pytest.mark.parametrize("path", [".llamarig-lock", "manifest.json", "./SHA256SUMS", ".", "a\nb", "\ud800"])
def test_a_manifest_that_names_what_is_llamarig_s_own_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(RigError, match="not one that llamarig wrote"), Place.opened(_hostile(tmp_path / "m", path)):
        pass


def test_a_size_beyond_all_numbers_is_refused(tmp_path: Path) -> None:
    root = _hostile(tmp_path / "m", "x", size=float("inf"))
    with pytest.raises(RigError, match="not one that llamarig wrote"), Place.opened(root):
        pass


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../b", ""])
def test_a_manifest_that_leads_out_of_the_mirror_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "m").mkdir()
    entry = Entry(SHA, 1, "model", "m").to_json()
    (tmp_path / "m/manifest.json").write_text(
        json.dumps({"schema": 1, "files": {path: entry}, "debian": {}, "python": {}})
    )
    with pytest.raises(RigError, match="not one that llamarig wrote"), Place.opened(tmp_path / "m"):
        pass


def test_a_fetched_file_of_other_content_is_thrown_away(tmp_path: Path) -> None:
    with Place.opened(tmp_path / "m") as place:
        temporary = place.scratch("x.deb")
        temporary.write_bytes(b"other")
        with pytest.raises(RigError, match="not what its index names"):
            place.adopt(temporary, "debian/x/x.deb", SHA, "package", "x.deb")
        assert not temporary.exists()
        assert place.manifest.files == {}


def test_packages_of_another_form_do_not_count_as_collected(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(
        '{"schema": 1, "files": {}, "debian": {"debian-13-amd64": 5}, "python": {}}'
    )
    with pytest.raises(RigError, match="not one that llamarig wrote"), Place.opened(tmp_path):
        pass


def test_a_disk_that_is_full_is_told_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Place.opened(tmp_path / "m") as place:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left") as caught:
            place.save()
    assert caught.value.filename == str(tmp_path / "m/manifest.json")
    assert [each.name for each in (tmp_path / "m").glob(".llamarig-manifest*")] == []
