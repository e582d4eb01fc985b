"""Where a model's header is looked for."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest

from llamarig.errors import RigError
from llamarig.gguf import default_cache, find_header, read_header, write_sidecar
from llamarig.spec.models import Model
from tests.support import gguf_bytes as raw

CONTENT = raw.small().bytes()
SHA = hashlib.sha256(CONTENT).hexdigest()


def model(**changes: object) -> Model:
    data = {"url": "https://models.example/m.gguf", "sha256": SHA, "size": len(CONTENT), **changes}
    return Model.model_validate({key: value for key, value in data.items() if value is not None})


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    project, cache = tmp_path / "project", tmp_path / "cache"
    (cache / "artifacts").mkdir(parents=True)
    project.mkdir()
    return project, cache


def test_nothing_is_at_hand(places: tuple[Path, Path]) -> None:
    assert find_header(model(), *places) is None


def test_the_projects_sidecar_is_enough(places: tuple[Path, Path]) -> None:
    project, cache = places
    write_sidecar(read_header(io.BytesIO(CONTENT)), SHA, project / "headers")
    found = find_header(model(), project, cache)
    assert found is not None
    assert found.architecture == "llama"


def test_a_pin_of_the_sidecar_is_kept(places: tuple[Path, Path]) -> None:
    project, cache = places
    path = write_sidecar(read_header(io.BytesIO(CONTENT)), SHA, project / "headers")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert find_header(model(header=digest), project, cache) is not None
    with pytest.raises(RigError, match="not usable"):
        find_header(model(header="00" * 32), project, cache)


def test_header_none_looks_nowhere(places: tuple[Path, Path]) -> None:
    project, cache = places
    write_sidecar(read_header(io.BytesIO(CONTENT)), SHA, project / "headers")
    assert find_header(model(header="none"), project, cache) is None


def test_an_artifact_is_read_once_and_then_its_sidecar(places: tuple[Path, Path]) -> None:
    project, cache = places
    artifact = cache / "artifacts" / SHA
    artifact.write_bytes(CONTENT)
    first = find_header(model(), project, cache)
    artifact.unlink()
    assert first is not None
    assert find_header(model(), project, cache) == first


def test_an_artifact_with_another_content_is_refused(places: tuple[Path, Path]) -> None:
    project, cache = places
    (cache / "artifacts" / SHA).write_bytes(CONTENT[:-1] + b"\x01")
    with pytest.raises(RigError, match="sha256 is not the spec's"):
        find_header(model(), project, cache)


def test_a_file_beside_the_specs(places: tuple[Path, Path]) -> None:
    project, cache = places
    (project / "models").mkdir()
    (project / "models" / "m.gguf").write_bytes(CONTENT)
    assert find_header(model(url=None, **{"controller-path": "models/m.gguf"}), project, cache) is not None


def test_a_file_that_is_not_locked_yet_is_read_but_not_cached(places: tuple[Path, Path]) -> None:
    project, cache = places
    (project / "m.gguf").write_bytes(CONTENT)
    unlocked = model(url=None, sha256="unlocked", size="unlocked", **{"controller-path": "m.gguf"})
    assert find_header(unlocked, project, cache) is not None
    assert not (cache / "headers").exists()


def test_a_file_of_the_wrong_size_is_refused(places: tuple[Path, Path]) -> None:
    project, cache = places
    (project / "m.gguf").write_bytes(CONTENT + b"\0")
    with pytest.raises(RigError, match="and the spec says"):
        find_header(model(url=None, **{"controller-path": "m.gguf"}), project, cache)


def test_shards_need_all_their_files(places: tuple[Path, Path]) -> None:
    project, cache = places
    parts = []
    for number in range(2):
        composed = raw.Composed()
        composed.add("split.no", raw.U16, number).add("split.count", raw.U16, 2)
        composed.add("general.architecture", raw.STRING, "llama").tensor(f"blk.{number}.a", "F32", 16)
        parts.append(composed.bytes())
    files = [
        {"controller-path": f"m-{number + 1:05}-of-00002.gguf", "sha256": hashlib.sha256(part).hexdigest(),
         "size": len(part)}
        for number, part in enumerate(parts)
    ]  # fmt: skip
    split = Model.model_validate({**files[0], "shards": [files[1]]})
    (project / "m-00001-of-00002.gguf").write_bytes(parts[0])
    assert find_header(split, project, cache) is None
    (project / "m-00002-of-00002.gguf").write_bytes(parts[1])
    found = find_header(split, project, cache)
    assert found is not None
    assert [tensor.name for tensor in found.tensors] == ["blk.0.a", "blk.1.a"]


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_cache() == Path("/somewhere/llamarig")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "llamarig"
