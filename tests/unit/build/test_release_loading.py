"""What a release lacks under the loader, and how its server is asked where no driver or no network is.

The lines are composed in the form of ldd of glibc 2.41, as on Debian 13.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible.module_utils import rig_release_files, rig_release_run
from ansible.module_utils.rig_release_run import Terms
from ansible.module_utils.rig_unpack import RefusedError

FOUND = """\
\tlinux-vdso.so.1 (0x00007f709b747000)
\tlibcublas.so.13 => {prefix}/lib64/libcublas.so.13 (0x00007f7072000000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f7071e0c000)
"""
NO_DRIVER = "\tlibcuda.so.1 => not found\n"
TERMS = Terms("nobody", "label", cuda=True, toolkit=None)


class Loader:
    """Stands in for ldd and for the server; keeps what it was asked with."""

    def __init__(self, listed: str, shown: str = "version: 1 (label)") -> None:
        self.listed, self.shown = listed, shown
        self.asked: list[dict[str, bytes]] = []

    def __call__(self, _user: str, *command: str, libraries: list[str] | tuple[()] = ()) -> object:
        if command[0] == "ldd":
            return subprocess.CompletedProcess(command, 0, self.listed, "")
        self.asked.append({path.name: path.read_bytes() for folder in libraries for path in Path(folder).iterdir()})
        return subprocess.CompletedProcess(command, 0, self.shown, "")


def loader(monkeypatch: pytest.MonkeyPatch, listed: str, shown: str = "version: 1 (label)") -> Loader:
    made = Loader(listed, shown)
    monkeypatch.setattr(rig_release_run, "sandboxed", made)
    return made


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    (tmp_path / "cuda/lib/stubs").mkdir(parents=True)
    (tmp_path / "cuda/lib/stubs/libcuda.so").write_bytes(b"stub")
    (tmp_path / "cuda/lib/libcublas.so.13.1").write_bytes(b"cublas")
    (tmp_path / "cuda/lib/libcublas.so.13").symlink_to("libcublas.so.13.1")
    (tmp_path / "cuda/lib64").symlink_to("lib")
    return tmp_path / "cuda"


def test_a_whole_release_is_asked_with_nothing_else_at_hand(monkeypatch: pytest.MonkeyPatch, prefix: Path) -> None:
    told = loader(monkeypatch, FOUND)
    assert rig_release_run.check(Path("/r"), ["bin/llama-server"], Terms("nobody", "label", True, prefix))
    assert told.asked == [{}]


def test_without_a_driver_the_server_is_asked_with_the_stand_in(monkeypatch: pytest.MonkeyPatch, prefix: Path) -> None:
    told = loader(monkeypatch, FOUND + NO_DRIVER)
    assert rig_release_run.check(Path("/r"), ["bin/llama-server"], Terms("nobody", "label", True, prefix))
    assert told.asked == [{"libcuda.so.1": b"stub"}]


def test_without_a_driver_and_a_stand_in_nobody_can_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    told = loader(monkeypatch, FOUND + NO_DRIVER)
    assert not rig_release_run.check(Path("/r"), ["bin/llama-server"], TERMS)
    assert told.asked == []


@pytest.mark.parametrize(
    ("listed", "terms", "said"),
    [
        (NO_DRIVER, Terms("nobody", "label", cuda=False, toolkit=None), "lacks libraries: libcuda.so.1"),
        (NO_DRIVER + "\tlibcublas.so.13 => not found\n", TERMS, "lacks libraries: libcublas.so.13$"),
        ("\tlibcuda.so => not found\n", TERMS, "lacks libraries: libcuda.so$"),
        ("/r/bin/x: /lib/libc.so.6: version `GLIBC_2.99' not found (required by /r/bin/x)\n", TERMS, "GLIBC_2.99"),
    ],
)
def test_any_other_library_that_is_missing_is_refused(
    listed: str, terms: Terms, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = loader(monkeypatch, listed)
    with pytest.raises(RefusedError, match=said):
        rig_release_run.check(Path("/r"), ["bin/llama-server"], terms)
    assert told.asked == []


def test_another_label_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    loader(monkeypatch, FOUND, "version: 1 (other)")
    with pytest.raises(RefusedError, match="does not show 'label'"):
        rig_release_run.check(Path("/r"), ["bin/llama-server"], TERMS)


def test_of_the_libraries_only_the_toolkits_are_copied(
    monkeypatch: pytest.MonkeyPatch, prefix: Path, tmp_path: Path
) -> None:
    driver = tmp_path / "libcuda.so.1"
    driver.write_bytes(b"driver")
    loader(monkeypatch, FOUND.format(prefix=prefix) + f"\tlibcuda.so.1 => {driver} (0x00007f7072000000)\n")
    (tmp_path / "id/lib").mkdir(parents=True)
    linked = rig_release_run.linked(tmp_path / "id", ["lib/libggml-cuda.so"], "nobody")
    assert rig_release_files.copy_toolkit(linked, prefix, tmp_path / "id") == ["lib/libcublas.so.13"]
    assert [path.name for path in (tmp_path / "id/lib").iterdir()] == ["libcublas.so.13"]
    assert not (tmp_path / "id/lib/libcublas.so.13").is_symlink()
    assert (tmp_path / "id/lib/libcublas.so.13").read_bytes() == b"cublas"


def test_a_name_that_is_none_of_a_library_is_not_copied(prefix: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="none of a library"):
        rig_release_files.copy_toolkit({"../x": str(prefix / "lib/libcublas.so.13")}, prefix, tmp_path)


def unshare(monkeypatch: pytest.MonkeyPatch, folder: Path, status: int, *interfaces: str) -> None:
    for name in interfaces:
        (folder / name).mkdir()
    answer = subprocess.CompletedProcess([], status, "", "unshare: unshare failed: Operation not permitted")
    monkeypatch.setattr(rig_release_run, "INTERFACES", folder)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: answer)


def test_the_network_is_taken_where_that_is_allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unshare(monkeypatch, tmp_path, 0, "lo", "eth0")
    assert rig_release_run.without_network() == ["/usr/bin/unshare", "--net"]


def test_where_there_is_none_it_need_not_be_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unshare(monkeypatch, tmp_path, 1, "lo")
    assert rig_release_run.without_network() == []


def test_where_it_cannot_be_taken_nothing_new_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unshare(monkeypatch, tmp_path, 1, "lo", "eth0")
    with pytest.raises(RefusedError, match=r"Operation not permitted; there is eth0\."):
        rig_release_run.without_network()


def test_where_nobody_can_tell_nothing_new_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unshare(monkeypatch, tmp_path, 1)
    monkeypatch.setattr(rig_release_run, "INTERFACES", tmp_path / "absent")
    with pytest.raises(RefusedError, match="there is unknown"):
        rig_release_run.without_network()
