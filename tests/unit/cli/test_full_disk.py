"""A full disk: the file that could not be written is named, and standard output is blamed for its own errors alone."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from llamarig.cli import context, main, output
from llamarig.cli.plan_view.files import write_page
from llamarig.converge.locking.document import write_atomically
from llamarig.converge.mirror.manifest import write_whole
from llamarig.converge.private import write_private
from llamarig.converge.store import download, origins
from llamarig.converge.store.pack import pack_tree
from llamarig.converge.store.releases import Held, Releases
from llamarig.converge.store.shelf import Shelf, silent
from llamarig.errors import RigError, naming
from llamarig.fleet.rollout import control
from llamarig.fleet.rollout.journal import Journal
from llamarig.gguf.header import Header
from llamarig.gguf.sidecar import write_sidecar
from llamarig.render import tree
from tests.unit.cli.test_output_and_end import ROOT, rig


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow by a byte: the kernel refuses it where a disk that is full would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _journal(place: Path) -> None:
    Journal.create(place / "j").append({"event": "x"})


def _copied(place: Path) -> None:
    Shelf(place / "shelf").copy(place / "source", "0" * 64, "source")


def _fetched(place: Path) -> None:
    answers = httpx.MockTransport(lambda _request: httpx.Response(200, content=b"whole"))
    with httpx.Client(transport=answers) as http:
        download.fetch(http, download.Wish("http://192.0.2.1/x", "x"), place / "x", silent)


def _member(place: Path) -> None:
    shelf = Shelf(place / "shelf")
    origins.wheel_member(shelf, {"wheel": "x==1", "member": "m"}, "0" * 64, None, silent)


def _noted(place: Path) -> None:
    Releases(Shelf(place / "shelf" / "artifacts"))._write(Held("r", "0" * 64, 1, "o", "a"))


WRITERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "private": (lambda place: write_private(place / "p", "text"), "p"),
    "mirror": (lambda place: write_whole(place / "m", b"text"), "m"),
    "spec": (lambda place: write_atomically(place / "s", b"text"), "s"),
    "page": (lambda place: write_page(place / "h.html", "text"), "h.html"),
    "rendered": (lambda place: tree._write(place / "r", "text", 0o644), "r"),
    "sidecar": (lambda place: write_sidecar(Header(3, {}, (), 32, 0, 0), "0" * 64, place), f"{'0' * 64}.json"),
    "request": (lambda place: control.ask(place, control.PAUSE), "request"),
    "journal": (_journal, "j"),
    "note of a release": (_noted, "shelf/releases/r.json"),
    "copy": (_copied, "shelf/partial/"),
    "download": (_fetched, "x.etag"),
    "member of a wheel": (_member, "shelf/partial/"),
    "packed toolkit": (lambda place: pack_tree(place / "folder", place / "t.tar"), "t.tar"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "source").write_bytes(b"whole")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"whole")
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as wheel:
        wheel.writestr("m", b"whole")
    monkeypatch.setattr(origins, "distribution", lambda *_given: tmp_path / "w.whl")
    write, file = WRITERS[name]
    with full_disk(), pytest.raises((OSError, RigError)) as caught:
        write(tmp_path)
    told = caught.value
    where = told.where if isinstance(told, RigError) else str(told.filename)
    assert where.startswith(str(tmp_path / file))
    assert [each for each in tmp_path.rglob(".*") if each.is_file()] == []


def test_an_error_that_names_its_file_keeps_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, naming(tmp_path / "other"):
        (tmp_path / "none").read_text()
    assert caught.value.filename == str(tmp_path / "none")
    with pytest.raises(PermissionError) as caught_denied, naming(tmp_path / "ours"):
        raise PermissionError(errno.EACCES, "Permission denied")
    assert caught_denied.value.filename == str(tmp_path / "ours")


def told_of(error: OSError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    def broken(_argv: list[str]) -> int:
        raise error

    monkeypatch.setattr(main, "_run", broken)
    monkeypatch.setattr(context, "_printed", False)
    monkeypatch.setattr(sys, "argv", ["llamarig", *words])
    with pytest.raises(SystemExit) as end:
        main.main()
    assert end.value.code == 3
    told = capsys.readouterr()
    return told.err + told.out


def test_an_error_of_no_file_is_not_blamed_on_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = told_of(OSError(errno.ENOSPC, "No space left on device"), monkeypatch, capsys)
    assert "output" not in said
    assert "the system refuses what llamarig needs" in said
    assert "fix: make room there" in said


def test_a_file_that_cannot_be_written_is_told_as_a_document_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = told_of(OSError(errno.ENOSPC, "No space left on device", "/x/y"), monkeypatch, capsys, "plan", "--json")
    assert "/x/y: a file cannot be used" in said
    assert '"where": "/x/y"' in said


def test_the_command_itself_names_the_file(tmp_path: Path) -> None:
    command = f'ulimit -f 0; exec "{sys.executable}" -m llamarig.cli.start render demo --out "{tmp_path}/out"'
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 3
    assert "standard output" not in done.stderr
    assert f"{tmp_path}/out" in done.stderr
    assert "File too large" in done.stderr


@pytest.mark.parametrize("words", [("plan", "--all"), ("plan", "--all", "--json"), ("--help",)])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_is_named_for_its_own(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    done = rig(*words, shell=">/dev/full")
    assert done.returncode == 3
    assert "error: standard output: the output cannot be written" in done.stderr
    assert "why: No space left on device" in done.stderr


@pytest.mark.parametrize("shell", ["2>/dev/full", ">/dev/full 2>&1"])
def test_a_standard_error_that_is_full_ends_with_3_and_no_traceback(shell: str) -> None:
    done = rig("plan", "nobody", shell=shell)
    assert done.returncode == 3
    assert done.stdout == ""


def test_streams_that_lead_elsewhere_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, "w") as stream:  # noqa: PTH123 - a stream as the interpreter opens its own
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        output.name_streams()
        assert sys.stdout is stream
        assert sys.stderr is stream


def test_the_disk_of_these_tests_is_full(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(OSError, match="File too large") as caught:
        (tmp_path / "x").write_text("x")
    assert caught.value.filename is None
    with full_disk(), pytest.raises(OSError, match="File too large"), tarfile.open(tmp_path / "t", "w"):
        pass
