"""Headers of a tar that claim more than anybody has: host and controller refuse each, in bounded memory."""

from __future__ import annotations

import io
import json
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from ansible.module_utils import rig_tar_headers
from ansible.module_utils.rig_unpack import RefusedError, unpack

from llamarig.converge.store import tar_headers
from llamarig.converge.store.releases import _provenance
from llamarig.errors import RigError

SOUND = {"release": "r-1"}
MOST_MEMORY = 16 << 20


def header(kind: bytes, size: int, name: str = "r/x", form: int = tarfile.GNU_FORMAT) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(form)


def block(content: bytes) -> bytes:
    return content + bytes(-len(content) % tarfile.BLOCKSIZE)


def pax(kind: bytes, **said: str) -> bytes:
    content = b""
    for key, value in said.items():
        text = f" {key.replace('_', '.')}={value}\n".encode()
        length = len(text) + 1
        while len(str(length)) + len(text) != length:
            length += 1
        content += f"{length}".encode() + text
    return header(kind, len(content)) + block(content)


def file(name: str = "r/bin", content: bytes = b"x") -> bytes:
    return header(tarfile.REGTYPE, len(content), name) + block(content)


PROVENANCE = file("r/provenance.json", json.dumps(SOUND).encode())
HOSTILE: dict[str, tuple[bytes, str]] = {
    "a gigabyte of one member's": (header(tarfile.XHDTYPE, 1 << 30), "an extended header claims 1073741824 bytes"),
    "a gigabyte of Solaris": (header(tarfile.SOLARIS_XHDTYPE, 1 << 30), "an extended header claims"),
    "a gigabyte of a name": (header(tarfile.GNUTYPE_LONGNAME, 1 << 30), "an extended header claims"),
    "a gigabyte of a link": (header(tarfile.GNUTYPE_LONGLINK, 1 << 30), "an extended header claims"),
    "a gigabyte of all": (header(tarfile.XGLTYPE, 1 << 30), "its global headers claim 1073741824 bytes"),
    "many of all": (pax(tarfile.XGLTYPE, a="y" * 400) * 11, "its global headers claim"),
    "below nothing": (header(tarfile.XHDTYPE, -512), "a header claims -512 bytes"),
    "content below nothing": (pax(tarfile.XHDTYPE, size="-1024") + file(), "|".join(("-1024 bytes", "invalid offset"))),
    "one behind the other": (pax(tarfile.XHDTYPE, a="b") * 5000 + file(), "recursion"),
    "holes": (header(tarfile.GNUTYPE_SPARSE, 512) + bytes(512), "a member is sparse"),
    "a map of holes": (
        pax(tarfile.XHDTYPE, GNU_sparse_major="1", GNU_sparse_minor="0") + file(content=b"9" * 400_000),
        "a member is sparse",
    ),
}


def unpacked(path: Path, folder: Path) -> None:
    folder.mkdir()
    with path.open("rb") as archive:
        unpack(archive, folder, plain=True)


READERS: dict[str, Callable[[Path, Path], object]] = {
    "host": unpacked,
    "controller": lambda path, _folder: _provenance(path),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_is_refused_in_bounded_memory(tmp_path: Path, reader: str, name: str) -> None:
    content, says = HOSTILE[name]
    path = tmp_path / "packed"
    with path.open("wb") as stream:
        stream.write(file() + content)
        stream.truncate(1 << 30)  # holes of a file: it takes no room, and reads as a gigabyte
    tracemalloc.start()
    try:
        with pytest.raises((RefusedError, RigError)) as told:
            READERS[reader](path, tmp_path / "out")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert any(word in str(told.value) for word in says.split("|"))
    assert "not a whole tar" in str(told.value)
    assert peak < MOST_MEMORY


@pytest.mark.parametrize("module", [rig_tar_headers, tar_headers], ids=["host", "controller"])
def test_too_many_members_are_refused_and_none_is_kept(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO(b"".join(file(f"r/{number}") for number in range(5)) + bytes(1024))
    monkeypatch.setattr(module, "MAX_MEMBERS", 5)
    with tarfile.open(fileobj=content, mode="r:", tarinfo=module.bounded()) as tar:
        assert [member.name for member in module.members(tar)] == [f"r/{number}" for number in range(5)]
        assert vars(tar)["members"] == []
    content.seek(0)
    monkeypatch.setattr(module, "MAX_MEMBERS", 4)
    with (
        tarfile.open(fileobj=content, mode="r:", tarinfo=module.bounded()) as tar,
        pytest.raises(tarfile.ReadError, match="4 members are allowed"),
    ):
        list(module.members(tar))


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_and_the_header_of_git_are_read(tmp_path: Path, form: int) -> None:
    long = f"r/{'d' * 120}/{'f' * 200}"
    with tarfile.open(tmp_path / "packed", "w", format=form, pax_headers={"comment": "c" * 40}) as tar:
        for name, content in ((long, b"x"), ("r/provenance.json", json.dumps(SOUND).encode())):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    assert _provenance(tmp_path / "packed") == SOUND
    unpacked(tmp_path / "packed", tmp_path / "out")
    assert (tmp_path / "out" / long.removeprefix("r/")).read_bytes() == b"x"


def test_host_and_controller_have_the_same_limits() -> None:
    def code(module: ModuleType) -> str:
        return Path(str(module.__file__)).read_text().split('"""', 2)[2]

    assert code(rig_tar_headers) == code(tar_headers)


def test_the_first_of_a_release_is_read_before_what_is_wrong_behind_it(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(PROVENANCE + header(tarfile.XHDTYPE, 1 << 30))
    assert _provenance(tmp_path / "packed") == SOUND
