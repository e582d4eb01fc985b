"""What a host builds from goes through a mirror: source, patches and the parts of a toolkit, each by its hash.

Collected where everything lies; found again at the site, where the cache is empty and nothing lies but the mirror.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from llamarig.converge import artifacts, toolkit
from llamarig.converge.mirror.content import collect_content
from llamarig.converge.mirror.place import Place
from llamarig.converge.store.shelf import Shelf, silent
from llamarig.errors import RigError
from tests.support.artifacts import patches
from tests.support.standins.index import FakeIndex
from tests.support.toolkit.parts import files, wheel
from tests.unit.toolkit.conftest import served
from tests.unit.toolkit.test_on_the_controller import NAME, listed

__all__ = ["served"]

SOURCE, PATCH, WHEEL = b"an archive of the engine", patches.EXACT.encode(), wheel(files("89"))
NVCC = "nvidia-cuda-nvcc==13.0.88"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Both:
    """Where is collected, and where is built; ``enter`` makes one the place where llamarig runs."""

    mirror: Path
    project: Path
    site: Path
    enter: Callable[[str], None]

    def collect(self, wanted: dict[str, Any]) -> Place:
        with Place.opened(self.mirror) as place:
            collect_content(place, wanted, self.project, silent)
            place.save()
        return place

    def leave(self) -> Shelf:
        """Go to the site; nothing of the project's files is there, and the cache is another, empty one."""
        shutil.rmtree(self.project)
        self.enter("site-cache")
        shelf = Shelf.default()
        assert not shelf.root.exists()
        return shelf.with_mirror(self.mirror)


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    def enter(name: str) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))

    enter("cache")
    project, site = tmp_path / "project", tmp_path / "site"
    (project / "patches").mkdir(parents=True)
    (project / "wheels").mkdir()
    site.mkdir()
    (project / "e.tar.gz").write_bytes(SOURCE)
    (project / "patches/speed.patch").write_bytes(PATCH)
    (project / "wheels" / NAME).write_bytes(WHEEL)
    return Both(tmp_path / "m", project, site, enter)


def parts(source: str = "directory", location: str = "wheels", sha256: str = "", **pins: str) -> dict[str, Any]:
    wheels = {NVCC: pins["wheel"]} if pins else {}
    return {"version": "13.0.88", "source": source, "location": location, "sha256": sha256, "wheels": wheels}


def wanted(given: dict[str, Any] | None = None, **changed: str) -> dict[str, Any]:
    pins = {"source": digest(SOURCE), "patch": digest(PATCH)} | changed
    release = {
        "id": "r-1",
        "commit": "1" * 40,
        "source": {"kind": "archive", "ref": "e.tar.gz", "sha256": pins["source"], "subdir": ""},
        "patches": [{"name": "speed.patch", "sha256": pins["patch"], "build_system": False}],
        "artifact": None,
    }
    return {"host": "demo", "release": release, "toolkit": given, "models": []}


def test_source_patch_and_wheel_are_found_at_the_site(both: Both) -> None:
    needed = wanted(parts(wheel=digest(WHEEL)))
    place = both.collect(needed)
    kinds = {path: (entry.kind, entry.name, entry.hosts) for path, entry in place.manifest.files.items()}
    assert kinds == {
        f"sha256/{digest(SOURCE)}": ("source", "engine source e.tar.gz", {"demo"}),
        f"sha256/{digest(PATCH)}": ("patch", "patch speed.patch", {"demo"}),
        f"sha256/{digest(WHEEL)}": ("toolkit", NVCC, {"demo"}),
    }
    assert both.collect(needed).added == []
    shelf = both.leave()
    found = artifacts.ensure(needed, both.site, silent, shelf)
    assert {sha256: path.read_bytes() for sha256, path in found.items()} == {
        digest(SOURCE): SOURCE,
        digest(PATCH): PATCH,
    }
    [part] = toolkit.parts(needed["toolkit"], both.site, silent, shelf)
    assert (part.name, part.kind, part.artifact.path.read_bytes()) == (NVCC, "wheel", WHEEL)
    everything = [*found.values(), part.artifact.path]
    assert all(path.parent == both.mirror / "sha256" for path in everything)


