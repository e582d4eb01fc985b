"""Units, processes and ports: real processes and sockets of the test itself, systemd's words composed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import part

files = part("rig_files")
runtime = part("rig_runtime")

SHOWN = """Id=llama-chat.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
MainPID=812
NRestarts=3
FragmentPath=/etc/systemd/system/llama-chat.service
DropInPaths=/etc/systemd/system/llama-chat.service.d/a.conf "/run/systemd/system/x y.conf"
NeedDaemonReload=yes
Result=success
ActiveEnterTimestamp=@1790000000
InactiveEnterTimestamp=@1789999990

Id=llama-gone.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
MainPID=0
NRestarts=0
FragmentPath=
DropInPaths=
NeedDaemonReload=no
Result=success
ActiveEnterTimestamp=
InactiveEnterTimestamp=
"""
"""Composed after `systemctl show --timestamp=unix` of systemd 257."""


def test_units_from_one_call() -> None:
    calls: list[list[str]] = []

    def run(command: list[str]) -> tuple[int, str, str]:
        calls.append(command)
        return 0, SHOWN, ""

    seen = runtime.units(["llama-chat.service", "llama-gone.service"], run)
    assert len(calls) == 1
    assert seen["llama-chat.service"] == {
        "load": "loaded",
        "active": "active",
        "sub": "running",
        "enabled": "enabled",
        "main-pid": 812,
        "restarts": 3,
        "fragment": "/etc/systemd/system/llama-chat.service",
        "drop-ins": ["/etc/systemd/system/llama-chat.service.d/a.conf", "/run/systemd/system/x y.conf"],
        "need-reload": True,
        "result": "success",
        "started": 1790000000.0,
        "stopped": 1789999990.0,
    }
    assert seen["llama-gone.service"]["main-pid"] == 0
    assert seen["llama-gone.service"]["started"] is None
    assert seen["llama-gone.service"]["stopped"] is None


@pytest.fixture(autouse=True)
def booted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_BOOTED", str(tmp_path))


def test_where_systemd_does_not_run_no_unit_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runtime, "_BOOTED", str(tmp_path / "gone"))
    assert runtime.units(["llama-chat.service"], lambda _: pytest.fail("nobody is to be asked")) == {}


@pytest.mark.parametrize("answer", [(1, "", "Failed to get properties: Invalid"), (0, SHOWN + "\nId=x\n", "")])
def test_what_systemd_does_not_tell_is_no_empty_answer(answer: tuple[int, str, str]) -> None:
    with pytest.raises(runtime.SystemdError, match=answer[2] or "3 units instead of 2"):
        runtime.units(["a.service", "b.service"], lambda _: answer)


def test_a_drop_in_whose_name_no_bus_can_carry_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "llama-chat.service.d"
    place.mkdir()
    Path(os.fsdecode(os.fsencode(place) + b"/\xff.conf")).write_text("[Service]\n")
    monkeypatch.setattr(runtime, "_DROP_IN_HOMES", (str(tmp_path),))
    with pytest.raises(runtime.SystemdError, match=r"Invalid argument; remove .*udcff\.conf"):
        runtime.units(["llama-chat.service"], lambda _: (1, "", "Invalid argument"))


@pytest.mark.parametrize(
    ("path", "mode", "foreign"),
    [
        ("/root/evil.so", "r-xp", True),
        ("/usr/local/lib/evil.so", "r-xp", True),
        ("/root/data", "r--p", False),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "r-xp", False),
        ("/usr/local/cuda-13.0/lib64/libcudart.so.13", "r-xp", False),
        ("/opt/llamarig/releases/a/lib/libllama.so", "r-xp", False),
        ("[vdso]", "r-xp", False),
    ],
)
def test_code_from_elsewhere_is_told_from_the_systems(path: str, mode: str, foreign: bool) -> None:
    assert runtime.foreign_code(path, mode) is foreign


def test_a_unit_name_that_is_an_option_or_a_path_is_not_asked_for() -> None:
    def refuse(command: list[str]) -> tuple[int, str, str]:
        raise AssertionError(command)

    assert runtime.units(["--force", "../x.service", "a b.service", ""], refuse) == {}


def test_drop_ins_on_disk_are_seen_before_systemd_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("llama-chat.service.d", "llama-.service.d", "llama-other.service.d"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "override.conf").write_text("[Service]\n")
    monkeypatch.setattr(runtime, "_DROP_IN_HOMES", (str(tmp_path),))
    seen = runtime.units(["llama-chat.service"], lambda _: (0, SHOWN.partition("\n\n")[0], ""))
    drop_ins = seen["llama-chat.service"]["drop-ins"]
    assert str(tmp_path / "llama-chat.service.d/override.conf") in drop_ins
    assert str(tmp_path / "llama-.service.d/override.conf") in drop_ins
    assert str(tmp_path / "llama-other.service.d/override.conf") not in drop_ins


@contextlib.contextmanager
def running(command: list[str], **environment: str) -> Iterator[int]:
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        yield child.pid
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """An executable of our own, so that it can be replaced while it runs."""
    copy = tmp_path / "shell"
    shutil.copy(Path("/bin/sh").resolve(), copy)
    return copy


def loop(shell: Path, *arguments: str) -> list[str]:
    return [str(shell), "-c", "echo ready; while :; do read x </dev/zero; done", *arguments]


def test_a_process_is_known_by_executable_arguments_and_planned_variables(shell: Path) -> None:
    sha256 = hashlib.sha256(shell.read_bytes()).hexdigest()
    variables = {"GGML_CUDA_GRAPH_OPT": "1", "LLAMA_API_KEY": "sk-secret", "HOME": "/x", "CUDA_VISIBLE_DEVICES": ""}
    with running(loop(shell, "a b", "", "ü", "--api-key", "sk-secret", "--api-key=sk-secret"), **variables) as pid:
        seen = runtime.process(pid, files.Hasher())
    assert (seen["exe"], seen["deleted"], seen["exe-sha256"]) == (str(shell), False, sha256)
    assert seen["argv"][3:] == ["a b", "", "ü", "--api-key", "<hidden>", "--api-key=<hidden>"]
    assert seen["environment"] == {"GGML_CUDA_GRAPH_OPT": "1", "LLAMA_API_KEY": "<hidden>", "CUDA_VISIBLE_DEVICES": ""}
    assert seen["libcuda"] is False
    assert seen["user"] == files.owner_name(os.geteuid())


def test_a_replaced_executable_is_hashed_as_it_runs(shell: Path) -> None:
    sha256 = hashlib.sha256(shell.read_bytes()).hexdigest()
    recorded = {str(shell): {"sha256": sha256, "stat": files.stat_tuple(shell.stat())}}
    with running(loop(shell)) as pid:
        evil = shell.with_name("evil")
        evil.write_bytes(b"#!" + shell.read_bytes()[2:])
        evil.replace(shell)
        seen = runtime.process(pid, files.Hasher(recorded))
        assert files.Hasher(recorded).describe(str(shell))["sha256"] != sha256
    assert (seen["deleted"], seen["exe-sha256"]) == (True, sha256)


def test_a_process_that_is_gone_is_none() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert runtime.process(child.pid, files.Hasher()) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look at what another process has mapped")
def test_mapped_libraries_are_hashed_as_they_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "ROOT", str(tmp_path))
    library, gone, cuda = tmp_path / "libllama.so.0", tmp_path / "libggml.so.0", tmp_path / "libcuda.so.1"
    for path in (library, gone, cuda):
        path.write_bytes(path.name.encode() * 4096)
    program = (
        "import mmap,sys,time\n"
        "files = [open(path, 'rb') for path in sys.argv[1:]]\n"
        "kept = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for file in files]\n"
        "print('ready', flush=True)\ntime.sleep(60)"
    )
    with running([sys.executable, "-c", program, str(library), str(gone), str(cuda)]) as pid:
        gone.unlink()
        gone.write_bytes(b"something else")
        seen = runtime.process(pid, files.Hasher())
    assert {path: sha for path, sha in seen["mapped"].items() if path.startswith(str(tmp_path))} == {
        str(path): hashlib.sha256(path.name.encode() * 4096).hexdigest() for path in (library, gone, cuda)
    }
    assert seen["libcuda"] is True


@pytest.fixture
def listener() -> Iterator[tuple[socket.socket, int]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server, server.getsockname()[1]


def probe(port: int, address: str = "127.0.0.1") -> list[dict[str, Any]]:
    return [{"address": address, "port": port}]


def test_the_owner_of_a_port_is_found_among_the_main_processes_without_a_scan(
    listener: tuple[socket.socket, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    original = runtime._find
    monkeypatch.setattr(runtime, "_find", lambda pid, *rest: (looked.append(pid), original(pid, *rest)))
    seen = runtime.ports(probe(listener[1]), [os.getpid()])
    assert [owner["pid"] for owner in seen[f"127.0.0.1:{listener[1]}"]] == [os.getpid()]
    assert seen[f"127.0.0.1:{listener[1]}"][0]["command"]
    assert looked == [os.getpid()]


def test_a_strangers_port_is_found_by_a_scan(listener: tuple[socket.socket, int]) -> None:
    seen = runtime.ports(probe(listener[1]), [1 << 22])
    assert [owner["pid"] for owner in seen[f"127.0.0.1:{listener[1]}"]] == [os.getpid()]


def test_a_free_port_costs_no_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setattr(runtime, "_find", lambda *_: pytest.fail("nothing is to be found"))
    assert runtime.ports(probe(port), []) == {f"127.0.0.1:{port}": []}


def test_a_unix_socket_has_an_owner(tmp_path: Path) -> None:
    place = str(tmp_path / "chat.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        assert runtime.ports(probe(0, place), []) == {f"{place}:0": []}
        server.listen()
        assert [owner["pid"] for owner in runtime.ports(probe(0, place), [])[f"{place}:0"]] == [os.getpid()]


V4_LOOPBACK, V4_ANY, V4_LAN = "0100007F", "00000000", "0A00A8C0"
V6_ANY, V6_LOOPBACK = "0" * 32, "00000000000000000000000001000000"
V6_MAPPED = "0000000000000000FFFF00000100007F"


@pytest.mark.skipif(sys.byteorder == "big", reason="the tables are written here as a little-endian kernel prints them")
@pytest.mark.parametrize(
    ("table", "wanted", "collides"),
    [
        (V4_LOOPBACK, "127.0.0.1", True),
        (V4_LAN, "127.0.0.1", False),
        (V4_ANY, "127.0.0.1", True),
        (V4_LAN, "0.0.0.0", True),
        (V4_LAN, "192.168.0.10", True),
        (V6_ANY, "127.0.0.1", True),
        (V6_ANY, "::1", True),
        (V6_LOOPBACK, "127.0.0.1", False),
        (V6_LOOPBACK, "[::1]", True),
        (V4_ANY, "::1", False),
        (V4_LAN, "::", True),
        (V6_LOOPBACK, "0.0.0.0", False),
        (V6_MAPPED, "127.0.0.1", True),
        (V4_LAN, "localhost", True),
        ("zz", "127.0.0.1", True),
    ],
)
def test_which_listeners_keep_a_service_from_its_address(table: str, wanted: str, collides: bool) -> None:
    assert runtime._collide(table, wanted) is collides
