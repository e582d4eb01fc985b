"""A site without internet access: its controller, with nothing but a mirror that was carried there."""

from __future__ import annotations

import contextlib
import copy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lab.project import Project, Ran, demo_spec

from tests.support.mirror.wire import CONTROLLER, PORT, Wire


def site_spec(connection: dict[str, Any], served: bool = True) -> dict[str, Any]:
    """The demo's spec for a machine of the site, with a server there or with the controller's copies alone."""
    spec = copy.deepcopy(demo_spec())
    spec["models"]["smol"]["fetch"] = "mirror"
    spec["mirror"] = {"path": "../mirror", **({"url": f"http://{CONTROLLER}:{PORT}"} if served else {})}
    return {**spec, "connection": connection}


@dataclass
class Site:
    """The controller of the site, which has the mirror, a Python of its own and an empty cache."""

    wire: Wire
    project: Project
    place: Path
    mirror: Path
    log: Path

    @classmethod
    @contextlib.contextmanager
    def opened(cls, joined: Wire, made: Path, place: Path, served: bool = True) -> Iterator[Self]:
        """Carry the mirror ``made`` to ``place``, serve it on the wire, and install llamarig from it alone."""
        mirror = Path(shutil.copytree(made, place / "mirror"))
        # What other machines of the lab have fetched would hide what the mirror lacks.
        joined.host.exec("rm -rf /var/cache/apt/archives/*.deb /var/lib/apt/lists/*")
        project = Project(place / "project")
        project.describe(joined.host, site_spec(joined.host.connection(), served))
        (place / "home").mkdir()
        site = cls(joined, project, place, mirror, place / "requests.log")
        with joined.serving(mirror, site.log) if served else contextlib.nullcontext():
            site._install()
            yield site

    def _install(self) -> None:
        """As the runbook says."""
        python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        wheels = self.mirror / "python"
        pip = [str(self.place / "venv/bin/pip"), "install", "--quiet", "--no-index", "--require-hashes"]
        for command in (
            [str(python), "-m", "venv", str(self.place / "venv")],
            ["sh", "-c", f"cd {self.mirror} && sha256sum --check --quiet SHA256SUMS"],
            [*pip, "--find-links", str(wheels), "--requirement", str(wheels / "requirements.txt")],
        ):
            done = self.run(*command)
            assert done.returncode == 0, done.stdout + done.stderr

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command where nothing but the wire is, with nothing of this machine's environment."""
        return subprocess.run(
            self.wire.inside("env", "-i", *self._environment(), *command),
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=1800,
            check=False,
        )

    def rig(self, *words: str) -> Ran:
        """The installed llamarig on the site's project."""
        done = self.run(str(self.place / "venv/bin/llamarig"), "-C", str(self.project.directory), *words)
        return Ran(" ".join(words), done.returncode, done.stdout, done.stderr, 0.0)

    def requests(self) -> list[str]:
        """What was asked of the site's server."""
        return self.log.read_text().splitlines()

    def _environment(self) -> list[str]:
        values = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.place / "home"),
            "XDG_CACHE_HOME": str(self.place / "cache"),
            "LC_ALL": "C.UTF-8",
        }
        return [f"{name}={value}" for name, value in values.items()]
