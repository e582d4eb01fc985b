"""A release's programs under the loader: which libraries they find, and what the server says of itself.

New binaries run as the build user, without network and with an empty environment. The driver's own library belongs
to the driver, never to a release: where no driver is, the toolkit's stand-in for it is shown to the loader for the
moment of a check, in a private directory, and installed nowhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ansible.module_utils.rig_unpack import RefusedError

DRIVERS = "libcuda.so.1"
"""The one library that a CUDA release lacks on a machine without a driver."""
SERVER = "bin/llama-server"
INTERFACES = Path("/sys/class/net")
_TIMEOUT_S = 120
_FOUND = re.compile(r"^\s*(\S+) => (/.+?) \(0x[0-9a-f]+\)$", re.MULTILINE)
_MISSING = re.compile(r"^\s*(\S+) => not found$")


def without_network() -> list[str]:
    """The words before a command that take the network from it; none where there is no network to take.

    In a container without a network a new network namespace may be forbidden, and would change nothing. Raises
    :class:`RefusedError` where it is forbidden and there is a network.
    """
    words = ["/usr/bin/unshare", "--net"]
    tried = subprocess.run([*words, "/bin/true"], capture_output=True, text=True, errors="replace", check=False)  # noqa: S603 - fixed words
    if tried.returncode == 0:
        return words
    others = sorted({path.name for path in INTERFACES.iterdir()} - {"lo"}) if INTERFACES.is_dir() else ["unknown"]
    if others:
        raise RefusedError(
            f"a new program must not run with a network here, and it cannot be taken from it: {tried.stderr.strip()}; "
            f"there is {', '.join(others)[:200]}. Allow network namespaces, or run the container without a network"
        )
    return []


def sandboxed(user: str, *command: str, libraries: Iterable[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run a new binary as ``user``; ``libraries`` are directories that the loader looks into first."""
    drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
    if libraries:
        environment["LD_LIBRARY_PATH"] = ":".join(libraries)
    return subprocess.run(  # noqa: S603 - no shell, and a user without rights
        [*without_network(), *drop, *command],
        capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT_S, cwd="/", env=environment,
    )  # fmt: skip


def linked(target: Path, names: list[str], user: str, libraries: Iterable[str] = ()) -> dict[str, str]:
    """Name -> path of every library that the loader finds for the files of a release."""
    found: dict[str, str] = {}
    for name in names:
        found |= dict(_FOUND.findall(sandboxed(user, "ldd", str(target / name), libraries=libraries).stdout))
    return found


def missing(target: Path, names: list[str], user: str) -> dict[str, list[str]]:
    """File of the release -> names of the libraries that it lacks, or the loader's words for what else it misses."""
    lacking = {name: _missing(sandboxed(user, "ldd", str(target / name)).stdout) for name in names}
    return {name: libraries for name, libraries in lacking.items() if libraries}


def _missing(listed: str) -> list[str]:
    """Of ldd's lines those that miss something: a library, or a version of a symbol."""
    lines = [line for line in listed.splitlines() if "not found" in line]
    return sorted({match[1] if (match := _MISSING.match(line)) else line.strip() for line in lines})


@contextmanager
def stand_in(prefix: Path | None) -> Iterator[list[str]]:
    """A private directory with the toolkit's stand-in for the driver's library; none when the toolkit has none."""
    places = [prefix / lib / "stubs/libcuda.so" for lib in ("lib", "lib64")] if prefix is not None else []
    stub = next((path for path in places if path.is_file()), None)
    if stub is None:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="llamarig-stub-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copyfile(stub, folder / DRIVERS)
        (folder / DRIVERS).chmod(0o644)
        yield [name]


@dataclass(frozen=True)
class Terms:
    """What a release must show before it is one."""

    user: str
    """Runs its programs for the check."""
    label: str
    """What ``--version`` must show."""
    cuda: bool
    """Whether it may lack the driver's library, and no other."""
    toolkit: Path | None
    """Prefix of the toolkit that has the stand-in for that library."""


def check(target: Path, names: list[str], terms: Terms) -> bool:
    """Whether the server has shown its label; :class:`RefusedError` when it shows another, or a library is missing.

    False where the driver's library is missing and there is no stand-in for it: then nobody could ask the server.
    """
    lacking = missing(target, names, terms.user)
    allowed = {DRIVERS} if terms.cuda else set()
    for name, libraries in lacking.items():
        if wrong := sorted(set(libraries) - allowed):
            raise RefusedError(f"{name} lacks libraries: {'; '.join(wrong)[:1000]}")
    if not lacking:
        _asked(target, terms, [])
        return True
    with stand_in(terms.toolkit) as libraries:
        if libraries:
            _asked(target, terms, libraries)
        return bool(libraries)


def _asked(target: Path, terms: Terms, libraries: list[str]) -> None:
    version = sandboxed(terms.user, str(target / SERVER), "--version", libraries=libraries)
    shown = version.stdout + version.stderr
    if version.returncode != 0 or terms.label not in shown:
        raise RefusedError(f"{target / SERVER} --version does not show {terms.label!r} but: {shown.strip()[:1000]}")