def test_without_the_mirror_none_of_it_is_there(both: Both) -> None:
    needed = wanted(parts(wheel=digest(WHEEL)))
    both.collect(needed)
    both.leave()
    with pytest.raises(RigError, match="no such file on the controller"):
        artifacts.ensure(needed, both.site)
    with pytest.raises(RigError, match="the patch is not in the project"):
        artifacts.patch(needed["release"]["patches"][0], both.site)
    with pytest.raises(RigError, match="holds no wheel of nvidia-cuda-nvcc"):
        toolkit.parts(needed["toolkit"], both.site)


def test_a_wheel_of_an_index_is_fetched_once_and_never_at_the_site(both: Both, served: FakeIndex) -> None:
    served.files = {NAME: WHEEL}
    needed = wanted(parts("wheels", "", wheel=digest(WHEEL)))
    assert f"sha256/{digest(WHEEL)}" in both.collect(needed).added
    served.files = {}
    assert both.collect(needed).added == []
    shelf = both.leave()
    [part] = toolkit.parts(needed["toolkit"], both.site, silent, shelf)
    assert part.artifact.path == both.mirror / "sha256" / digest(WHEEL)


def test_a_list_comes_along_with_the_archives_that_it_pins(both: Both) -> None:
    address, pin = listed(both.project / "redist")
    where = str(address.relative_to(both.project))
    needed = wanted(parts("archive", where, pin))
    place = both.collect(needed)
    assert len(place.added) == len(set(place.added)) == 6
    names = sorted(entry.name for entry in place.manifest.files.values() if entry.kind == "toolkit")
    assert names == ["CUDA 13.0.88", "cuda_cudart.tar.xz", "cuda_nvcc.tar.xz", "libcublas.tar.xz"]
    shelf = both.leave()
    found = toolkit.parts(needed["toolkit"], both.site, silent, shelf)
    assert len(found) == 3
    assert all(part.artifact.path.parent == both.mirror / "sha256" for part in found)


@pytest.mark.parametrize("wrong", ["source", "patch", "wheel"])
def test_what_is_not_as_pinned_is_refused_and_not_kept(both: Both, wrong: str) -> None:
    pins = {"source": digest(SOURCE), "patch": digest(PATCH), "wheel": digest(WHEEL)}
    pins[wrong] = digest(b"what the spec means")
    needed = wanted(parts(wheel=pins["wheel"]), source=pins["source"], patch=pins["patch"])
    with pytest.raises(RigError, match="the content is not the one that the spec pins"):
        both.collect(needed)
    held = {path.name for path in (both.mirror / "sha256").glob("*") if path.is_file()}
    # In the order in which they are collected: what came before the wrong one stays.
    before = {"source": [], "patch": [SOURCE], "wheel": [SOURCE, PATCH]}[wrong]
    assert held == {digest(data) for data in before}
    assert pins[wrong] not in (both.mirror / "manifest.json").read_text()


def test_an_installer_that_is_its_own_pin_is_told_once(both: Both) -> None:
    (both.project / "cuda.run").write_bytes(b"an installer")
    pin = digest(b"an installer")
    place = both.collect(wanted(parts("runfile", "cuda.run", pin)))
    assert place.added.count(f"sha256/{pin}") == 1
    assert place.manifest.files[f"sha256/{pin}"].name == "CUDA 13.0.88"


def test_what_is_not_pinned_at_all_is_refused(both: Both) -> None:
    with pytest.raises(RigError, match="its hash is not known yet"):
        both.collect(wanted(patch="unlocked"))
    with pytest.raises(RigError, match="its hash is not known yet"):
        both.collect(wanted(parts(wheel="unlocked")))


def test_a_patch_that_may_not_be_built_is_not_collected(both: Both) -> None:
    data = patches.BUILD.encode()
    (both.project / "patches/speed.patch").write_bytes(data)
    with pytest.raises(RigError, match="changes how the build runs"):
        both.collect(wanted(patch=digest(data)))
    assert json.loads((both.mirror / "manifest.json").read_text())["files"] == {}
