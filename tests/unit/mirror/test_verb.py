"""The verb ``mirror`` from the outside: what it prints, its exit codes, and that one bad host holds up no other."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamarig.cli.main import _run
from llamarig.converge.mirror.place import Place
from tests.support.standins.project import model_bytes

ROOT = Path(__file__).resolve().parents[3]
MODEL, ARCHIVE = model_bytes("smol"), b"an archive of the engine"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = tmp_path / "project"
    (place / "inventory").mkdir(parents=True)
    (place / "m.gguf").write_bytes(MODEL)
    (place / "engine.tar.gz").write_bytes(ARCHIVE)
    for name in ("one", "two"):
        _describe(place, name)
    return place


def _describe(project: Path, name: str, **model: Any) -> None:
    spec = copy.deepcopy(yaml.safe_load((ROOT / "inventory/demo.yml").read_text()))
    spec |= {"host": name, "connection": {"address": "192.0.2.1"}}
    spec["engine"]["source"] = {"archive": "engine.tar.gz", "sha256": hashlib.sha256(ARCHIVE).hexdigest()}
    spec["models"]["smol"] = {
        "controller-path": "m.gguf",
        "sha256": hashlib.sha256(MODEL).hexdigest(),
        "size": len(MODEL),
        **model,
    }
    (project / f"inventory/{name}.yml").write_text(yaml.safe_dump(spec))


def _mirror(project: Path, *words: str) -> int:
    return _run(["-C", str(project), "mirror", str(project.parent / "m"), *words, "--no-python"])


def test_it_says_what_it_fetched_and_that_packages_are_missing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _mirror(project, "--all", "--json") == 1
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert report["hosts"] == ["one", "two"]
    assert sorted(report["added"]) == sorted(f"sha256/{hashlib.sha256(data).hexdigest()}" for data in (MODEL, ARCHIVE))
    assert report["without-packages"] == ["debian-13-amd64"]
    sums = (project.parent / "m/SHA256SUMS").read_bytes()
    assert report["sums-sha256"] == hashlib.sha256(sums).hexdigest()
    assert b"  manifest.json\n" in sums
    assert _mirror(project, "--all") == 1
    said = capsys.readouterr()
    assert "nothing to fetch; 2 files" in said.out
    assert "packages of debian-13-amd64 are not collected" in said.err


def test_headers_that_no_source_offers_are_told(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def collected(place: Place, *_given: Any) -> list[str]:
        place.manifest.debian["debian-13-amd64"] = {}
        return ["linux-headers-6.12.90+deb13-amd64", "linux-headers-\x1b[2J"]

    monkeypatch.setattr("llamarig.converge.mirror.collect.collect_packages", collected)
    assert _mirror(project, "--all", "--packages-from", "one") == 0
    told = capsys.readouterr().err
    assert "offers linux-headers-6.12.90+deb13-amd64: where a host has that kernel" in told
    assert "\x1b" not in told
    assert _mirror(project, "--all", "--packages-from", "one", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["without-headers"] == ["linux-headers-6.12.90+deb13-amd64", "linux-headers-\x1b[2J"]
    # Twin: a run in which no host chose packages tells none.
    assert _mirror(project, "--all", "--json") == 0
    said = capsys.readouterr()
    assert (json.loads(said.out)["without-headers"], said.err) == ([], "")


def test_a_host_that_cannot_be_collected_for_holds_up_no_other(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "engine.tar.gz").rename(project / "two.tar.gz")
    spec = yaml.safe_load((project / "inventory/two.yml").read_text())
    spec["engine"]["source"]["archive"] = "two.tar.gz"
    (project / "inventory/two.yml").write_text(yaml.safe_dump(spec))
    (project / "engine.tar.gz").write_bytes(b"another")
    assert _mirror(project, "--all") == 2
    assert "the content is not the one that the spec pins" in capsys.readouterr().err
    manifest = json.loads((project.parent / "m/manifest.json").read_text())
    [model] = [entry for entry in manifest["files"].values() if entry["kind"] == "model"]
    assert model["hosts"] == ["two"]


def test_what_is_unlocked_is_not_collected(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _describe(project, "one", sha256="unlocked")
    assert _mirror(project, "one") == 2
    assert "its hash is not known yet" in capsys.readouterr().err


def test_prune_is_for_the_whole_project_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _mirror(project, "one", "--prune") == 2
    assert "give --all" in capsys.readouterr().err
    assert not (project.parent / "m").exists()


def test_prune_removes_what_a_removed_host_needed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = model_bytes("other")
    (project / "other.gguf").write_bytes(other)
    change = {"controller-path": "other.gguf", "sha256": hashlib.sha256(other).hexdigest(), "size": len(other)}
    _describe(project, "two", **change)
    assert _mirror(project, "--all") == 1
    (project / "inventory/two.yml").unlink()
    capsys.readouterr()
    assert _mirror(project, "--all", "--prune", "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["pruned"] == [f"sha256/{hashlib.sha256(other).hexdigest()}"]
    assert report["files"] == 2


def test_what_is_not_pinned_names_its_host(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _describe(project, "two", sha256="unlocked")
    assert _mirror(project, "--all") == 2
    assert "error: two: model m.gguf: its hash is not known yet" in capsys.readouterr().err
