"""A toolkit's hash: that of a file by its address, or of NVIDIA's list of archives, which must be the right one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llamarig.catalog.toolkits import archive_list, release_of
from llamarig.catalog.upstream import OVERRIDE, upstream
from llamarig.converge.locking import toolkit
from llamarig.spec.load import load_project
from tests.support.standins.hub import sha256
from tests.support.standins.project import lock_project, spec, write_project
from tests.support.standins.server import Quiet, serving

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = sorted(host.host for host in load_project(ROOT).hosts if host.spec and host.spec.cuda)
CARD = 'gpus:\n  upper: {model: rtx-4090, bus-id: "01:00.0"}\n'
ENGINE = """\
engine:
  commit: 4df29be4f
  build-number: 10454
  source: {archive: engine.tar.gz, sha256: "%s"}
  backend: cuda
  architectures: [89-real]
""" % ("a" * 64)
MODELS = "models:\n  smol: {controller-path: m.gguf, sha256: %s, size: 1, header: none}\n" % ("b" * 64)


def list_of(release: str = "12.9.1", nvcc: str = "12.9.86") -> bytes:
    """Composed in the form of NVIDIA's redistrib_<release>.json, with one of its components."""
    part = {"name": "CUDA NVCC", "version": nvcc, "linux-x86_64": {"relative_path": "x.tar.xz", "sha256": "c" * 64}}
    return json.dumps({"release_date": "2025-06-05", "release_label": release, "cuda_nvcc": part}).encode()


class Lists(Quiet):
    """Serves lists of archives by their names."""

    files: dict[str, bytes] = {}  # noqa: RUF012 - each test puts its own in

    def answer(self) -> None:
        body = self.files.get(self.path)
        self.reply(200, body) if body is not None else self.reply(404)


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, bytes]]:
    with serving(Lists) as address:
        override = tmp_path / "upstream.yml"
        override.write_text(f"toolkit-archives: {address}\n")
        monkeypatch.setenv(OVERRIDE, str(override))
        monkeypatch.setattr(Lists, "files", {})
        upstream.cache_clear()
        yield Lists.files
    upstream.cache_clear()


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    def write(**keys: str) -> Path:
        cuda = ", ".join(f'{key}: "{value}"' for key, value in (keys | {"sha256": "unlocked"}).items())
        root = tmp_path / "project"
        text = spec(MODELS, ENGINE, f"{CARD}cuda: {{{cuda}}}\n").replace("model: smol,", "model: smol, gpu: upper,")
        write_project(root, text)
        return root

    return write


def locked(root: Path, offline: bool = False) -> tuple[str | None, list[str]]:
    """The hash that was found, and what is wrong."""
    found = lock_project(root, offline=offline)
    changes: list[Any] = [change.new for change in found.hosts[0].changes if change.key == "cuda.sha256"]
    wrong = [f"{problem.what}: {problem.why}" for problem in found.problems if "cuda" in problem.where]
    return (changes[0] if changes else None), wrong


@pytest.mark.parametrize("version", ["12.9.86", "12.9.1"])
def test_a_version_leads_to_the_list_of_its_release(
    lists: dict[str, bytes], project: Callable[..., Path], version: str
) -> None:
    lists["/redistrib_12.9.1.json"] = list_of()
    root = project(source="archive", version=version)
    assert locked(root) == (sha256(list_of()), [])


def test_a_version_of_two_parts_is_the_first_release(lists: dict[str, bytes], project: Callable[..., Path]) -> None:
    lists["/redistrib_12.8.0.json"] = list_of("12.8.0", "12.8.61")
    root = project(source="archive", version="12.8")
    assert locked(root) == (sha256(list_of("12.8.0", "12.8.61")), [])


@pytest.mark.parametrize("source", ["archive", "runfile"])
def test_a_file_of_the_users_own_is_hashed(project: Callable[..., Path], source: str) -> None:
    root = project(source=source, version="12.9.86", location="files/cuda.bin")
    (root / "files").mkdir()
    (root / "files" / "cuda.bin").write_bytes(b"toolkit")
    assert locked(root, offline=True) == (sha256(b"toolkit"), [])


def test_a_list_on_the_controller_serves_where_there_is_no_network(project: Callable[..., Path]) -> None:
    root = project(source="archive", version="12.9.86", location="redistrib.json")
    (root / "redistrib.json").write_bytes(list_of())
    assert locked(root, offline=True) == (sha256(list_of()), [])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (list_of("12.9.0", "12.9.41"), "that of another toolkit: release 12.9.0 with nvcc 12.9.41"),
        (b"<html>moved</html>", "this is no list"),
        (b'{"release_label": "12.9.1"}', "this is no list"),
        (b"[]", "this is no list"),
        (b"[" * 100_000, "this is no list"),
    ],
)
def test_another_list_pins_nothing(
    lists: dict[str, bytes], project: Callable[..., Path], body: bytes, words: str
) -> None:
    lists["/redistrib_12.9.1.json"] = body
    found, [wrong] = locked(project(source="archive", version="12.9.86"))
    assert found is None
    assert words in wrong


def test_a_list_without_an_end_is_cut_off(
    lists: dict[str, bytes], project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolkit, "LIST_BYTES", 100)
    lists["/redistrib_12.9.1.json"] = list_of()
    found, [wrong] = locked(project(source="archive", version="12.9.86"))
    assert found is None
    assert "too long" in wrong


@pytest.mark.parametrize(("source", "version"), [("runfile", "12.9.86"), ("archive", "12.9.99")])
def test_without_any_address_it_says_what_to_give(project: Callable[..., Path], source: str, version: str) -> None:
    found, [wrong] = locked(project(source=source, version=version), offline=True)
    assert found is None
    assert "cannot be looked up without its address" in wrong


@pytest.mark.parametrize("host", REFERENCE)
def test_every_reference_spec_can_be_locked(host: str) -> None:
    cuda = next(each.spec.cuda for each in load_project(ROOT).hosts if each.host == host and each.spec)
    assert cuda is not None
    address = archive_list(cuda.version)
    assert address is not None
    assert address.startswith(upstream().toolkit_archives)


def test_the_reference_specs_are_found_at_all() -> None:
    assert len(REFERENCE) >= 6
    assert release_of("12.9.86") == "12.9.1"
