"""Starting one server: under its rendered unit where systemd runs, else as a plain process; and stopping it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from llamarig.render.wanted import CONFIG, ROOT, WantedService
from scripts.gpu_check.project import MODELS, Prepared

UNITS = Path("/run/systemd/system")
START_SECONDS = 90
_PROGRAM = "opt/libexec/start-probe"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the parts lie that a host would have in /opt and /etc."""

    work: Path
    release: Path

    def here(self, text: str) -> str:
        """A text of a host with the paths of this place."""
        pairs = {
            f"{ROOT}/current": str(self.release),
            f"{ROOT}/": f"{self.work}/opt/",
            f"{CONFIG}/": f"{self.work}/etc/",
            MODELS: f"{self.work}/models",
        }
        # In one pass: a release that lies below /opt/llamarig keeps its place.
        return re.sub("|".join(map(re.escape, pairs)), lambda match: pairs[match[0]], text)

    def key_file(self, name: str) -> Path:
        """Where the key of a service lies."""
        return self.work / "etc/keys" / f"{name}.keys"


@dataclass(slots=True)
class Started:
    """A server that was started, or was to be."""

    pid: int = 0
    error: str = ""
    """Why it does not run."""
    lines: list[str] = field(default_factory=list)
    """What it wrote up to now."""


def systemd_runs() -> bool:
    """Whether units can be tried: systemd is PID 1, and this is root."""
    return Path("/run/systemd/system").is_dir() and os.geteuid() == 0 and shutil.which("systemctl") is not None


def lay_out(place: Place, prepared: Prepared, models: dict[str, Path]) -> None:
    """Write what the servers read: configurations, keys, the start probe, links to the models."""
    for file in prepared.wanted.files:
        if not file.path.startswith((f"{ROOT}/", f"{CONFIG}/services/", f"{CONFIG}/templates/")):
            continue
        target = Path(place.here(file.path))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(place.here(file.content), encoding="utf-8")
        target.chmod(int(file.mode, 8))
    for service in prepared.wanted.services:
        key = place.key_file(service.name)
        key.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        key.touch(mode=0o600)
        key.write_text(f"{secrets.token_urlsafe(32)}\n", encoding="ascii")
        target, origin = Path(place.here(service.model_path)), models[service.name]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(origin, target)


def unit_text(place: Place, prepared: Prepared, service: WantedService, without: Sequence[str] = ()) -> str:
    """The rendered unit with the paths of this place; ``without`` leaves directives out, each ``KEY=VALUE``.

    The user is made for the time of the run: nothing is left in /etc/passwd. A start that fails is not tried again.
    """
    [content] = [file.content for file in prepared.wanted.files if file.path.endswith(f"/{service.unit}")]
    left_out = {line for each in without for line in lines_of(each)}
    kept = [line for line in place.here(content).splitlines() if line not in left_out]
    kept = ["Restart=no" if line.startswith("Restart=") else line for line in kept]
    at = kept.index("[Install]")
    # As the user that llamarig makes for a service with a card.
    [groups_of] = [user.groups for user in prepared.wanted.users if user.name == service.user]
    groups = [f"SupplementaryGroups={name}" for name in groups_of]
    return "\n".join([*kept[:at], "DynamicUser=yes", *groups, f"WorkingDirectory={place.work}", ""]) + "\n"


def lines_of(directive: str) -> list[str]:
    """The lines of a unit that a directive of UNPROVEN_ON_GPU stands for."""
    key, _, value = directive.partition("=")
    if key == "DeviceAllow":
        return [f"DeviceAllow={device} rw" for device in value.split()] + ["DevicePolicy=closed"]
    return [directive]


@contextmanager
def under_unit(
    place: Place, prepared: Prepared, service: WantedService, without: Sequence[str] = ()
) -> Iterator[Started]:
    """The server under its unit while the context lasts; nothing of it stays."""
    path, started = UNITS / service.unit, Started()
    path.write_text(unit_text(place, prepared, service, without), encoding="utf-8")
    try:
        _systemctl("daemon-reload")
        done = _systemctl("start", service.unit)
        started.pid = int(_systemctl("show", "-p", "MainPID", "--value", service.unit).stdout.strip() or 0)
        started.lines = _journal(service.unit)
        if done.returncode != 0:
            started.error = "\n".join([done.stderr.strip(), *started.lines[-12:]])
        yield started
    finally:
        _systemctl("stop", service.unit)
        _systemctl("reset-failed", service.unit)
        path.unlink(missing_ok=True)
        _systemctl("daemon-reload")


def _systemctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemctl", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def _journal(unit: str) -> list[str]:
    """What the last start of a unit wrote."""
    run = _systemctl("show", "-p", "InvocationID", "--value", unit).stdout.strip()
    command = ["journalctl", "--no-pager", "--output=cat", f"_SYSTEMD_INVOCATION_ID={run}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout.splitlines()


@contextmanager
def as_process(place: Place, service: WantedService) -> Iterator[Started]:
    """The same program, arguments and environment without a sandbox."""
    credentials = f"/run/credentials/{service.unit}/"
    argv = [place.here(word) for word in service.argv]
    argv = [str(place.key_file(service.name)) if word.startswith(credentials) else word for word in argv]
    log = place.work / "log" / f"{service.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started = Started()
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", **service.environment}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            argv, env=environment, cwd=place.work, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT
        )
    try:
        started.pid = process.pid
        started.error = _wait(service, process)
        started.lines = log.read_text(errors="replace").splitlines()
        if started.error:
            started.error = "\n".join([started.error, *started.lines[-12:]])
        yield started
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(service: WantedService, process: subprocess.Popen[bytes]) -> str:
    """Until it is ready; why it is not, or an empty text."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return f"the server ended with {process.returncode}"
        try:
            if httpx.get(f"http://{service.address}:{service.port}/health", timeout=5).status_code == httpx.codes.OK:
                return ""
        except httpx.HTTPError:
            pass
        time.sleep(0.3)
    return f"the server was not ready within {START_SECONDS} s"
