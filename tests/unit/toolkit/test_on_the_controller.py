"""Where the parts of a toolkit come from: an index, a list of archives, a file, a directory; each by its hash."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from llamarig.converge import toolkit
from llamarig.converge.store import index
from llamarig.converge.store.pack import pack_tree
from llamarig.converge.store.shelf import Shelf, silent
from llamarig.errors import RigError
from tests.support.standins.index import FakeIndex
from tests.support.standins.project import lock_project, spec, write_project
from tests.support.toolkit.parts import files, runfile, tar, wheel
from tests.unit.lock.test_lock_toolkit import CARD, ENGINE, MODELS

WHEEL = wheel(files("89"))
NAME = "nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
FOREIGN = "nvidia_cuda_nvcc-13.0.88-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wanted(source: str, location: Path | str = "", **keys: Any) -> dict[str, Any]:
    given = {"version": "12.9.86", "source": source, "location": str(location), "sha256": "", "wheels": {}}
    return given | keys


def found(tmp_path: Path, given: dict[str, Any]) -> list[tuple[str, str, bytes]]:
    shelf = Shelf(tmp_path / "shelf")
    parts = toolkit.parts(given, tmp_path, silent, shelf)
    assert all(part.artifact.sha256 == digest(part.artifact.path.read_bytes()) for part in parts)
    return [(part.name, part.kind, part.artifact.path.read_bytes()) for part in parts]


def listed(folder: Path, **changes: Any) -> tuple[Path, str]:
    """A list of archives with three components and its archives beside it, composed in NVIDIA's form."""
    data: dict[str, Any] = {"release_label": "12.9.1"}
    for name in ("cuda_nvcc", "cuda_cudart", "libcublas", "cuda_gdb"):
        archive = tar({f"include/{name}.h": b"x"}, f"{name}-archive")
        path = folder / name / "linux-x86_64" / f"{name}.tar.xz"
        path.parent.mkdir(parents=True)
        path.write_bytes(archive)
        place = {"relative_path": str(path.relative_to(folder)), "sha256": digest(archive)}
        data[name] = {"version": "12.9.86", "linux-x86_64": place}
    data |= changes
    text = json.dumps(data).encode()
    (folder / "redistrib_12.9.1.json").write_bytes(text)
    return folder / "redistrib_12.9.1.json", digest(text)


def test_wheels_come_from_the_index_for_the_hosts_platform(tmp_path: Path, served: FakeIndex) -> None:
    served.files = {FOREIGN: b"other machine", NAME: WHEEL, NAME.replace("13.0.88", "13.0.48"): b"other version"}
    given = wanted("wheels", wheels={"nvidia-cuda-nvcc==13.0.88": digest(WHEEL)})
    assert found(tmp_path, given) == [("nvidia-cuda-nvcc==13.0.88", "wheel", WHEEL)]
    # A second time they are on the shelf, and nobody is asked.
    served.files = {}
    assert found(tmp_path, given)[0][2] == WHEEL


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        (NAME, True),
        (FOREIGN, False),
        ("nvidia_cuda_nvcc-13.0.88-py3-none-win_amd64.whl", False),
        ("nvidia_cuda_nvcc-13.0.88-py3-none-any.whl", True),
        ("nvidia_cuda_nvcc-13.0.88-py3-none-musllinux_1_2_x86_64.whl", False),
    ],
)
def test_a_wheel_is_one_for_linux_on_x86_64(name: str, fits: bool) -> None:
    assert index.fits(name, "nvidia-cuda-nvcc", "13.0.88", "wheel") is fits


def test_a_directory_holds_wheels(tmp_path: Path) -> None:
    (tmp_path / "offline").mkdir()
    (tmp_path / "offline" / NAME).write_bytes(WHEEL)
    given = wanted("directory", "offline", wheels={"nvidia-cuda-nvcc==13.0.88": digest(WHEEL)})
    assert found(tmp_path, given) == [("nvidia-cuda-nvcc==13.0.88", "wheel", WHEEL)]
    lacking = wanted("directory", "offline", wheels={"nvidia-nvvm==13.0.88": digest(WHEEL[1:])})
    with pytest.raises(RigError, match="holds no wheel of nvidia-nvvm"):
        found(tmp_path, lacking)


def test_a_list_pins_the_archives_that_the_build_needs(tmp_path: Path) -> None:
    path, pin = listed(tmp_path / "redist")
    names = [(name, kind) for name, kind, _ in found(tmp_path, wanted("archive", path, sha256=pin))]
    assert names == [(f"{name}.tar.xz", "archive") for name in ("cuda_nvcc", "cuda_cudart", "libcublas")]
    names_offline = [name for name, _, _ in found(tmp_path, wanted("directory", path.parent, sha256=pin))]
    assert names_offline == [name for name, _ in names]


