"""The NVIDIA driver as data: packages, the repository and its key, and the files that keep it as it is."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from llamarig.catalog.driver_packages import driver_packages
from llamarig.catalog.upstream import upstream
from llamarig.errors import RigError
from llamarig.render.openpgp import KeyFormatError, armoured, fingerprints
from llamarig.render.text import fill, verbatim
from llamarig.render.wanted import UNITS, WantedDriver, WantedFile
from llamarig.spec.hardware import Driver
from llamarig.spec.host import HostSpec

SOURCE = "/etc/apt/sources.list.d/llamarig-nvidia.sources"
PIN = "/etc/apt/preferences.d/llamarig-nvidia"
UPGRADES = "/etc/apt/apt.conf.d/52llamarig-nvidia"
MODULES = "/etc/modules-load.d/llamarig-nvidia.conf"
NOUVEAU = "/etc/modprobe.d/llamarig-nouveau.conf"
NODES = "llamarig-nvidia-nodes.service"
OURS = (SOURCE, PIN, UPGRADES, MODULES, NOUVEAU, f"{UNITS}/{NODES}")
"""Every file that a driver may bring; which of them are there without one is asked of the host."""
_LARGEST_KEY = 1 << 20


def driver(spec: HostSpec, project_root: Path) -> WantedDriver | None:
    """The driver that the spec asks for; None for a host without one, or of the cpu backend.

    ``project_root`` is where the repository's key is read from. Raises :class:`RigError` when that file cannot be
    used, is not the key that the spec names, or nobody knows the packages of such a driver.
    """
    asked = spec.driver
    if asked is None or spec.engine.backend != "cuda":
        return None
    known = driver_packages()
    kind = "debian" if asked.source == "debian" else "nvidia"
    packages = known.asked(kind, spec.os.distribution, asked.flavour)
    if not packages:
        raise RigError(
            what=f"{spec.os.distribution} has no driver packages of its own that llamarig knows",
            where=spec.host,
            fix="write `source: nvidia-repo`, or a mirror or directory of it",
        )
    uri = _uri(spec, asked)
    return WantedDriver(
        source=asked.source,
        version=asked.version,
        flavour=asked.flavour,
        packages=packages,
        own=tuple(known.own),
        apart=tuple(known.apart),
        other=tuple(known.flavours["proprietary" if asked.flavour == "open" else "open"]),
        uri=uri,
        files=_files(spec, asked, uri, project_root),
        # Without a repository of its own the list of one that was wanted before is stale.
        stale=tuple(known.stale_files) if uri else (SOURCE,),
        stale_packages=tuple(known.stale_packages) if uri else (),
        unit=NODES,
        revision=asked.revision or "",
    )


def _uri(spec: HostSpec, asked: Driver) -> str:
    """Where the packages lie, with a trailing slash: a flat repository. Empty for Debian's own, which apt knows."""
    if asked.source == "debian":
        return ""
    if asked.source == "nvidia-repo":
        system = f"{spec.os.distribution}{spec.os.release.replace('.', '')}"
        return f"{upstream().driver_repo}/{system}/x86_64/"
    place = (asked.location or "").rstrip("/")
    return f"file:{place}/" if asked.source == "directory" else f"{place}/"


def _files(spec: HostSpec, asked: Driver, uri: str, project_root: Path) -> tuple[WantedFile, ...]:
    before = [f"llama-{name}.service" for name in sorted(spec.services)]
    known = driver_packages()
    pin = fill(
        "etc/apt/preferences.d/llamarig-nvidia.j2",
        packages=known.own,
        version=asked.version,
        origin=urlsplit(uri).hostname or "",
    )
    files = [
        WantedFile(PIN, pin),
        *(WantedFile(path, verbatim(path.lstrip("/"))) for path in (UPGRADES, MODULES, NOUVEAU)),
        WantedFile(f"{UNITS}/{NODES}", fill(f"etc/systemd/system/{NODES}.j2", before=before)),
    ]
    if uri:
        text = fill("etc/apt/sources.list.d/llamarig-nvidia.sources.j2", uri=uri, key=_key(spec, asked, project_root))
        files.insert(0, WantedFile(SOURCE, text))
    return tuple(files)


def _key(spec: HostSpec, asked: Driver, project_root: Path) -> tuple[str, ...]:
    """The armoured key that the repository must be signed with; a placeholder while the spec leaves it open."""
    if asked.key is None or asked.key_fingerprint in (None, "unlocked"):
        return ("unlocked",)
    path = project_root / asked.key
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_KEY)
        found = fingerprints(data)
    except (OSError, KeyFormatError) as error:
        raise RigError(
            what="the key of the driver's repository cannot be used",
            where=str(path),
            why=str(error),
            fix="driver.key names the public key, as its issuer publishes it, below the project's directory",
        ) from error
    if found != (asked.key_fingerprint,):
        raise RigError(
            what="the key of the driver's repository is another than the spec names",
            where=f"{spec.host}: {path}",
            why=f"the file holds {', '.join(found)}; driver.key-fingerprint is {asked.key_fingerprint}",
            fix="find out from its issuer which one is right; nothing was touched",
        )
    return armoured(data)
