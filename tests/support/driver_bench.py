"""A test host with a repository of stand-ins on its own disk, and what its spec wants of the driver."""

from __future__ import annotations

from pathlib import Path

from lab import Host
from lab.packages import ensure_commands
from lab.project import Project

from tests.support import driver_host
from tests.support.driver_repository import Signer, StandIn, repository

PLACE = "/srv/nvidia"


class Bench:
    """A machine, its project, and the repository on its disk."""

    def __init__(self, host: Host, project: Project, directory: Path) -> None:
        self.host, self.project = host, project
        self.directory = directory
        ensure_commands({"gpg": "gnupg"})

    def signer(self, name: str, digest: str = "SHA256") -> tuple[Signer, str]:
        signer = Signer(self.directory / name, digest)
        fingerprint = signer.make()
        (self.project.directory / f"{name}.asc").write_bytes(signer.public())
        return signer, fingerprint

    def offer(self, packages: list[StandIn], signer: Signer) -> None:
        self.host.exec(f"rm -rf {PLACE}")
        for name, content in repository(packages, signer).items():
            self.host.write(f"{PLACE}/{name}", content)
        self.host.exec(f"chmod 0755 /srv {PLACE}")

    def want(self, version: str, key: str, fingerprint: str, *options: str, release: str = "13") -> driver_host.Played:
        """Have that version from the repository, signed with that key, on that release of Debian."""
        driver = {"source": "directory", "location": PLACE, "version": version, "flavour": "open"}
        pinned = {"key": f"{key}.asc", "key-fingerprint": fingerprint}
        driver_host.describe(self.project, self.host, driver | pinned, release)
        return driver_host.play(self.project, self.host, options=options)

    def unwanted(self) -> driver_host.Played:
        """Have no driver any more."""
        driver_host.describe(self.project, self.host, None)
        return driver_host.play(self.project, self.host)

    def packages(self) -> str:
        return driver_host.packages(self.host)
