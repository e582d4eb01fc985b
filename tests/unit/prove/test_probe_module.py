"""rig_probe against stand-in servers over TCP, TLS and a unix socket; its key goes to the right socket alone."""

from __future__ import annotations

import json
import os
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import module, part
from tests.support.standins.server import serving
from tests.support.standins.server_engine import KEY, FakeEngine, handler

LIMITS = {"timeout": 2, "completion_timeout": 3, "tokens": 8}


def service(address: str, tmp_path: Path, **changes: Any) -> dict[str, Any]:
    host, _, port = address.removeprefix("http://").partition(":")
    key_file = tmp_path / "keys"
    key_file.write_text(f"# default\n{KEY}\n")
    base = {"name": "chat", "unit": "llama-chat.service", "address": host, "port": int(port or 0), "tls": False}
    return {**base, "key_file": str(key_file), "gpu": False, "release": "", **changes}


def talk(rig_probe: Any, asked: dict[str, Any], *, ours: bool = True) -> dict[str, Any]:
    said, key = rig_probe._talk(asked, LIMITS, ours)
    clipped: dict[str, Any] = rig_talk().clip(said)
    return rig_probe._scrubbed(clipped, key) if key else clipped


def rig_talk() -> Any:
    return part("rig_talk")


@pytest.fixture
def rig_probe() -> Any:
    return module("rig_probe")


@pytest.fixture
def witness() -> Any:
    module("rig_probe")
    return part("rig_witness")


def test_every_question_is_asked_and_answered(rig_probe: Any, tmp_path: Path) -> None:
    engine = FakeEngine()
    with serving(handler(engine)) as address:
        said = talk(rig_probe, service(address, tmp_path))
    assert said["health"] == {"status": 200, "json": {"status": "ok"}}
    assert said["open"] == {"status": 401}
    assert said["wrong-key"] == {"status": 401}
    assert said["props"]["json"] == {
        "build_info": "b1-x", "total_slots": 2, "model_path": "/m.gguf", "n_ctx": 2048,
        "modalities": {"vision": False, "audio": False},
    }  # fmt: skip
    assert [slot["n_ctx"] for slot in said["slots"]["json"]] == [2048, 2048]
    assert said["models"]["json"] == {"ids": ["m"]}
    assert said["metrics"]["json"] == {"llamacpp:prompt_tokens_total": 3.0}
    assert said["completion"]["json"]["text"] == "Hello!"


def test_the_key_is_not_sent_to_a_socket_of_somebody_else(rig_probe: Any, tmp_path: Path) -> None:
    engine = FakeEngine()
    with serving(handler(engine)) as address:
        said = talk(rig_probe, service(address, tmp_path), ours=False)
    assert KEY not in engine.keys_seen
    assert "not sent" in said["withheld"]
    assert "props" not in said


def test_a_key_that_the_server_says_back_is_not_returned(rig_probe: Any, tmp_path: Path) -> None:
    engine = FakeEngine(echo_key=True)
    with serving(handler(engine)) as address:
        said = talk(rig_probe, service(address, tmp_path))
    assert KEY in engine.keys_seen
    assert said["props"]["json"]["build_info"] == "***"
    assert KEY not in json.dumps(said)


def test_a_keyless_service_is_asked_without_a_key(rig_probe: Any, tmp_path: Path) -> None:
    engine = FakeEngine(keyed=False)
    with serving(handler(engine)) as address:
        said = talk(rig_probe, service(address, tmp_path, key_file=""))
    assert engine.keys_seen == []
    assert said["open"] == {"status": 200}
    assert said["completion"]["json"]["text"] == "Hello!"


def test_a_server_that_still_loads_is_not_asked_for_a_completion(rig_probe: Any, tmp_path: Path) -> None:
    engine = FakeEngine(health=503)
    with serving(handler(engine)) as address:
        said = talk(rig_probe, service(address, tmp_path))
    assert said["health"]["status"] == 503
    assert "/v1/chat/completions" not in engine.paths


def test_an_answer_that_never_ends_is_cut_off_in_time(rig_probe: Any, tmp_path: Path) -> None:
    with serving(handler(FakeEngine(drip=True))) as address:
        began = time.monotonic()
        answer = rig_talk().ask(rig_talk().connector(service(address, tmp_path)), "/props", 0.5)
        assert time.monotonic() - began < 2
    assert "no whole answer within 0.5 s" in answer["error"]


def test_an_answer_that_is_too_long_is_cut_off(rig_probe: Any, tmp_path: Path) -> None:
    with serving(handler(FakeEngine(flood=True))) as address:
        answer = rig_talk().ask(rig_talk().connector(service(address, tmp_path)), "/props", 5)
    assert "longer than" in answer["error"]


@pytest.mark.parametrize(
    "garbage",
    [
        b"[" * 100_000,
        b'{"a":' * 400 + b"1e999" + b"}" * 400,
        b"\xff\xfe",
        b"null",
        b'{"choices": [3], "data": 7}',
        b"NaN",
    ],
)
def test_garbage_is_returned_as_such(rig_probe: Any, tmp_path: Path, garbage: bytes) -> None:
    with serving(handler(FakeEngine(keyed=False, garbage=garbage))) as address:
        said = talk(rig_probe, service(address, tmp_path, key_file=""))
    assert said["completion"]["status"] == 200
    assert len(json.dumps(said)) < 100_000


def test_nobody_there_is_an_error_in_words(rig_probe: Any, tmp_path: Path) -> None:
    answer = rig_talk().ask(rig_talk().connector(service("127.0.0.1:1", tmp_path)), "/health", 2)
    assert "refused" in answer["error"]


