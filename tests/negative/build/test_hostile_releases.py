"""Packed releases that are not what the controller holds, or would reach out: refused, and the host stays as it was."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rig_release
from ansible.module_utils import rig_release_tar
from ansible.module_utils.rig_unpack import RefusedError

RELEASE = "4df29be4f-0123456789ab"
INPUTS = {"commit": "4df29be4f"}
Member = tuple[tarfile.TarInfo, bytes]


def file(name: str, content: bytes = b"", mode: int = 0o644, **more: Any) -> Member:
    info = tarfile.TarInfo(f"{RELEASE}/{name}" if not name.startswith("/") else name)
    info.size, info.mode = len(content), mode
    for key, value in more.items():
        setattr(info, key, value)
    return info, content


def members(**told: Any) -> list[Member]:
    """Those of a sound release; ``told`` changes its provenance."""
    server = b"server"
    provenance = {
        "release": RELEASE,
        "label": "label",
        "inputs": INPUTS,
        "files": {"bin/llama-server": hashlib.sha256(server).hexdigest()},
    } | told
    return [
        file("bin/llama-server", server, 0o755),
        file("lib", type=tarfile.DIRTYPE),
        file("provenance.json", json.dumps(provenance).encode()),
    ]


def packed(folder: Path, content: list[Member]) -> Path:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info, data in content:
            tar.addfile(info, io.BytesIO(data))
    (folder / "packed").write_bytes(buffer.getvalue())
    return folder / "packed"


def receive(folder: Path, archive: Path, **changes: Any) -> dict[str, Any]:
    data = archive.read_bytes()
    params = {
        "state": "received",
        "id": RELEASE,
        "releases": str(folder / "releases"),
        "archive": str(archive),
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "inputs": INPUTS,
        "label": "label",
        "user": "nobody",
        "cuda": False,
        "toolkit": None,
        "force": True,
    } | changes
    told: dict[str, Any] = rig_release._run(SimpleNamespace(params=params, check_mode=False))
    return told


@pytest.fixture(autouse=True)
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs here are no programs; who asks them is tested elsewhere."""
    monkeypatch.setattr(rig_release, "check", lambda *_: True)


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The releases of a host that has a former one of that id."""
    (tmp_path / "releases" / RELEASE).mkdir(parents=True)
    (tmp_path / "releases" / RELEASE / "mark").write_text("former")
    return tmp_path


def untouched(folder: Path) -> bool:
    found = {str(path.relative_to(folder / "releases")) for path in (folder / "releases").rglob("*")}
    return found == {RELEASE, f"{RELEASE}/mark"}


def test_a_sound_one_is_taken_in(there: Path) -> None:
    told = receive(there, packed(there, members()))
    assert told == {"changed": True, "intact": True, "problems": told["problems"], "asked": True}
    release = there / "releases" / RELEASE
    assert sorted(path.name for path in release.iterdir()) == ["bin", "lib", "provenance.json"]
    assert (release / "bin/llama-server").stat().st_mode & 0o777 == 0o755


def damaged(archive: Path, change: Callable[[bytes], bytes]) -> dict[str, Any]:
    """What the controller knows of the sound file, which is then changed."""
    data = archive.read_bytes()
    archive.write_bytes(change(data))
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data[:-1024], "has 9216 bytes, expected 10240"),
        (lambda data: data.replace(b"server", b"sorver", 1), "the controller's is"),
        (lambda data: data.replace(b"label", b"lapel", 1), "the controller's is"),
    ],
    ids=["truncated", "tampered", "another label"],
)
def test_what_the_controller_does_not_hold_is_refused(change: Callable[[bytes], bytes], said: str, there: Path) -> None:
    archive = packed(there, members())
    known = damaged(archive, change)
    with pytest.raises(RefusedError, match=said):
        receive(there, archive, **known)
    assert untouched(there)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (members(release="4df29be4f-ffffffffffff"), "another release"),
        (members(inputs={"commit": "f" * 9}), "another inputs"),
        (members(label="other"), "another label"),
        (members(files={"bin/llama-server": "0" * 64}), "bin/llama-server: the content differs"),
        (members(files={}), "bin/llama-server: does not belong to the release"),
        (members()[:2], "lacks provenance.json"),
        (members()[::2], "lacks lib"),
        ([*members()[:2], file("provenance.json", b"{}")], "provenance.json cannot be read"),
        ([*members(), file("lib/libx.so.1", type=tarfile.SYMTYPE, linkname="/etc/passwd")], "outside the tree"),
        ([*members(), file("lib/libx.so.1", type=tarfile.SYMTYPE, linkname="../../../x")], "outside the tree"),
        (
            [*members(), file("lib/libx.so.1", type=tarfile.LNKTYPE, linkname=f"{RELEASE}/bin/llama-server")],
            "hard link",
        ),
        ([*members(), file("/etc/cron.d/x", b"x")], "absolute path"),
        ([*members(), file("../x", b"x")], "leaves the archive"),
        ([*members(), file("bin/sudo", b"x", 0o4755)], "setuid"),
        ([*members(), file("lib/null", type=tarfile.CHRTYPE)], "special file"),
        ([*members(), file("bin/llama-server", b"x")], "is there twice"),
        ([*members(), file("etc/x", b"x")], "what no release has: etc"),
        ([*members(), file("lib/libx.so", b"x")], "does not belong to the release"),
    ],
)
def test_what_is_no_release_of_the_wanted_inputs_is_refused(content: list[Member], said: str, there: Path) -> None:
    with pytest.raises(RefusedError, match=said):
        receive(there, packed(there, content))
    assert untouched(there)


def test_one_that_unfolds_to_too_much_is_refused(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig_release_tar, "LIMITS", rig_release_tar.Limits(files=10, file_bytes=3, total_bytes=100))
    with pytest.raises(RefusedError, match="has 6 bytes, allowed are 3"):
        receive(there, packed(there, members()))
    assert untouched(there)


def test_one_that_does_not_show_its_label_is_refused(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise RefusedError("it shows another label")

    monkeypatch.setattr(rig_release, "check", refuse)
    with pytest.raises(RefusedError, match="another label"):
        receive(there, packed(there, members()))
    assert untouched(there)


def test_an_archive_that_is_a_link_is_not_followed(there: Path) -> None:
    archive = packed(there, members())
    known = damaged(archive, lambda data: data)
    archive.rename(there / "elsewhere")
    archive.symlink_to("elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        receive(there, archive, **known)
    assert untouched(there)
