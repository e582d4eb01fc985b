from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.rendering import probe as support

probe = support.load()


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"# only a comment\n", b"#\n# " + support.KEY.encode()],
    ids=["empty", "blank", "comment", "commented key"],
)
def test_a_key_file_without_a_key_never_starts_a_server(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "keys").write_bytes(content)
    with pytest.raises(probe.Refusal, match="open to everybody") as caught:
        probe.before(support.config(tmp_path, support.free_port()))
    assert caught.value.status == 78


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"short\n", "shorter than 16"),
        (support.KEY.encode() + b"\nshort\n", "key 2 is shorter"),
        (support.KEY.encode() + b"\r\n", "space or a character"),
        (b" " * 32 + b"\n", "space or a character"),
        ("ü".encode() * 20 + b"\n", "space or a character"),
        (b"x" * 70000, "larger than"),
    ],
)
def test_a_bad_key_is_refused_without_showing_it(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "keys").write_bytes(content)
    with pytest.raises(probe.Refusal, match=why) as caught:
        probe.before(support.config(tmp_path, support.free_port()))
    assert caught.value.status == 78
    assert "short\n" not in str(caught.value)
    assert support.KEY not in str(caught.value)


def test_a_missing_key_file_is_a_configuration_error(tmp_path: Path) -> None:
    config = support.config(tmp_path, support.free_port(), keys=str(tmp_path / "none"))
    with pytest.raises(probe.Refusal, match="cannot be read") as caught:
        probe.before(config)
    assert caught.value.status == 78


def test_good_keys_are_read_as_the_engine_reads_them(tmp_path: Path) -> None:
    config = support.config(tmp_path)
    assert probe.read_keys(config["keys"], 16) == [support.KEY, support.OTHER_KEY]


def test_a_sound_configuration_passes(tmp_path: Path) -> None:
    probe.before(support.config(tmp_path, support.free_port()))