def test_tls_is_spoken_where_it_is_planned(rig_probe: Any, tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=elsewhere",
         "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler(FakeEngine()))
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        asked = service(f"127.0.0.1:{server.server_address[1]}", tmp_path, tls=True)
        assert talk(rig_probe, asked)["completion"]["json"]["text"] == "Hello!"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def on_socket(path: Path, engine: FakeEngine) -> Iterator[None]:
    server = socketserver.ThreadingUnixStreamServer(str(path), handler(engine))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def test_a_unix_socket_is_spoken_to_and_its_owner_is_told_by_the_kernel(
    rig_probe: Any, witness: Any, tmp_path: Path
) -> None:
    path = tmp_path / "chat.sock"
    asked = {**service("x:1", tmp_path), "address": str(path), "port": 0}
    with on_socket(path, FakeEngine()):
        assert talk(rig_probe, asked)["completion"]["json"]["text"] == "Hello!"
        assert witness.owner(asked, os.getpid()) == {"pid": os.getpid(), "ours": True, "why": ""}
        other = witness.owner(asked, 1)
    assert other["ours"] is False
    assert str(os.getpid()) in other["why"]


def test_the_owner_of_a_port_is_told_by_the_kernels_tables(witness: Any, tmp_path: Path) -> None:
    with serving(handler(FakeEngine())) as address:
        asked = service(address, tmp_path)
        assert witness.owner(asked, os.getpid())["ours"] is True
        with subprocess.Popen(["sleep", "30"]) as stranger:
            assert witness.owner(asked, stranger.pid)["ours"] is False
            stranger.kill()
    assert witness.owner(asked, os.getpid())["why"] == "nothing listens there"
    assert witness.owner(asked, 0)["why"] == "the unit has no main process"


def test_a_wildcard_listener_of_another_process_counts(witness: Any, tmp_path: Path) -> None:
    """It would get what a crashed service no longer takes."""
    code = (
        "import socket, time; s = socket.socket(); s.bind(('0.0.0.0', 0)); s.listen(); "
        "print(s.getsockname()[1], flush=True); time.sleep(30)"
    )
    with subprocess.Popen(["python3", "-c", code], stdout=subprocess.PIPE, text=True) as stranger:
        assert stranger.stdout is not None
        port = int(stranger.stdout.readline())
        asked = service(f"127.0.0.1:{port}", tmp_path)
        assert witness.owner(asked, os.getpid())["ours"] is False
        assert witness.owner(asked, stranger.pid)["ours"] is True
        stranger.kill()


@pytest.mark.parametrize(
    ("content", "why"),
    [("", "no key"), ("# only a comment\n\n", "no key"), ("schlüssel\n", "printable"), ("a\x01b\n", "printable")],
)
def test_a_key_file_without_a_usable_key_is_said(rig_probe: Any, tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "keys"
    path.write_text(content)
    key, said = rig_talk().first_key(str(path))
    assert key == ""
    assert why in said


def test_a_key_file_that_is_a_link_or_a_directory_is_not_read(rig_probe: Any, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text(f"{KEY}\n")
    link = tmp_path / "link"
    link.symlink_to(real)
    assert rig_talk().first_key(str(link))[0] == ""
    assert rig_talk().first_key(str(tmp_path))[0] == ""
    assert rig_talk().first_key(str(real))[0] == KEY


def stand_in(tmp_path: Path, name: str, body: str) -> str:
    tool = tmp_path / name
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)
    return f"{tmp_path}:/usr/bin:/bin"


def test_the_drivers_account_is_read_a_line_a_process(
    witness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for nvidia-smi; the rows are composed in the form of --query-compute-apps."""
    rows = "812, GPU-a, 23952\\n813, GPU-b, [N/A]\\nnonsense\\n"
    monkeypatch.setattr(witness, "PATH", stand_in(tmp_path, "nvidia-smi", f"printf '{rows}'"))
    assert witness.vram() == {
        "processes": [{"pid": 812, "uuid": "GPU-a", "mib": 23952.0}, {"pid": 813, "uuid": "GPU-b", "mib": None}],
        "error": "",
    }


def test_a_driver_that_does_not_answer_is_said(witness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "PATH", stand_in(tmp_path, "nvidia-smi", "echo version mismatch; exit 18"))
    assert "version mismatch" in witness.vram()["error"]
    monkeypatch.setattr(witness, "SMI_SECONDS", 0.2)
    monkeypatch.setattr(witness, "PATH", stand_in(tmp_path, "nvidia-smi", "exec sleep 5"))
    assert "no answer" in witness.vram()["error"]
    monkeypatch.setattr(witness, "PATH", "/nonexistent")
    assert witness.vram()["error"] == "nvidia-smi is not there"


def test_only_the_telling_lines_of_a_start_are_kept(
    witness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = "load_tensors: offloaded 31/31 layers to GPU", "KV buffer size = 1 MiB"
    body = f"echo '{first}'; yes 'user text' | head -5000; echo '{last}'"
    monkeypatch.setattr(witness, "PATH", stand_in(tmp_path, "journalctl", body))
    assert witness.journal("a" * 32)["lines"] == [first, last]
    assert "never started" in witness.journal("; reboot")["error"]


def test_a_journal_without_end_is_left_in_time(witness: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "JOURNAL_SECONDS", 1)
    monkeypatch.setattr(witness, "PATH", stand_in(tmp_path, "journalctl", "echo 'offload'; exec sleep 20"))
    began = time.monotonic()
    found = witness.journal("a" * 32)
    assert time.monotonic() - began < 5
    assert found["lines"] == ["offload"]
    assert "no whole answer" in found["error"]


def test_code_from_elsewhere_in_a_process_is_told(witness: Any, tmp_path: Path) -> None:
    own = witness.mapped(os.getpid(), "")
    assert own["error"] == ""
    assert witness.mapped(0, "")["error"]