def test_archives_right_beside_the_list_do_as_well(tmp_path: Path) -> None:
    path, pin = listed(tmp_path / "redist")
    for archive in list(path.parent.rglob("*.tar.xz")):
        archive.rename(path.parent / archive.name)
    assert len(found(tmp_path, wanted("directory", path.parent, sha256=pin))) == 3


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cuda_nvcc": {"linux-x86_64": {"relative_path": "../../etc/shadow", "sha256": "a" * 64}}}, "it may not"),
        ({"cuda_nvcc": {"linux-x86_64": {"relative_path": "https://h/x", "sha256": "a" * 64}}}, "it may not"),
        ({"cuda_nvcc": {"linux-x86_64": {"relative_path": "x", "sha256": "short"}}}, "it may not"),
        ({"cuda_nvcc": {"linux-sbsa": {}}}, "lacks a part"),
        ({"cuda_nvcc": []}, "lacks a part"),
        ({"cuda_nvcc": None}, "this is no list"),
    ],
)
def test_a_list_that_names_what_it_may_not_is_refused(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    path, pin = listed(tmp_path / "redist", **changes)
    with pytest.raises(RigError, match=why):
        found(tmp_path, wanted("archive", path, sha256=pin))


@pytest.mark.parametrize("source", ["archive", "runfile"])
def test_a_single_file_is_taken_by_its_hash(tmp_path: Path, source: str) -> None:
    data = runfile(files("89")) if source == "runfile" else tar(files("89"), "toolkit")
    (tmp_path / "cuda.bin").write_bytes(data)
    assert found(tmp_path, wanted(source, "cuda.bin", sha256=digest(data))) == [("cuda.bin", source, data)]
    (tmp_path / "other.bin").write_bytes(data + b"x")
    with pytest.raises(RigError, match="not the one that the spec pins"):
        found(tmp_path / "apart", wanted(source, tmp_path / "other.bin", sha256="0" * 64))


@pytest.mark.parametrize("given", [wanted("archive", "cuda.bin"), wanted("runfile", "c.run", sha256="unlocked")])
def test_what_is_not_pinned_is_not_used(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(RigError, match="its hash is not known yet"):
        found(tmp_path, given)


def prepared(folder: Path) -> Path:
    for name, content in files("89").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "lib64").symlink_to("lib")
    return folder


def test_a_prepared_tree_is_pinned_by_what_is_in_it_alone(tmp_path: Path) -> None:
    one, other = prepared(tmp_path / "one"), prepared(tmp_path / "other")
    os.utime(other / "bin/nvcc", (1, 1))
    (other / "include/cuda.h").chmod(0o600)
    (other / "lib/again.so.13").hardlink_to(other / "lib/libcudart.so.13")
    (one / "lib/again.so.13").write_bytes((one / "lib/libcudart.so.13").read_bytes())
    first, second = (pack_tree(folder, tmp_path / f"{folder.name}.tar").read_bytes() for folder in (one, other))
    assert first == second
    given = wanted("directory", one, sha256=digest(first))
    assert found(tmp_path, given) == [("tree", "tree", first)]
    (one / "bin/nvcc").write_bytes(b"changed")
    with pytest.raises(RigError, match="not the one that the spec pins"):
        found(tmp_path / "apart", given)


def test_a_tree_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    folder = prepared(tmp_path / "tree")
    os.mkfifo(folder / "lib/pipe")
    with pytest.raises(RigError, match="files, directories and links only"):
        pack_tree(folder, tmp_path / "x.tar")


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RigError, match="neither a toolkit nor the list"):
        found(tmp_path, wanted("directory", "empty", sha256="a" * 64))


def locked(root: Path, cuda: str) -> dict[str, Any]:
    """What lock writes for a ``cuda`` section, by key."""
    text = spec(MODELS, ENGINE, f"{CARD}cuda: {{{cuda}}}\n").replace("model: smol,", "model: smol, gpu: upper,")
    write_project(root, text)
    work = lock_project(root).hosts[0]
    problems = [str(problem) for problem in work.problems if "cuda" in problem.where]
    assert problems == []
    return {change.key: change.new for change in work.changes if change.key.startswith("cuda")}


def test_lock_pins_the_wheels_by_what_the_index_promises(tmp_path: Path, served: FakeIndex) -> None:
    wheels = {
        "nvidia-cuda-nvcc": "13.0.88",
        "nvidia-nvvm": "13.0.88",
        "nvidia-cuda-crt": "13.0.88",
        "nvidia-cuda-runtime": "13.0.96",
        "nvidia-cuda-cccl": "13.0.85",
        "nvidia-cublas": "13.1.0.3",
    }
    for name, version in wheels.items():
        served.files[f"{name.replace('-', '_')}-{version}-py3-none-manylinux2014_x86_64.whl"] = name.encode()
    open_ = ", ".join(f"{name}=={version}: unlocked" for name, version in wheels.items())
    found_ = locked(tmp_path, f"source: wheels, version: 13.0.88, wheels: {{{open_}}}")
    assert sorted(found_.values()) == sorted(digest(name.encode()) for name in wheels)


def test_lock_pins_a_prepared_tree_and_a_list_in_a_directory(tmp_path: Path) -> None:
    folder = prepared(tmp_path / "tree")
    pin = digest(pack_tree(folder, tmp_path / "x.tar").read_bytes())
    assert locked(tmp_path, "source: directory, version: 12.9.86, location: tree, sha256: unlocked") == {
        "cuda.sha256": pin
    }
    _, listed_pin = listed(tmp_path / "redist")
    assert locked(tmp_path, "source: directory, version: 12.9.86, location: redist, sha256: unlocked") == {
        "cuda.sha256": listed_pin
    }
