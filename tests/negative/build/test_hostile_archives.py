"""Archives that reach outside, escalate, lie or never end: each is refused, and nothing lands outside the tree."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.rig_unpack import Limits, RefusedError, unpack

from tests.support.artifacts import archives
from tests.support.artifacts.archives import link, member


def _unpack(archive: Path, dest: Path, *rest: Any, **more: Any) -> None:
    with archive.open("rb") as file:
        unpack(file, dest, *rest, **more)


HOSTILE = {
    "traversal": ([member("top/a/../../../escaped")], "leaves the archive"),
    "absolute path": ([member("/tmp/escaped")], "absolute path"),
    "link to an absolute path": ([member("top/a"), link("top/l", "/etc/passwd")], "points outside the tree"),
    "link out of the tree": ([member("top/a"), link("top/d/l", "../../../x")], "points outside the tree"),
    "link made through a link": (
        [member("top/t/d/a"), link("top/t/d/x", ".."), link("top/t/d/x/y", "../../etc")],
        "lies below a link",
    ),
    "link that leaves by way of another": (
        [member("top/t/d/a"), link("top/t/d/x", "../.."), link("top/t/b", "d/x/../../escaped")],
        "by way of another link",
    ),
    "hard link": ([member("top/a"), link("top/l", "top/a", tarfile.LNKTYPE)], "hard link"),
    "setuid": ([member("top/su", mode=0o4755)], "setuid"),
    "setgid": ([member("top/sg", mode=0o2755)], "setuid, setgid"),
    "device": ([member("top/a"), member("top/dev", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=5)], "device"),
    "pipe": ([member("top/a"), member("top/fifo", b"", type=tarfile.FIFOTYPE)], "pipe"),
    "twice": ([member("top/a"), member("top/a", b"other")], "there twice"),
    "file where a link is": ([link("top/a", "b"), member("top/a")], "there twice"),
    "two tops": ([member("top/a"), member("other/a")], "more than one top"),
    "control characters": ([member("top/a\x1b[2J")], "control characters"),
    "nothing wanted": ([member("top")], "nothing below"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused(name: str, tmp_path: Path) -> None:
    members, says = HOSTILE[name]
    dest = tmp_path / "deep" / "tree"
    dest.mkdir(parents=True)
    with pytest.raises(RefusedError, match=says):
        _unpack(archives.write(tmp_path / "a.tar.gz", *members), dest)
    assert not list(tmp_path.rglob("escaped"))
    assert not Path("/tmp/escaped").exists()


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    dest = tmp_path / "tree"
    dest.mkdir()
    hostile = archives.write(tmp_path / "a.tar.gz", link("top/d", "../outside"), member("top/d/file"))
    with pytest.raises(RefusedError):
        _unpack(hostile, dest)
    assert not list(outside.iterdir())


def test_an_archive_that_unfolds_too_far_is_refused(tmp_path: Path) -> None:
    bomb = archives.write(tmp_path / "a.tar.gz", member("top/zero", bytes(3 << 20)))
    dest = tmp_path / "tree"
    dest.mkdir()
    with pytest.raises(RefusedError, match="allowed are"):
        _unpack(bomb, dest, limits=Limits(file_bytes=1 << 20))
    with pytest.raises(RefusedError, match="unfolds to more"):
        _unpack(bomb, dest, limits=Limits(total_bytes=1 << 20))
    many = archives.write(tmp_path / "b.tar.gz", *(member(f"top/{number}") for number in range(20)))
    with pytest.raises(RefusedError, match="more than 10 files"):
        _unpack(many, dest, limits=Limits(files=10))


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    import random

    noise = random.Random(1).randbytes(200_000)
    whole = archives.write(tmp_path / "a.tar.gz", member("top/a", noise))
    whole.write_bytes(whole.read_bytes()[:100_000])
    dest = tmp_path / "tree"
    dest.mkdir()
    with pytest.raises(RefusedError, match=r"not a whole tar archive|ends early"):
        _unpack(whole, dest)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "a.tar.gz"
    page.write_text("<html>sign in</html>")
    with pytest.raises(RefusedError, match="not a whole tar archive"):
        _unpack(page, tmp_path)