def test_a_port_in_use_is_named_and_may_be_tried_later(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(probe.Refusal, match=f"127.0.0.1 port {port} is taken by a process of user") as caught:
            probe.before(support.config(tmp_path, port))
    assert caught.value.status == 75


def test_the_owner_of_a_port_is_read_from_the_kernels_table(tmp_path: Path) -> None:
    """The table is composed after proc(5): local address in hex, state 0A is listening, then the user's id."""
    table = tmp_path / "tcp"
    row = "   0: 0100007F:1F90 00000000:0000 {} 00000000:00000000 00:00000000 00000000 {} 0 123 1 0 100 0\n"
    table.write_text("  sl  local_address\n" + row.format("01", 0) + row.format("0A", 4242424242))
    assert probe.port_owner(8080, (str(table),)) == "a process of user id 4242424242"
    assert probe.port_owner(8081, (str(table),)) == "another process"
    assert probe.port_owner(8080, (str(tmp_path / "none"),)) == "another process"


def test_an_address_that_no_interface_has_may_come_later(tmp_path: Path) -> None:
    with pytest.raises(probe.Refusal, match=r"no interface has the address 192\.0\.2\.1") as caught:
        probe.before(support.config(tmp_path, support.free_port(), address="192.0.2.1"))
    assert caught.value.status == 75


def test_missing_and_empty_model_files_are_refused(tmp_path: Path) -> None:
    config = support.config(tmp_path, support.free_port())
    (tmp_path / "model.gguf").write_bytes(b"")
    with pytest.raises(probe.Refusal, match="is empty"):
        probe.before(config)
    (tmp_path / "model.gguf").unlink()
    with pytest.raises(probe.Refusal, match="No such file") as caught:
        probe.before(config)
    assert caught.value.status == 78


def test_missing_device_nodes_may_come_later(tmp_path: Path) -> None:
    config = support.config(tmp_path, support.free_port(), nodes=[str(tmp_path / "nvidiactl"), "/dev/null"])
    with pytest.raises(probe.Refusal, match="is the NVIDIA driver loaded") as caught:
        probe.before(config)
    assert caught.value.status == 75
    assert "/dev/null" not in str(caught.value)


def test_a_dead_socket_is_removed_and_a_live_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    config = support.config(tmp_path, address=str(path), connect=str(path))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        with pytest.raises(probe.Refusal, match="taken by another process") as caught:
            probe.before(config)
        assert caught.value.status == 75
    probe.before(config)
    assert not path.exists()


def test_a_file_in_the_place_of_a_socket_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    path.write_text("precious")
    with pytest.raises(probe.Refusal, match="is not a socket") as caught:
        probe.before(support.config(tmp_path, address=str(path)))
    assert caught.value.status == 78
    assert path.read_text() == "precious"


def test_only_planned_variables_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = support.config(tmp_path, environment=["GGML_CUDA_GRAPH_OPT"])
    given = {"GGML_CUDA_GRAPH_OPT": "1", "LLAMA_ARG_PORT": "1", "LLAMA_FUTURE": "x", "MTMD_X": "", "PATH": "/bin"}
    assert probe.planned(config, given) == {"GGML_CUDA_GRAPH_OPT": "1"}
    lines = capsys.readouterr().err
    assert [name for name in given if f"variable {name} is not planned" in lines] == [
        "LLAMA_ARG_PORT",
        "LLAMA_FUTURE",
        "MTMD_X",
    ]


def test_a_planned_variable_that_the_unit_lost_is_refused(tmp_path: Path) -> None:
    with pytest.raises(probe.Refusal, match="GGML_A") as caught:
        probe.planned(support.config(tmp_path, environment=["GGML_A"]), {})
    assert caught.value.status == 78


AS_USER = (
    "import os, runpy, sys; uid = int(sys.argv[1]); os.geteuid = lambda: uid; del sys.argv[:2]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)
"""The tests may run as root, which the probe refuses."""


def run(tmp_path: Path, *arguments: str, uid: int = 990, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-c", AS_USER, str(uid), str(support.PATH), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def written(tmp_path: Path, config: dict[str, object]) -> str:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(config))
    return str(path)


def test_run_becomes_the_server_with_exactly_its_arguments_and_environment(tmp_path: Path) -> None:
    program = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ), os.getpid()]))"
    path = written(tmp_path, support.config(tmp_path, support.free_port(), environment=["GGML_A"]))
    argv = [sys.executable, "-I", "-c", program, "--", 'a "b" $c %d', "", "--x"]
    done = run(tmp_path, "run", path, "--", *argv, GGML_A="é $x", LLAMA_ARG_PORT="1", LD_DEBUG="")
    seen, environment, _ = json.loads(done.stdout)
    assert done.returncode == 0
    assert seen == argv[4:]
    # Python itself adds LC_CTYPE where no locale is set (PEP 538).
    assert {name: value for name, value in environment.items() if name != "LC_CTYPE"} == {"GGML_A": "é $x"}


def test_run_refuses_before_it_becomes_anything(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# none\n")
    path = written(tmp_path, support.config(tmp_path, support.free_port()))
    done = run(tmp_path, "run", path, "--", "/bin/sh", "-c", "echo started")
    assert (done.returncode, done.stdout) == (78, "")
    assert "open to everybody" in done.stderr


@pytest.mark.parametrize("arguments", [("before",), ("run", "--", "/bin/sh", "-c", "echo started")])
def test_a_server_is_never_started_as_root(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    path = written(tmp_path, support.config(tmp_path, support.free_port()))
    done = run(tmp_path, arguments[0], path, *arguments[1:], uid=0)
    assert (done.returncode, done.stdout) == (78, "")
    assert "never started as root" in done.stderr


def test_a_program_that_is_not_there_is_a_configuration_error(tmp_path: Path) -> None:
    path = written(tmp_path, support.config(tmp_path, support.free_port()))
    done = run(tmp_path, "run", path, "--", str(tmp_path / "llama-server"))
    assert done.returncode == 78
    assert "No such file" in done.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "Expecting"), ("[]", "schema 1"), ('{"schema": 2}', "schema 1"), ('{"schema": 1}', "incomplete")],
)
def test_a_broken_configuration_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "chat.json"
    path.write_text(text)
    done = run(tmp_path, "before", str(path))
    assert done.returncode == 78
    assert why in done.stderr


@pytest.mark.parametrize("arguments", [[], ["before"], ["run", "x", "/bin/true"], ["other", "x"]])
def test_wrong_usage_is_explained(tmp_path: Path, arguments: list[str]) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 78
    assert "start-probe before CONFIG" in done.stderr
