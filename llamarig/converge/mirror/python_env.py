"""llamarig itself and all that it imports, as wheels: a controller at the site is installed without an index."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from llamarig import __version__
from llamarig.converge.mirror.manifest import Entry
from llamarig.converge.mirror.place import Place
from llamarig.converge.store.shelf import sha256_of
from llamarig.errors import ExitCode, RigError
from llamarig.paths import data_root

DIRECTORY = "python"
REQUIREMENTS = f"{DIRECTORY}/requirements.txt"
_LOCK = "requirements.lock"
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def collect_python(place: Place) -> None:
    """Bring every wheel of ``requirements.lock`` that fits this machine's Python, and a wheel of llamarig.

    pip checks each against the hashes of the lock, from whatever index it is configured with. Raises
    :class:`RigError` with pip's own words.
    """
    lock = data_root() / _LOCK
    if not lock.is_file() or not (data_root() / "pyproject.toml").is_file():
        raise RigError(
            what="llamarig's own wheel can be made in a checkout only",
            where=str(data_root()),
            fix="run `scripts/llamarig mirror` in a checkout of the same version, or leave it out with --no-python",
        )
    pinned = set(_HASH.findall(lock.read_text(encoding="utf-8")))
    if not _whole(place, pinned):
        _wheels(place, lock, pinned)
    own = _own(place)
    requirements = f"{lock.read_text(encoding='utf-8').rstrip()}\nllamarig=={__version__} \\\n    --hash=sha256:{own}\n"
    place.file(REQUIREMENTS, "python", "requirements of llamarig", requirements.encode())
    place.manifest.python = {
        "directory": DIRECTORY,
        "requirements": REQUIREMENTS,
        "llamarig": __version__,
        "lock": sha256_of(lock),
        "wheels": sum(1 for path in place.used if path.endswith(".whl")) - 1,
        "python": ".".join(map(str, sys.version_info[:2])),
        "platform": f"{platform.system().lower()}-{platform.machine()}",
    }


def _whole(place: Place, pinned: set[str]) -> bool:
    """Whether all wheels of this very lock, for this Python, lie there from an earlier run; they are kept then."""
    held = place.manifest.python
    if held.get("lock") != sha256_of(data_root() / _LOCK):
        return False
    if held.get("python") != ".".join(map(str, sys.version_info[:2])):
        return False
    wheels = {path: entry for path, entry in place.manifest.files.items() if path.endswith(".whl")}
    ours = {path: entry for path, entry in wheels.items() if entry.sha256 in pinned}
    if len(ours) != held.get("wheels") or not all(map(place.holds, ours)):
        return False
    for path, entry in ours.items():
        place.keep(path, entry)
    return True


def _wheels(place: Place, lock: Path, pinned: set[str]) -> None:
    # pip takes what lies there already when its hash is right, so a run that was cut off goes on.
    folder = place.scratch(DIRECTORY)
    folder.mkdir(exist_ok=True)
    _pip("wheel", "--no-deps", "--require-hashes", "--requirement", str(lock), "--wheel-dir", str(folder))
    for wheel in sorted(folder.glob("*.whl")):
        sha256 = sha256_of(wheel)
        path = f"{DIRECTORY}/{wheel.name}"
        if sha256 not in pinned:
            raise RigError(
                what="a requirement comes as source only, so its wheel is not the pinned file",
                where=wheel.name,
                fix="collect with a Python for which the index has a wheel of it",
            )
        if place.holds(path, sha256):
            place.keep(path, place.manifest.files[path])
        else:
            place.adopt(wheel, path, sha256, "python", wheel.name)
    shutil.rmtree(folder)


def _own(place: Place) -> str:
    """llamarig's own wheel, made of this checkout; returns its sha256."""
    folder = place.scratch("own")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    _pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(data_root()))
    (wheel,) = folder.glob("*.whl")
    sha256, path = sha256_of(wheel), f"{DIRECTORY}/{wheel.name}"
    if place.holds(path, sha256):
        place.keep(path, Entry(sha256, wheel.stat().st_size, "python", wheel.name))
    else:
        place.adopt(wheel, path, sha256, "python", wheel.name)
    shutil.rmtree(folder)
    return sha256


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *words]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603 - this interpreter's pip, paths of our own
    if done.returncode != 0:
        raise RigError(
            what="pip could not bring the Python environment",
            where=f"pip {words[0]}",
            why=done.stderr.strip()[-2000:],
            fix="check pip's configuration on this machine (pip config list)",
            code=ExitCode.HOST_FAILED,
        )
