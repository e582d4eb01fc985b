"""The wanted state of a host as plain data: what rendering yields and comparing reads.

Everything here is JSON: :func:`dataclasses.asdict` of :class:`Wanted` is the
``llamarig_wanted`` variable that the roles see. No secret is ever part of it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

ROOT = "/opt/llamarig"
RELEASES = f"{ROOT}/releases"
CURRENT = f"{ROOT}/current"
"""The one link that is switched; its target is relative: ``releases/<id>``."""
TOOLKITS = f"{ROOT}/cuda"
"""Each CUDA toolkit lies in a directory of its own below this one, named by its version."""
LIBEXEC = f"{ROOT}/libexec"
STATE = "/var/lib/llamarig"
RECORD = f"{STATE}/record.json"
CONFIG = "/etc/llamarig"
KEYS = f"{CONFIG}/keys"
LOCK = "/run/llamarig/lock"
BUILD = f"{STATE}/build"
INCOMING = f"{STATE}/incoming"
CCACHE = "/var/cache/llamarig/ccache"
BUILDER = "llamarig-build"
UNITS = "/etc/systemd/system"


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A small text file, wholly ours. ``restarts`` names the services that read it at start."""

    path: str
    content: str
    mode: str = "0644"
    owner: str = "root"
    group: str = "root"
    restarts: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """Hash of the content as it is written, UTF-8."""
        return hashlib.sha256(self.content.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class WantedUser:
    """A system user without login; its group has the same name."""

    name: str
    home: str = "/nonexistent"
    shell: str = "/usr/sbin/nologin"
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WantedPatch:
    """A patch as it is found in the controller's store."""

    name: str
    sha256: str
    build_system: bool = False
    """Whether the user has acknowledged that it changes how the build runs."""


@dataclass(frozen=True, slots=True)
class WantedArtifact:
    """A packed release that the controller holds (converge/store/releases.py)."""

    sha256: str
    size: int
    """Bytes of the packed file."""


@dataclass(frozen=True, slots=True)
class WantedRelease:
    """One build of the engine. ``id`` is derived from ``inputs`` alone (compare/release_id.py)."""

    id: str
    label: str
    """What ``--version`` and /props show: ``b<number>-<commit>-<id>`` without the number."""
    commit: str
    build_number: int
    source: dict[str, str]
    """``kind`` git, archive or sdist; ``ref`` (URL, path or name==version); ``sha256``; ``subdir``."""
    patches: tuple[WantedPatch, ...]
    cmake: tuple[str, ...]
    targets: tuple[str, ...]
    job_mib: int
    jobs: int | None
    backend: Literal["cuda", "cpu"]
    inputs: dict[str, Any]
    flags: tuple[str, ...] = ()
    """Every flag that a rendered unit passes; the new binary's help must know them all."""
    elsewhere: str = ""
    """In words, where it is built when not on the host that wants it."""
    artifact: WantedArtifact | None = None
    """Copied to the host instead of a build. Rendering leaves it open; converge/wanted.py knows what is held."""


@dataclass(frozen=True, slots=True)
class WantedToolkit:
    """The CUDA toolkit that builds the engine; what the engine links of it is copied into the release."""

    version: str
    prefix: str
    source: str
    """Where its parts come from, as in the spec: wheels, archive, runfile, directory."""
    location: str
    sha256: str
    wheels: dict[str, str]
    """``name==version`` and sha256 of each part that is a Python distribution."""
    header_fix: bool
    """Whether its headers are mended for the host's C library."""
    id: str
    """sha256 over all that decides the content; the manifest of an installed toolkit has it."""
    compiler: str
    """The host compiler that a trial compiles with."""
    architectures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WantedModelFile:
    """One file by content: ``<models-dir>/sha256/<sha256>``, mode 0444, with named links to it."""

    sha256: str
    size: int
    path: str
    links: tuple[str, ...]
    """Absolute paths of relative links that point to ``path``."""
    origin: dict[str, str]
    """``kind`` hub, url, wheel, host-path or controller-path, and what that kind needs."""
    fetch: Literal["host", "controller", "mirror"]
    restarts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WantedCredential:
    """A key file: only its place, mode and clients are known here, never its content."""

    path: str
    service: str
    kind: Literal["generated", "file"]
    clients: tuple[str, ...] = ()
    source: str = ""
    """Path on the controller, for ``file``."""
    mode: str = "0600"


@dataclass(frozen=True, slots=True)
class WantedService:
    """A running server and what is asked of it."""

    name: str
    unit: str
    user: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    address: str
    port: int
    """0 when ``address`` is a unix socket."""
    keyed: bool
    tls: bool
    model_sha256: str
    model_path: str
    alias: str
    context: int
    slots: int
    modalities: tuple[str, ...]
    speculative: bool
    backend: Literal["cuda", "cpu"]
    gpu_uuid: str | None
    vram_mib: float
    start_timeout_s: int


@dataclass(frozen=True, slots=True)
class WantedCard:
    """A card that services are bound to."""

    name: str
    """In the spec."""
    bus_id: str
    """As the kernel writes it, ``0000:01:00.0``; empty when the spec gives the UUID alone."""
    uuid: str | None
    """None until the spec or an apply knows it (compare/learn.py)."""
    planned_mib: float = 0.0
    """What all services together take of it."""
    architecture: str = ""
    """As the catalog has it, ``120a``; empty for a card that it does not know."""


@dataclass(frozen=True, slots=True)
class WantedPowerCard:
    """A card that is watched, and its limit."""

    name: str
    bus_id: str
    uuid: str | None
    watts: int | None = None
    """None: watched only."""


@dataclass(frozen=True, slots=True)
class WantedPower:
    """Power limits, the watch over them, and whether the host may sleep (render/power.py)."""

    cards: tuple[WantedPowerCard, ...]
    watch: bool
    mask_sleep: bool
    services: tuple[str, ...] = ()
    """Started after the limits are set."""
    files: tuple[WantedFile, ...] = ()
    """The role ``power`` writes and removes these; they are no part of ``Wanted.files``."""


@dataclass(frozen=True, slots=True)
class WantedDriver:
    """The NVIDIA driver. Names are patterns (fnmatch) where they say so."""

    source: Literal["nvidia-repo", "debian", "mirror", "directory"]
    version: str
    """Without the packages' own revision: ``610.57.04``."""
    flavour: Literal["open", "proprietary"]
    packages: tuple[str, ...]
    """Installed by name; what they depend on comes along at the same version."""
    own: tuple[str, ...]
    """Patterns of the packages that carry the driver's version."""
    apart: tuple[str, ...]
    """Patterns of those among them that do not."""
    other: tuple[str, ...]
    """Packages of the other flavour, which must not be there."""
    uri: str
    """The flat repository; empty for the distribution's own packages."""
    files: tuple[WantedFile, ...]
    stale: tuple[str, ...] = ()
    """Lists and keys of other forms that are removed where they lie."""
    stale_packages: tuple[str, ...] = ()
    unit: str = ""
    """Makes the device nodes at boot."""
    revision: str = ""
    """That the package with the module must have; empty: any."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Everything that llamarig manages on one host."""

    host: str
    packages: dict[str, str | None]
    """apt package -> exact version, or None for whatever is installed."""
    users: tuple[WantedUser, ...]
    directories: tuple[tuple[str, str, str, str], ...]
    """(path, mode, owner, group)."""
    files: tuple[WantedFile, ...]
    release: WantedRelease
    models: tuple[WantedModelFile, ...]
    credentials: tuple[WantedCredential, ...]
    services: tuple[WantedService, ...]
    cards: tuple[WantedCard, ...] = ()
    toolkit: WantedToolkit | None = None
    """None where no CUDA engine is built."""
    power: WantedPower | None = None
    driver: WantedDriver | None = None
    system: str = ""
    """Distribution and release that the host must run, ``debian 13``; empty in a state that was kept without it."""

    def to_json(self) -> dict[str, Any]:
        """Plain data, stable in order, with each file's sha256 added."""
        data: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        for entry, wanted in zip(data["files"], self.files, strict=True):
            entry["sha256"] = wanted.sha256
        return data
