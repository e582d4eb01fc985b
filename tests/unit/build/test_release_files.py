"""A build becomes a release: real files and soname links, hashed; what differs later is found."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import rig_release
from ansible.module_utils import rig_release_files


def _build(tmp_path: Path) -> Path:
    out = tmp_path / "out" / "bin"
    out.mkdir(parents=True)
    (out / "llama-server").write_bytes(b"program")
    (out / "libllama.so.0.1.0").write_bytes(b"library")
    (out / "libllama.so.0").symlink_to("libllama.so.0.1.0")
    (out / "libllama.so").symlink_to("libllama.so.0")
    (out / "llama-tests").write_bytes(b"not wanted")
    return tmp_path / "out"


def release(tmp_path: Path) -> Path:
    target = tmp_path / "id"
    target.mkdir()
    names = rig_release_files.copy_build(_build(tmp_path), ["llama-server"], target)
    files = {name: hashlib.sha256((target / name).read_bytes()).hexdigest() for name in names}
    (target / "provenance.json").write_text(json.dumps({"files": files}))
    return target


def test_programs_libraries_and_links_are_copied(tmp_path: Path) -> None:
    made = release(tmp_path)
    found = sorted(str(path.relative_to(made)) for path in made.rglob("*") if not path.is_dir())
    assert found == [
        "bin/llama-server",
        "lib/libllama.so",
        "lib/libllama.so.0",
        "lib/libllama.so.0.1.0",
        "provenance.json",
    ]
    assert str((made / "lib/libllama.so").readlink()) == "libllama.so.0"
    assert rig_release_files.problems_of(made) == []


def test_every_kind_of_damage_is_found(tmp_path: Path) -> None:
    made = release(tmp_path)
    server = made / "bin/llama-server"
    server.write_bytes(b"swapped")
    assert rig_release_files.problems_of(made) == ["bin/llama-server: the content differs"]
    server.write_bytes(b"program")
    server.chmod(0o777)
    assert rig_release_files.problems_of(made) == ["bin/llama-server: others than root may write it"]
    server.unlink()
    assert rig_release_files.problems_of(made) == ["bin/llama-server: No such file or directory"]
    server.symlink_to("/bin/true")
    assert "bin/llama-server: Too many levels of symbolic links" in rig_release_files.problems_of(made)


def test_a_file_or_link_too_many_is_found(tmp_path: Path) -> None:
    made = release(tmp_path)
    (made / "lib/libggml-evil.so").write_bytes(b"x")
    assert rig_release_files.problems_of(made) == ["lib/libggml-evil.so: does not belong to the release"]
    (made / "lib/libggml-evil.so").unlink()
    (made / "lib/libggml-evil.so").symlink_to("/tmp/evil.so")
    assert rig_release_files.problems_of(made) == ["lib/libggml-evil.so: leads out of the release"]


def test_a_missing_soname_link_is_found(tmp_path: Path) -> None:
    made = release(tmp_path)
    (made / "lib/libllama.so.0").unlink()
    assert rig_release_files.problems_of(made) == ["lib/libllama.so: leads nowhere"]


def test_without_provenance_nothing_is_trusted(tmp_path: Path) -> None:
    made = release(tmp_path)
    (made / "provenance.json").write_text("[]")
    assert rig_release_files.problems_of(made)[0].startswith("provenance.json cannot be read")


@pytest.mark.parametrize(("force", "content"), [(False, b"tampered"), (True, b"program")])
def test_only_a_forced_build_replaces_one_whose_provenance_was_changed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: bool, content: bytes
) -> None:
    made = release(tmp_path)
    (made / "bin/llama-server").write_bytes(b"tampered")
    listed = json.loads((made / "provenance.json").read_text())
    listed["files"]["bin/llama-server"] = hashlib.sha256(b"tampered").hexdigest()
    (made / "provenance.json").write_text(json.dumps(listed))
    monkeypatch.setattr(rig_release, "check", lambda *_: True)
    params = {
        "state": "present",
        "id": "id",
        "releases": str(tmp_path),
        "build": str(tmp_path / "out"),
        "programs": ["llama-server"],
        "provenance": {},
        "patches": [],
        "force": force,
        "toolkit": None,
        "label": "x",
        "user": "nobody",
        "cuda": False,
    }
    told = rig_release._run(SimpleNamespace(params=params, check_mode=False))
    assert told["changed"] is force
    assert (made / "bin/llama-server").read_bytes() == content
