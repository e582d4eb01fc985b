"""Waking a host: the packet as a real receiver gets it, and the wait for SSH."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from llamarig.errors import RigError
from llamarig.fleet import wake as waking
from llamarig.fleet.wake import (
    Woken,
    magic_packet,
    send,
    ssh_answers,
    wake_host,
    wake_hosts,
    wake_sleepers,
    with_waking,
)
from llamarig.spec.fleet_file import FleetSections
from llamarig.spec.host import HostSpec, Wake
from llamarig.spec.load import LoadedHost

DEMO = Path(__file__).resolve().parents[3] / "inventory/demo.yml"
MAC = "01:23:45:67:89:ab"


@pytest.fixture
def receiver() -> Iterator[socket.socket]:
    """A card of its own: whatever comes to its port, by broadcast too."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.bind(("", 0))
        card.settimeout(10)
        yield card


def wake(card: socket.socket, **given: object) -> Wake:
    keys = {"mac": MAC, "broadcast": "127.255.255.255", "port": card.getsockname()[1], "wait-s": 5}
    return Wake.model_validate(keys | given)


@contextlib.contextmanager
def listening(greeting: bytes, port: int = 0) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(10)

        def greet() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connection.sendall(greeting)
                    connection.close()

        thread = threading.Thread(target=greet)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_packet_is_six_times_ff_and_sixteen_times_the_address() -> None:
    packet = magic_packet(MAC)
    assert len(packet) == 102
    assert packet.hex() == "ff" * 6 + "0123456789ab" * 16


@pytest.mark.parametrize("broadcast", ["127.255.255.255", "127.0.0.1"])
def test_a_receiver_gets_the_packet(receiver: socket.socket, broadcast: str) -> None:
    send(wake(receiver, broadcast=broadcast))
    packet, _ = receiver.recvfrom(2000)
    assert packet == magic_packet(MAC)


def test_a_host_that_sleeps_is_woken_and_waited_for(receiver: socket.socket) -> None:
    port, awake = free_port(), threading.Event()

    def sleep_until_the_packet() -> None:
        assert receiver.recvfrom(2000)[0] == magic_packet(MAC)
        with listening(b"SSH-2.0-OpenSSH_10.0\r\n", port):
            awake.wait(10)

    host = threading.Thread(target=sleep_until_the_packet)
    host.start()
    try:
        found = wake_host(wake(receiver), "127.0.0.1", port)
    finally:
        awake.set()
        host.join()
    assert found.answers
    assert found.packets == 1
    assert found.reason == ""


def test_a_host_that_is_awake_gets_no_packet(receiver: socket.socket) -> None:
    receiver.settimeout(0.2)
    with listening(b"SSH-2.0-x\r\n") as port:
        assert wake_host(wake(receiver), "127.0.0.1", port) == Woken(answers=True)
    with pytest.raises(TimeoutError):
        receiver.recvfrom(2000)


def test_a_host_that_does_not_wake_is_given_up_in_time(
    receiver: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "_AGAIN_S", 0.3)
    monkeypatch.setattr(waking, "_PAUSE_S", 0.1)
    found = wake_host(wake(receiver, **{"wait-s": 1}), "127.0.0.1", free_port())
    assert not found.answers
    assert found.packets >= 2
    assert 1 <= found.seconds < 4
    assert "does not answer after 1 s" in found.reason


def test_what_greets_otherwise_is_no_ssh() -> None:
    with listening(b"HTTP/1.1 200") as port:
        assert not ssh_answers("127.0.0.1", port)
    with listening(b"") as port:
        assert not ssh_answers("127.0.0.1", port)


def test_a_packet_that_cannot_be_sent_says_why(monkeypatch: pytest.MonkeyPatch, receiver: socket.socket) -> None:
    def refused(_wake: Wake) -> None:
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(waking, "send", refused)
    found = wake_host(wake(receiver), "127.0.0.1", free_port())
    assert found.packets == 0
    assert found.reason.endswith("cannot be sent to 127.255.255.255: Network is unreachable")


def test_hosts_are_woken_together_and_those_without_the_section_left_alone(receiver: socket.socket) -> None:
    document = yaml.safe_load(DEMO.read_text())
    with listening(b"SSH-2.0-x\r\n") as port:
        keys = {"mac": MAC, "broadcast": "127.0.0.1", "port": receiver.getsockname()[1], "wait-s": 1}
        document["connection"] = {"address": "127.0.0.1", "port": port}
        awake = HostSpec.model_validate(document | {"wake": keys})
        document["connection"] = {"address": "127.0.0.1", "port": free_port()}
        asleep = HostSpec.model_validate(document | {"wake": keys})
        told: list[tuple[str, str]] = []
        specs = {"a": awake, "b": asleep, "c": HostSpec.model_validate(document)}
        found = wake_hosts(specs, lambda event: told.append((event["event"], event["host"])))
    assert sorted(found) == ["a", "b"]
    assert told == [("waking", "a"), ("waking", "b"), ("woken", "a"), ("woken", "b")]
    assert found["a"] == Woken(answers=True)
    assert not found["b"].answers
    assert receiver.recvfrom(2000)[0] == magic_packet(MAC)


def test_a_fleet_may_say_that_nobody_is_woken(receiver: socket.socket) -> None:
    document = yaml.safe_load(DEMO.read_text()) | {"connection": {"address": "127.0.0.1", "port": free_port()}}
    keys = {"mac": MAC, "broadcast": "127.0.0.1", "port": receiver.getsockname()[1], "wait-s": 1}
    spec = HostSpec.model_validate(document | {"wake": keys})
    quiet = FleetSections.model_validate({"rollout": {"wake": False}})
    asleep, left = LoadedHost("a", DEMO, spec), LoadedHost("b", DEMO, spec, fleet=quiet)
    found = wake_sleepers([asleep, left, LoadedHost("broken", DEMO, None)])
    assert list(found) == ["a"]
    error = with_waking(RigError("the host cannot be reached", "a", "No route to host"), found["a"])
    assert error.why == "it was woken, and SSH does not answer after 1 s; No route to host"
