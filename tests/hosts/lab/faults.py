"""Ways to break a machine of the lab, and to mend it again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lab.host import Host
from lab.packages import LabError


@contextlib.contextmanager
def network_cut(host: Host) -> Iterator[None]:
    """No packet passes; the machine keeps its address and gets it back at the end."""
    host.exec("ip link set eth0 down")
    try:
        yield
    finally:
        host.exec("ip link set eth0 up")
        gateway = host.container.attrs["NetworkSettings"]["Networks"]
        address = next(str(entry["Gateway"]) for entry in gateway.values())
        host.exec(f"ip route replace default via {address}")


@contextlib.contextmanager
def slow_network(host: Host, mbit: int) -> Iterator[None]:
    """What reaches the machine is held to ``mbit`` Mbit/s, so that a copy can be caught halfway.

    The machine's end of the cable shapes what it sends; what it gets is shaped at the other
    end, which lies in this machine's own network: a short-lived helper container works there.
    """
    peer = host.exec("cat /sys/class/net/eth0/iflink").output.strip()
    find = f'for d in /sys/class/net/*; do [ "$(cat $d/ifindex)" = {peer} ] && DEV=${{d##*/}}; done; '
    _outside(host, find + f"tc qdisc replace dev $DEV root tbf rate {mbit}mbit burst 64k latency 200ms")
    try:
        yield
    finally:
        _outside(host, find + "tc qdisc del dev $DEV root")


def _outside(host: Host, command: str) -> None:
    """Run a command in the network of the machine that the lab runs on, with the tools of the lab's image."""
    client, image = host.container.client, host.container.image
    if client is None or image is None:
        raise LabError("the container has lost its engine")
    client.containers.run(image, ["sh", "-ec", command], network_mode="host", cap_add=["NET_ADMIN"], remove=True)


@contextlib.contextmanager
def small_disk(host: Host, path: str, mib: int) -> Iterator[None]:
    """A filesystem of ``mib`` MiB over ``path``; what lay there is back at the end."""
    host.exec(f"mkdir -p {path} && mount -t tmpfs -o size={mib}m,mode=0755 tmpfs {path}")
    try:
        yield
    finally:
        host.exec(f"umount -l {path}")


def kill(host: Host, pid: int, signal: str = "KILL") -> None:
    """Send a signal to one process of the machine, by its id there."""
    host.exec(f"kill -{signal} {pid}")


def pull_the_plug(host: Host) -> None:
    """Power lost: every process of the machine ends at once, nothing is flushed or told."""
    host.container.kill()


def main_pid(host: Host, unit: str) -> int:
    """The main process of a unit; 0 when it does not run."""
    # While a killed unit is started again systemctl was seen to print nothing.
    return int(host.exec(f"systemctl show -P MainPID {unit}").output.strip() or 0)


def wait_for(what: str, holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Until ``holds`` says yes; :class:`LabError` naming ``what`` when it does not in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return
        time.sleep(0.2)
    raise LabError(f"waited {seconds:.0f} s in vain: {what}")


def descendants(pid: int) -> list[int]:
    """The processes of Ansible that this process has started here, at any depth."""
    found = []
    for child in _read(f"/proc/{pid}/task/{pid}/children").split():
        if "ansible" in _read(f"/proc/{child}/cmdline"):
            found.append(int(child))
        found += descendants(int(child))
    return found


def runs(pid: int) -> bool:
    """Whether a process of this machine still runs; one that ended and waits for its parent does not."""
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"])


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
