"""A controller and one machine with nothing but a wire between them: no other interface, and no route."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docker.errors import APIError
from lab import Host, Lab
from lab.packages import LabError, ensure_commands

CONTROLLER, MACHINE = "10.77.0.1", "10.77.0.2"
PORT = 8000
SERVER = Path(__file__).with_name("static_server.py")


def _do(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"`{' '.join(words)}` ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


@dataclass(frozen=True)
class Wire:
    """A network namespace for the controller, joined to the machine alone."""

    namespace: str
    host: Host
    """The machine by the address that it has on the wire."""

    def inside(self, *command: str) -> list[str]:
        """``command`` as it is run where the controller is."""
        return ["ip", "netns", "exec", self.namespace, *command]

    @contextlib.contextmanager
    def serving(self, directory: Path, log: Path) -> Iterator[str]:
        """A web server over ``directory`` at the controller's end, and its address; requests go to ``log``."""
        command = self.inside("python3", str(SERVER), CONTROLLER, str(PORT), str(directory))
        with log.open("w") as stream:
            server = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, text=True)
        try:
            yield f"http://{CONTROLLER}:{PORT}"
        finally:
            server.terminate()
            server.wait()


@contextlib.contextmanager
def wire(lab: Lab, host: Host) -> Iterator[Wire]:
    """Take a running machine off its network and join it to a namespace of the controller's own."""
    ensure_commands({"ip": "iproute2", "nsenter": "util-linux"})
    namespace = f"rig{os.getpid()}"
    near, far = f"rn{os.getpid()}"[:15], f"rf{os.getpid()}"[:15]
    host.container.reload()
    pid = str(host.container.attrs["State"]["Pid"])
    for name in host.container.attrs["NetworkSettings"]["Networks"]:
        with contextlib.suppress(APIError):
            lab.client.networks.get(name).disconnect(host.container, force=True)
    _do("ip", "netns", "add", namespace)
    try:
        _do("ip", "link", "add", near, "netns", namespace, "type", "veth", "peer", "name", far, "netns", pid)
        ends = (
            (("ip", "netns", "exec", namespace), near, CONTROLLER),
            (("nsenter", "--target", pid, "--net"), far, MACHINE),
        )
        for enter, link, address in ends:
            ip = functools.partial(_do, *enter, "ip")
            ip("address", "add", f"{address}/30", "dev", link)
            ip("link", "set", link, "up")
            ip("link", "set", "lo", "up")
        yield Wire(namespace, Host(host.name, host.container, MACHINE, host.host_key, host.identity_file.parent))
    finally:
        _do("ip", "netns", "delete", namespace)
