"""What a hostile build may leave behind: it does not get out of its directory by a link."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils import rig_release_files, rig_unpack


def _bin(tmp_path: Path) -> Path:
    out = tmp_path / "out" / "bin"
    out.mkdir(parents=True)
    (out / "llama-server").write_bytes(b"program")
    return out


def _target(tmp_path: Path) -> Path:
    target = tmp_path / "id"
    target.mkdir()
    return target


def test_a_program_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    out = _bin(tmp_path)
    (out / "llama-server").unlink()
    (out / "llama-server").symlink_to("/etc/shadow")
    with pytest.raises(OSError, match="symbolic link"):
        rig_release_files.copy_build(out.parent, ["llama-server"], _target(tmp_path))


def test_a_library_link_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    out = _bin(tmp_path)
    (out / "libevil.so").symlink_to("/etc/shadow")
    with pytest.raises(rig_unpack.RefusedError, match="not to a library beside it"):
        rig_release_files.copy_build(out.parent, ["llama-server"], _target(tmp_path))


def test_a_directory_of_binaries_that_is_a_link_is_refused(tmp_path: Path) -> None:
    out = _bin(tmp_path)
    moved = tmp_path / "elsewhere"
    out.rename(moved)
    out.symlink_to(moved)
    with pytest.raises(rig_unpack.RefusedError, match="is no directory of its own"):
        rig_release_files.copy_build(out.parent, ["llama-server"], _target(tmp_path))
