"""Ways to break a machine of the lab, and to mend it again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

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


def main_pid(host: Host, unit: str) -> int:
    """The main process of a unit; 0 when it does not run."""
    return int(host.exec(f"systemctl show -P MainPID {unit}").output)


def wait_for(what: str, holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Until ``holds`` says yes; :class:`LabError` naming ``what`` when it does not in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return
        time.sleep(0.2)
    raise LabError(f"waited {seconds:.0f} s in vain: {what}")
