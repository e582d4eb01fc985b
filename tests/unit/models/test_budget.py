"""The disks are asked before anything is touched, and what is there already is not counted twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rig_budget

MIB = 1 << 20


def _params(tmp_path: Path, size: int = 100 * MIB) -> dict[str, Any]:
    return {
        "release": {"id": "abc"},
        "models": [
            {"sha256": "f" * 64, "size": size, "path": str(tmp_path / "models/sha256/f"), "links": ["/m/big.gguf"]}
        ],
        "releases": str(tmp_path / "releases"),
        "build_root": str(tmp_path / "build"),
        "build_mib": 1000,
        "release_mib": 100,
    }


def test_everything_that_is_missing_is_counted_by_file_system(tmp_path: Path) -> None:
    (found,) = rig_budget.budget(rig_budget.needs(_params(tmp_path)), reserve=0)
    assert found["needed-mib"] == pytest.approx(1200.0)
    assert found["for"] == ["source and build 1,000 MiB", "release abc 100 MiB", "model big.gguf 100 MiB"]
    assert found["fits"]


def test_what_is_there_is_not_counted(tmp_path: Path) -> None:
    params = _params(tmp_path, size=10)
    (tmp_path / "releases/abc").mkdir(parents=True)
    (tmp_path / "releases/abc/provenance.json").touch()
    (tmp_path / "models/sha256").mkdir(parents=True)
    (tmp_path / "models/sha256/f").write_bytes(bytes(10))
    assert rig_budget.needs(params) == []


def test_what_has_arrived_is_not_counted(tmp_path: Path) -> None:
    params = {**_params(tmp_path, size=10), "release": {}}
    (tmp_path / "models/incoming").mkdir(parents=True)
    (tmp_path / "models/incoming" / f"{'f' * 64}.part").write_bytes(bytes(4))
    assert [entry[1] for entry in rig_budget.needs(params)] == [6]


def test_a_copied_release_needs_its_own_size_twice_less_what_has_arrived(tmp_path: Path) -> None:
    artifact = {"sha256": "a" * 64, "size": 300}
    params = {**_params(tmp_path), "models": [], "release": {"id": "abc", "artifact": artifact}}
    assert [entry[1:] for entry in rig_budget.needs(params)] == [(300, "the packed release"), (300, "release abc")]
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / f"{'a' * 64}.part").write_bytes(bytes(100))
    assert [entry[1] for entry in rig_budget.needs(params)] == [200, 300]


def test_a_host_file_that_will_be_linked_needs_no_space(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(10))
    params = {**_params(tmp_path, size=10), "release": {}}
    params["models"][0]["origin"] = {"kind": "host-path", "path": str(source)}
    needed = rig_budget.needs(params)
    assert bool(needed) == (source.stat().st_uid != 0)


def test_too_small_a_disk_is_refused_with_the_numbers(tmp_path: Path) -> None:
    (found,) = rig_budget.budget(rig_budget.needs(_params(tmp_path, size=1 << 60)), reserve=256)
    assert not found["fits"]
    sentence = rig_budget.sentence(found, 256)
    assert "1,099,511,628,876 MiB are needed and 256 MiB stay free" in sentence
    assert "MiB too few" in sentence
    assert "model big.gguf 1,099,511,627,776 MiB" in sentence
