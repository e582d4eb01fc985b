"""rig_toolkit: whole, tried and noted down, or not there; what changes afterwards is seen."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import module, part
from tests.support.toolkit.parts import files, wheel

rig_toolkit = module("rig_toolkit")
state = part("rig_cuda_state")
Refused = part("rig_unpack").RefusedError
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="the trial links with a real g++")


def params(tmp_path: Path, data: bytes, **changes: Any) -> dict[str, Any]:
    incoming = tmp_path / "incoming.part"
    incoming.write_bytes(data)
    tmp_path.chmod(0o755)
    given = {
        "prefix": str(tmp_path / "cuda/13.0.88"),
        "id": "a" * 64,
        "version": "13.0.88",
        "source": "wheels",
        "parts": [
            {"name": "x==1", "kind": "wheel", "path": str(incoming), "sha256": hashlib.sha256(data).hexdigest()},
        ],
        "header_fix": True,
        "compiler": "g++",
        "architectures": ["120a-real", "89-real"],
        "user": "nobody",
    }
    return given | changes


@pytest.fixture(autouse=True)
def _plain_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial runs as whoever runs the tests: another user could not reach into the test's directory."""
    probe = part("rig_cuda_probe")
    run = probe.subprocess.run

    def plain(command: list[str], **named: Any) -> Any:
        at = command.index("--bounding-set=-all") + 1 if "--bounding-set=-all" in command else 0
        return run(command[at:], **named)

    monkeypatch.setattr(probe.shutil, "chown", lambda *_: None)
    monkeypatch.setattr(
        probe,
        "subprocess",
        type("Plain", (), {"run": staticmethod(plain), "CompletedProcess": probe.subprocess.CompletedProcess}),
    )


def install(tmp_path: Path, data: bytes | None = None, **changes: Any) -> Path:
    given = params(tmp_path, wheel(files("120a", "89")) if data is None else data, **changes)
    rig_toolkit._install(given, Path(given["prefix"]))
    return Path(given["prefix"])


@needs_compiler
def test_it_is_whole_with_a_manifest_and_its_parts_are_gone(tmp_path: Path) -> None:
    prefix = install(tmp_path)
    manifest = json.loads((prefix / "manifest.json").read_text())
    assert manifest["nvcc"].endswith("V13.0.88")
    assert manifest["header-fix"]["before"] != manifest["header-fix"]["after"]
    assert manifest["files"]["include/crt/math_functions.h"]["sha256"] == manifest["header-fix"]["after"]
    assert (prefix / "lib/stubs/libcuda.so").is_file()
    assert not (tmp_path / "incoming.part").exists()
    assert rig_toolkit.problems_of(str(prefix), "a" * 64, False) == []
    seen = state.look(str(prefix))
    assert (seen["wrong"], seen["files"]) == ([], len(manifest["files"]))
    assert "files" not in seen["manifest"]


@needs_compiler
def test_everything_that_changes_is_seen(tmp_path: Path) -> None:
    prefix = install(tmp_path)
    (prefix / "bin/nvcc").write_bytes(b"other")
    (prefix / "include/cuda.h").unlink()
    (prefix / "include/added.h").write_text("")
    (prefix / "lib/libcudart.so").unlink()
    (prefix / "bin").chmod(0o777)
    (prefix / "lib/libcudart.so.13").chmod(0o666)
    wrong = state.look(str(prefix))["wrong"]
    for words in (
        "its directory bin is open to others",
        "bin/nvcc was changed",
        "include/cuda.h is not there",
        "include/added.h was added",
        "lib/libcudart.so leads to nothing",
        "lib/libcudart.so.13 belongs to",
    ):
        assert any(words in line for line in wrong), (words, wrong)


@needs_compiler
def test_a_file_with_a_forged_time_is_found_by_a_deep_look_and_a_touched_one_is_no_difference(tmp_path: Path) -> None:
    prefix = install(tmp_path)
    (prefix / "bin/nvcc").touch()
    manifest, _ = state.read_manifest(str(prefix))
    assert state.differences(str(prefix), manifest) == []
    path = prefix / "include/cuda.h"
    path.write_bytes(b"planted")
    manifest["files"]["include/cuda.h"]["stat"] = part("rig_disk").identity(path)
    assert state.differences(str(prefix), manifest) == []
    assert state.differences(str(prefix), manifest, deep=True) == ["include/cuda.h was changed"]


@needs_compiler
def test_one_of_other_parts_is_replaced_in_one_step(tmp_path: Path) -> None:
    prefix = install(tmp_path)
    assert rig_toolkit.problems_of(str(prefix), "b" * 64, False) == ["it was made of other parts"]
    install(tmp_path, wheel({**files("120a", "89"), "include/new.h": b""}), id="b" * 64)
    assert rig_toolkit.problems_of(str(prefix), "b" * 64, False) == []
    assert (prefix / "include/new.h").exists()
    assert [path.name for path in prefix.parent.iterdir()] == ["13.0.88"]


@pytest.mark.parametrize(
    ("data", "changes", "why"),
    [
        (wheel({"include/cuda.h": b""}), {}, "hold no nvcc"),
        (wheel({**files("89"), "include/crt/math_functions.h": b"other"}), {}, "declares cospi 0 times"),
        (wheel({**files("89"), "bin/nvcc": b"#!/bin/sh\necho broken >&2; exit 7\n"}), {}, "broken"),
        (wheel(files("89")), {}, "there is no machine code for 120a"),
        (wheel(files("89", "120a", "75")), {}, "for 75, which nobody asked for"),
        (wheel(files("89", "120a")), {"compiler": "g++-3"}, "g++-3"),
        (wheel({"../out": b""}), {}, "part x==1 is refused"),
    ],
)
@needs_compiler
def test_what_fails_leaves_nothing_behind(tmp_path: Path, data: bytes, changes: dict[str, Any], why: str) -> None:
    with pytest.raises((Refused, OSError), match=why.replace("+", r"\+")):
        install(tmp_path, data, **changes)
    assert list((tmp_path / "cuda").iterdir()) == []


def test_a_part_that_is_another_is_thrown_away(tmp_path: Path) -> None:
    given = params(tmp_path, b"swapped")
    given["parts"][0]["sha256"] = "0" * 64
    with pytest.raises(Refused, match="expected 000"):
        rig_toolkit._install(given, Path(given["prefix"]))
    assert not (tmp_path / "incoming.part").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": {}, "links": [], "id": "x"}', "[" * 10_000])
def test_a_manifest_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    assert state.look(str(tmp_path))["wrong-count"] == 1


def test_a_link_in_the_place_of_a_toolkit_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert state.look(str(tmp_path / "link"))["type"] == "link"
    assert state.look(str(tmp_path / "none")) == {"type": "absent"}
