"""A finished release is packed on its host, fetched in pieces, and kept on the controller under its id.

The host is a local shell, and packs with the code that hosts run.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.module_utils import rig_release_tar
from ansible.module_utils.rig_release_files import problems_of
from ansible.module_utils.rig_unpack import RefusedError, unpack

from llamarig.converge.store.releases import Releases
from llamarig.converge.store.shelf import Shelf
from llamarig.errors import RigError
from tests.support.artifacts.onhost import load

RELEASE = "4df29be4f-0123456789ab"
WANTED = {"id": RELEASE, "inputs": {"commit": "4df29be4f", "targets": ["llama-server"]}}
PIECE = 4096


def made(folder: Path, **changes: Any) -> Path:
    """A release on a host."""
    release = folder / RELEASE
    (release / "bin").mkdir(parents=True)
    (release / "lib").mkdir()
    (release / "bin/llama-server").write_bytes(b"server" * 5000)
    (release / "bin/llama-server").chmod(0o755)
    (release / "lib/libllama.so.0").write_bytes(b"library")
    (release / "lib/libllama.so").symlink_to("libllama.so.0")
    names = ["bin/llama-server", "lib/libllama.so.0"]
    files = {name: hashlib.sha256((release / name).read_bytes()).hexdigest() for name in names}
    told = {"release": RELEASE, "inputs": WANTED["inputs"], "files": files} | changes
    (release / "provenance.json").write_text(json.dumps(told))
    return release


class Host:
    """Runs commands here; ``spoil`` may change what a command printed."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        rig_collect = load("action/rig_collect.py")
        rig_collect.PIECE = PIECE
        self.folder = folder
        self.release = made(folder / "releases", **changes)
        self.plugin = object.__new__(rig_collect.ActionModule)
        args = {"release": WANTED, "directory": str(folder)}
        self.plugin._task = SimpleNamespace(args=args, check_mode=False)
        self.plugin._low_level_execute_command = self.run
        self.plugin._execute_module = self.module
        self.pieces = 0
        self.spoil: Callable[[str], str] = lambda said: said

    def run(self, command: str) -> dict[str, Any]:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        said = done.stdout
        if command.startswith("dd "):
            self.pieces += 1
            said = self.spoil(said)
        return {"rc": done.returncode, "stdout": said, "stderr": done.stderr}

    def module(self, name: str, asked: dict[str, Any], **_: Any) -> dict[str, Any]:
        assert (name, asked["state"]) == ("rig_release", "packed")
        try:
            sha256, size = rig_release_tar.pack(self.release, Path(asked["archive"]))
        except rig_release_tar.RefusedError as error:
            return {"failed": True, "msg": str(error)}
        return {"sha256": sha256, "size": size}

    def collect(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        monkeypatch.setattr("ansible.plugins.action.ActionBase.run", lambda *_: {})
        answer: dict[str, Any] = self.plugin.run(None, {"inventory_hostname": "maker"})
        return answer


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Releases:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Releases(Shelf.default())


def left(store: Releases) -> list[str]:
    """Files of the shelf under their hash."""
    return [path.name for path in store.shelf.root.iterdir() if path.is_file()]


def test_a_release_is_fetched_once_and_found_by_its_id(
    store: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path)
    told = host.collect(monkeypatch)
    held = store.get(RELEASE)
    assert held is not None
    assert told == {"changed": True, "sha256": held.sha256, "size": held.size}
    assert held.origin == "maker"
    packed = store.file({**WANTED, "artifact": told})
    assert hashlib.sha256(packed.read_bytes()).hexdigest() == held.sha256
    with tarfile.open(packed) as tar:
        assert {(member.uid, member.gid, member.mtime) for member in tar} == {(0, 0, 0)}
    assert list(tmp_path.glob("*.tar")) == []
    asked = host.pieces
    assert host.collect(monkeypatch)["changed"] is False
    assert host.pieces == asked


def test_a_cut_transfer_goes_on_behind_what_has_arrived(
    store: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path)

    def cut(said: str) -> str:
        if host.pieces > 3:
            raise AnsibleConnectionFailure("cut")
        return said

    host.spoil = cut
    with pytest.raises(AnsibleConnectionFailure):
        host.collect(monkeypatch)
    host.spoil, before = lambda said: said, host.pieces
    size = host.collect(monkeypatch)["size"]
    assert host.pieces - before == -(-size // PIECE) - 3
    assert store.get(RELEASE) is not None


def test_what_is_changed_on_the_way_is_not_kept(
    store: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path)
    host.spoil = lambda said: ("B" if said[0] != "B" else "C") + said[1:]
    with pytest.raises(AnsibleActionFail, match="nothing was kept"):
        host.collect(monkeypatch)
    host.spoil = lambda said: said[:-4]
    with pytest.raises(AnsibleActionFail, match="instead of"):
        host.collect(monkeypatch)
    assert store.get(RELEASE) is None
    assert left(store) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"release": "4df29be4f-ffffffffffff"}, "it is another release"),
        ({"inputs": {"commit": "another"}}, "built from other inputs"),
    ],
)
def test_the_release_of_other_inputs_is_not_kept(
    changes: dict[str, Any], said: str, store: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Host(tmp_path, **changes).collect(monkeypatch)
    assert told["failed"] is True
    assert said in told["msg"]
    assert store.get(RELEASE) is None
    assert left(store) == []


def test_a_release_that_is_not_whole_is_not_packed(
    store: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path)
    (host.release / "bin/llama-server").write_bytes(b"another")
    told = host.collect(monkeypatch)
    assert "bin/llama-server: the content differs" in told["msg"]
    assert host.pieces == 0
    assert store.get(RELEASE) is None


def test_a_copy_that_was_damaged_is_found_and_forgotten(
    store: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Host(tmp_path).collect(monkeypatch)
    path = store.shelf.path(told["sha256"])
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    with pytest.raises(RigError, match="gone or damaged"):
        store.file({**WANTED, "artifact": told})
    assert store.get(RELEASE) is None


def test_what_is_no_tar_of_a_release_is_not_kept(store: Releases, tmp_path: Path) -> None:
    for content, said in ((b"junk" * 400, "not a whole tar"), (_empty(), "no readable provenance.json")):
        packed = tmp_path / "packed"
        packed.write_bytes(content)
        with pytest.raises(RigError, match=said):
            store.add(packed, hashlib.sha256(content).hexdigest(), WANTED, "maker", "now")
        assert not packed.exists()


@pytest.mark.parametrize("typeflag", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_tar_of_endless_headers_is_refused_and_not_kept(store: Releases, tmp_path: Path, typeflag: bytes) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(headers(typeflag))
    with pytest.raises(RigError, match="not a whole tar"):
        store.add(packed, "0" * 64, WANTED, "maker", "now")
    assert not packed.exists()
    packed.write_bytes(headers(typeflag))
    with packed.open("rb") as file, pytest.raises(RefusedError, match="not a whole tar"):
        unpack(file, tmp_path / "tree")


@pytest.mark.parametrize(
    ("name", "said"), [("/etc/hostname", "no file of a release"), ("a\0b", "no file of a release")]
)
def test_a_provenance_that_names_files_elsewhere_is_refused(tmp_path: Path, name: str, said: str) -> None:
    release = made(tmp_path)
    assert problems_of(release) == []
    told = json.loads((release / "provenance.json").read_bytes())
    told["files"][name] = "0" * 64
    (release / "provenance.json").write_text(json.dumps(told))
    assert [said in each for each in problems_of(release)] == [True]


def test_a_compressed_release_is_not_unpacked(tmp_path: Path) -> None:
    content = gzip.compress(_empty())
    (tmp_path / "packed").write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    with pytest.raises(RefusedError, match="not a whole tar"):
        rig_release_tar.unpack_release(tmp_path / "packed", sha256, len(content), {}, tmp_path / "tree")


def test_links_in_a_ring_lead_nowhere(tmp_path: Path) -> None:
    release = made(tmp_path)
    for one, other in (("a", "b"), ("b", "a")):
        (release / "lib" / one).symlink_to(other)
    assert problems_of(release) == ["lib/a: leads nowhere", "lib/b: leads nowhere"]


@pytest.mark.parametrize("changes", [{"sha256": "/etc/hostname"}, {"size": float("inf")}, {"deep": True}])
def test_a_note_that_llamarig_did_not_write_is_nothing_held(
    store: Releases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    Host(tmp_path).collect(monkeypatch)
    note = store.note(RELEASE)
    sound = json.loads(note.read_text())
    assert store.get(RELEASE) is not None
    if "sha256" in changes:
        changes["size"] = Path(changes["sha256"]).stat().st_size
    note.write_text("[" * 100_000 if "deep" in changes else json.dumps(sound | changes))
    assert store.get(RELEASE) is None


def headers(typeflag: bytes) -> bytes:
    """More headers before one file than any reader follows."""
    body = b"r/a\0" if typeflag == tarfile.GNUTYPE_LONGNAME else b"10 path=r\n"
    header = tarfile.TarInfo("x")
    header.type, header.size = typeflag, len(body)
    one = header.tobuf(tarfile.GNU_FORMAT) + body.ljust(512, b"\0")
    return one * 3000 + tarfile.TarInfo("r/f").tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def test_an_id_that_would_leave_the_index_is_refused(store: Releases) -> None:
    with pytest.raises(RigError, match="no release id"):
        store.get("../../etc/passwd")


def _empty() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a"))
    return buffer.getvalue()
