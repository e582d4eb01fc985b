"""Parts of every kind end in one layout; what no part may hold is refused."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path

import pytest

from tests.support.observe.load import part
from tests.support.toolkit.parts import entry, files, runfile, tar, wheel

parts = part("rig_cuda_parts")
Refused = part("rig_unpack").RefusedError
WHOLE = files("89")


def unpacked(tmp_path: Path, *given: tuple[str, bytes]) -> Path:
    dest = tmp_path / "toolkit"
    dest.mkdir()
    tree = parts.Tree(dest)
    for number, (kind, data) in enumerate(given):
        (tmp_path / str(number)).write_bytes(data)
        parts.add(tree, kind, tmp_path / str(number))
    tree.finish()
    return dest


def archive(*odd: tarfile.TarInfo) -> bytes:
    return tar(WHOLE, "cuda_nvcc-linux-x86_64-12.9.86-archive", *odd)


def installed(members: dict[str, bytes]) -> dict[str, bytes]:
    """As the runfile and the packages lay a toolkit out."""
    return {
        name.replace("include/", "targets/x86_64-linux/include/").replace("lib/", "targets/x86_64-linux/lib/"): content
        for name, content in members.items()
    }


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("wheel", wheel(WHOLE)),
        ("archive", archive()),
        ("tree", tar(WHOLE, "toolkit", mode="w")),
        ("runfile", runfile(installed(WHOLE))),
        ("runfile", runfile(WHOLE, old=False)),
    ],
)
def test_every_kind_ends_in_one_layout(tmp_path: Path, kind: str, data: bytes) -> None:
    dest = unpacked(tmp_path, (kind, data))
    assert {name: (dest / name).read_bytes() for name in WHOLE} == WHOLE
    assert {path.name for path in dest.iterdir()} == {"bin", "include", "lib", "lib64"}
    assert {path.name for path in (dest / "bin").iterdir()} == {"nvcc", "made"}
    assert str((dest / "lib64").readlink()) == "lib"
    assert str((dest / "lib/libcudart.so").readlink()) == "libcudart.so.13"
    assert stat.S_IMODE((dest / "bin/nvcc").stat().st_mode) == 0o755
    assert stat.S_IMODE((dest / "include/cuda.h").stat().st_mode) & 0o022 == 0


def test_parts_are_laid_over_each_other(tmp_path: Path) -> None:
    one, other = dict(list(WHOLE.items())[:2]), dict(list(WHOLE.items())[1:])
    dest = unpacked(tmp_path, ("wheel", wheel(one)), ("archive", tar(other, "x")))
    assert all((dest / name).read_bytes() == content for name, content in WHOLE.items())


def test_links_between_libraries_are_kept_and_links_of_the_layout_are_not(tmp_path: Path) -> None:
    odd = [
        entry("x/lib/libcudart.so", tarfile.SYMTYPE, "libcudart.so.13"),
        entry("x/lib64", tarfile.SYMTYPE, "targets/x86_64-linux/lib"),
        entry("x/include", tarfile.SYMTYPE, "targets/x86_64-linux/include"),
    ]
    dest = unpacked(tmp_path, ("archive", tar(WHOLE, "x", *odd)))
    assert str((dest / "lib/libcudart.so").readlink()) == "libcudart.so.13"
    assert (dest / "include").is_dir()
    assert not (dest / "include").is_symlink()


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        ("wheel", wheel({"../../etc/passwd": b"x"}), "leaves the archive"),
        ("wheel", wheel({"/etc/passwd": b"x"}), "absolute path"),
        ("wheel", wheel(WHOLE, stat.S_IFLNK | 0o777), "no plain file"),
        ("wheel", wheel(WHOLE, stat.S_IFREG | 0o4755), "no plain file"),
        ("wheel", b"PK\x03\x04 cut off", "not a whole wheel"),
        ("archive", archive(entry("x/bin/../../out", tarfile.SYMTYPE, "y")), "leaves the archive"),
        ("archive", archive(entry("x/lib/out", tarfile.SYMTYPE, "/etc/passwd")), "points outside"),
        ("archive", archive(entry("x/lib/out", tarfile.SYMTYPE, "../../../etc/passwd")), "points outside"),
        ("archive", archive(entry("x/bin/su", tarfile.REGTYPE, mode=0o4755)), "setuid"),
        ("archive", archive(entry("x/bin/null", tarfile.CHRTYPE)), "a device"),
        ("archive", archive(entry("x/bin/hard", tarfile.LNKTYPE, "x/bin/nvcc")), "a hard link"),
        ("archive", b"\xfd7zXZ and nothing", "not a whole tar"),
        ("runfile", b"#!/bin/sh\necho hello\n", "does not say where"),
        ("runfile", b'#!/bin/sh\nskip="900"\n', "no tar begins"),
        ("runfile", archive(), "no self-extracting"),
    ],
)
def test_what_no_part_may_hold_is_refused(tmp_path: Path, kind: str, data: bytes, why: str) -> None:
    with pytest.raises(Refused, match=why):
        unpacked(tmp_path, (kind, data))
    assert not (tmp_path / "out").exists()


def test_two_contents_for_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="two parts hold 'bin/nvcc'"):
        unpacked(tmp_path, ("wheel", wheel(WHOLE)), ("wheel", wheel({"bin/nvcc": b"another"})))


def test_a_part_that_unfolds_without_end_is_refused(tmp_path: Path) -> None:
    tree = parts.Tree(tmp_path / "t", part("rig_unpack").Limits(files=10, file_bytes=1 << 10, total_bytes=1 << 20))
    (tmp_path / "big").write_bytes(wheel({"bin/nvcc": bytes(1 << 14)}))
    with pytest.raises(Refused, match="unfolds to more"):
        parts.add(tree, "wheel", tmp_path / "big")
