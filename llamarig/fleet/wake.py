"""Wake hosts that sleep by Wake-on-LAN, and wait until their SSH answers.

The packet is six bytes 0xff and the card's address sixteen times (AMD, "Magic Packet Technology", 1995); the card looks
for that in whatever it receives. Nothing answers it, and it may get lost, so it is sent again until the host is there.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from llamarig.errors import RigError

if TYPE_CHECKING:
    from llamarig.spec.host import HostSpec, Wake
    from llamarig.spec.load import LoadedHost

Tell = Callable[[dict[str, Any]], None]
_BANNER = b"SSH-"
_ANSWER_S = 3.0
"""How long one try of SSH may take."""
_AGAIN_S = 10.0
"""Seconds between packets."""
_PAUSE_S = 1.0
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Woken:
    """What came of it for one host."""

    answers: bool
    """Whether its SSH answers."""
    packets: int = 0
    """How many were sent; none where it was awake."""
    seconds: float = 0.0
    reason: str = ""
    """Why it does not answer, in words."""


def magic_packet(mac: str) -> bytes:
    """The packet for a MAC address, ``01:23:45:67:89:ab``."""
    return b"\xff" * 6 + bytes.fromhex(mac.replace(":", "")) * 16


def send(wake: Wake) -> None:
    """Send one packet. Raises OSError where the controller has no way to that address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sender.sendto(magic_packet(wake.mac), (wake.broadcast, wake.port))


def ssh_answers(address: str, port: int, seconds: float = _ANSWER_S) -> bool:
    """Whether an SSH server greets there; nothing is sent to it."""
    try:
        with socket.create_connection((address, port), seconds) as connection:
            connection.settimeout(seconds)
            return connection.recv(len(_BANNER), socket.MSG_WAITALL) == _BANNER
    except OSError:
        return False


def wake_host(wake: Wake, address: str, port: int) -> Woken:
    """Wake one host unless it answers already, and wait for it as long as its spec says."""
    started = time.monotonic()
    if ssh_answers(address, port):
        return Woken(answers=True)
    packets, sent_at = 0, -_AGAIN_S
    while True:
        now = time.monotonic() - started
        if now - sent_at >= _AGAIN_S:
            try:
                send(wake)
            except OSError as error:
                reason = f"the packet that wakes it cannot be sent to {wake.broadcast}: {error.strerror or error}"
                return Woken(answers=False, packets=packets, seconds=round(now, 1), reason=reason)
            packets, sent_at = packets + 1, now
        if ssh_answers(address, port, min(_ANSWER_S, max(0.1, wake.wait_s - now))):
            return Woken(answers=True, packets=packets, seconds=round(time.monotonic() - started, 1))
        now = time.monotonic() - started
        if now >= wake.wait_s:
            reason = f"it was woken, and SSH does not answer after {now:.0f} s"
            return Woken(answers=False, packets=packets, seconds=round(now, 1), reason=reason)
        time.sleep(min(_PAUSE_S, max(0.0, wake.wait_s - now)))


def wake_hosts(specs: Mapping[str, HostSpec], tell: Tell | None = None) -> dict[str, Woken]:
    """Wake those hosts that have a ``wake`` section, all at once; the others are not in the answer.

    ``tell`` hears ``waking`` of each before any is woken, and ``woken`` when it answers or is given up.
    One that does not answer here may still be reached by ways that only ssh knows, such as a jump host: whoever looks
    at it next has the last word.
    """
    sleepers = {name: (spec.wake, spec) for name, spec in specs.items() if spec.wake is not None}
    if not sleepers:
        return {}

    def woken(name: str) -> Woken:
        wake, spec = sleepers[name]
        try:
            return wake_host(wake, spec.connection.address or name, spec.connection.port)
        finally:
            if tell is not None:
                tell({"event": "woken", "host": name})

    if tell is not None:
        for name in sleepers:
            tell({"event": "waking", "host": name})
    with ThreadPoolExecutor(min(_AT_ONCE, len(sleepers)), thread_name_prefix="wake") as pool:
        answers = {name: pool.submit(woken, name) for name in sleepers}
        return {name: answer.result() for name, answer in answers.items()}


def wake_sleepers(hosts: Sequence[LoadedHost], tell: Tell | None = None) -> dict[str, Woken]:
    """The same for loaded hosts, less those whose fleet says ``rollout: {wake: false}``."""
    chosen = [each for each in hosts if each.fleet.rollout is None or each.fleet.rollout.wake]
    return wake_hosts({each.host: each.spec for each in chosen if each.spec is not None}, tell)


def with_waking(error: RigError, woken: Woken) -> RigError:
    """The error of a host that stays silent, with what came of waking it."""
    return replace(error, why="; ".join(filter(None, (woken.reason, error.why))))


__all__ = ["Woken", "magic_packet", "send", "ssh_answers", "wake_host", "wake_hosts", "wake_sleepers", "with_waking"]
