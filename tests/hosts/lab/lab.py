"""A lab: a network of its own, the machines in it, and the key that opens them."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from docker.errors import NotFound
from docker.models.containers import Container
from docker.models.networks import Network

from lab import archives
from lab.engine import ensure_engine, stop_engine
from lab.host import Host, put_file
from lab.image import ensure_image
from lab.packages import cache_dir, ensure_commands
from lab.ssh import KeyPair, write_ssh_config

LABEL = "llamarig-lab"
CCACHE = "/var/cache/llamarig/ccache"
_INIT = (
    "umount -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup; "
    "mount --make-rshared /; exec /usr/lib/systemd/systemd"
)
"""On a cgroup v1 machine systemd 257 needs a cgroup2 mount of its own; on v2 this gives the same.
The root has to be shared as on a real machine, or LoadCredential= mounts stay out of sight."""
_RIGHTS = ("SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE")
_FORM = hashlib.sha256(repr((_INIT, _RIGHTS, archives.MOUNT, CCACHE)).encode()).hexdigest()[:16]
"""Names the way in which machines are made."""


class Lab:
    """Machines named by their host name, in one network, under one label.

    Two labs do not touch each other; :meth:`remove` takes away only what this one
    made. ``state`` holds the keys and outlives the process, so a lab can be found again.
    """

    def __init__(self, name: str, state: Path | None = None) -> None:
        self.name = name
        self.state = state if state is not None else cache_dir() / "lab" / "run" / name
        ensure_commands({"ssh": "openssh-client", "ssh-keygen": "openssh-client"})
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.engine = ensure_engine()
        self.client = self.engine.client
        self._identity()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def host(self, name: str, *, fresh: bool = False, image: str | None = None) -> Host:
        """The machine of that name, booted; ``fresh`` throws a former one away.

        A new one is bare, unless ``image`` names a :meth:`snapshot`.
        """
        if fresh:
            self.discard(name)
        container = self._container(name)
        if container is not None and container.labels.get(f"{LABEL}.form") != _FORM:
            # Made by another version of the lab: it is not what would be made now.
            self.discard(name)
            container = None
        made = container is None and image is None
        if container is None:
            container = self._create(name, image or ensure_image(self.client))
        if container.status != "running":
            container.start()
        container.reload()
        host = self._describe(name, container)
        host.wait_booted()
        if made:
            archives.hand_out(host)
        return host

    def hosts(self) -> list[str]:
        """The names of this lab's machines, running or not."""
        return sorted(str(container.labels[f"{LABEL}.host"]) for container in self._containers())

    def container_id(self, name: str) -> str | None:
        """The id of the container of that machine, None when there is none."""
        container = self._container(name)
        return None if container is None else str(container.id)

    def discard(self, name: str) -> None:
        """Take one machine away, if it is there."""
        container = self._container(name)
        if container is not None:
            container.remove(force=True, v=True)

    def snapshot(self, host: Host, tag: str) -> str:
        """An image of a machine's disk as it is now; further machines can start from it. Gone with the lab."""
        repository = f"{LABEL}-{self.name}"
        host.container.commit(repository=repository, tag=tag, changes=f"LABEL {LABEL}={self.name}")
        return f"{repository}:{tag}"

    def clear(self) -> None:
        """Take away the machines, their network and snapshots, and the keys; then start with new keys."""
        for container in self._containers():
            container.remove(force=True, v=True)
        for network in self.client.networks.list(filters={"label": f"{LABEL}={self.name}"}):
            network.remove()
        for image in self.client.images.list(f"{LABEL}-{self.name}"):
            self.client.images.remove(str(image.id), force=True)
        shutil.rmtree(self.state, ignore_errors=True)
        self.state.mkdir(parents=True, mode=0o700)
        self._identity()

    def remove(self) -> None:
        """Take away all of the lab, and the engine if a lab started it and nobody else uses it."""
        self.clear()
        shutil.rmtree(self.state, ignore_errors=True)
        if not self.client.containers.list():
            stop_engine()

    def _containers(self) -> list[Container]:
        found: list[Container] = self.client.containers.list(all=True, filters={"label": f"{LABEL}={self.name}"})
        return found

    def _container(self, name: str) -> Container | None:
        try:
            container: Container = self.client.containers.get(self._full(name))
        except NotFound:
            return None
        return container

    def _full(self, name: str) -> str:
        return f"{LABEL}-{self.name}-{name}"

    def _network(self) -> Network:
        found: list[Network] = self.client.networks.list(filters={"label": f"{LABEL}={self.name}"})
        if found:
            return found[0]
        made: Network = self.client.networks.create(f"{LABEL}-{self.name}", driver="bridge", labels={LABEL: self.name})
        return made

    def _create(self, name: str, image: str) -> Container:
        kept = cache_dir() / "ccache"
        kept.mkdir(parents=True, exist_ok=True)
        mounts = {
            str(archives.store()): {"bind": archives.MOUNT, "mode": "rw"},
            str(kept): {"bind": CCACHE, "mode": "rw"},
        }
        container: Container = self.client.containers.create(
            image,
            ["sh", "-c", _INIT],
            name=self._full(name),
            hostname=name,
            network=self._network().name,
            labels={LABEL: self.name, f"{LABEL}.host": name, f"{LABEL}.form": _FORM},
            cgroupns="private",
            cap_add=list(_RIGHTS),
            security_opt=["seccomp=unconfined", "apparmor=unconfined"],
            tmpfs={"/run": "", "/run/lock": ""},
            environment={"container": "docker"},
            stop_signal="SIGRTMIN+3",
            volumes=mounts,
        )
        host_key, identity = self._host_key(name), self._identity()
        put_file(container, "/etc/ssh/ssh_host_ed25519_key", host_key.private.read_bytes(), 0o600)
        put_file(container, "/etc/ssh/ssh_host_ed25519_key.pub", host_key.public.read_bytes(), 0o644)
        put_file(container, "/etc/ssh/sshd_config.d/lab.conf", b"HostKey /etc/ssh/ssh_host_ed25519_key\n", 0o644)
        put_file(container, "/root/.ssh/authorized_keys", identity.public.read_bytes(), 0o600)
        return container

    def _describe(self, name: str, container: Container) -> Host:
        networks = container.attrs["NetworkSettings"]["Networks"]
        address = next(str(entry["IPAddress"]) for entry in networks.values())
        host_key = self._host_key(name).public_text()
        write_ssh_config(self.state, name, address, self._identity().private, host_key)
        return Host(name, container, address, host_key, self.state)

    def _identity(self) -> KeyPair:
        return KeyPair(self.state / "id_ed25519", f"{LABEL}-{self.name}")

    def _host_key(self, name: str) -> KeyPair:
        return KeyPair(self.state / f"host-{name}", f"{LABEL}-{self.name}")
