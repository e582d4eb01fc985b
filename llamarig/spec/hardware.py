"""What the machine is made of: its system, its cards, its driver and toolkit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from llamarig.spec.base import Lockable, MiB, Name, OneLine, RelativePath, SpecModel, Unlocked
from llamarig.spec.engine import Requirement

BusId = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{4}([0-9a-f]{4})?:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]
"""A PCI address as lspci prints it, ``01:00.0`` or ``0000:01:00.0``."""


def full_bus_id(bus_id: str) -> str:
    """``0000:01:00.0``, as the kernel names the card, for every way to write it in a spec."""
    domain, _, rest = bus_id.rpartition(":")
    domain, _, bus = domain.rpartition(":")
    return f"{int(domain or '0', 16):04x}:{bus}:{rest}"


UUID_PATTERN = r"^GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"

GpuUuid = Annotated[
    str,
    StringConstraints(pattern=UUID_PATTERN),
]


class Os(SpecModel):
    """The distribution that the host runs."""

    distribution: Literal["debian", "ubuntu"]
    """Debian 13 is proven, of Debian 12 the driver's packages; Ubuntu 24.04 is planned and rendered only."""
    release: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,2}(\.[0-9]{2})?$")]
    """Its number, in quotes."""


class CardClaims(SpecModel):
    """What somebody says of a card; the plan refuses what its data sheet refutes."""

    fp32_tflops: Annotated[float, Field(gt=0.0)]
    """10^12 operations a second in single precision."""


class Gpu(SpecModel):
    """One card. It is matched by bus id until its UUID is known; an index is never used."""

    model: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{1,63}$")]
    """The catalog's name of the card (``llamarig/catalog/gpus.yml``)."""
    bus_id: BusId | None = None
    """Where the card sits, as lspci prints it, in quotes."""
    uuid: GpuUuid | None = None
    """The card's own number; the first apply learns it when it is not given."""
    power_limit_w: Annotated[int, Field(ge=1, le=2000)] | None = None
    """Watts, within the card's range (``nvidia-smi -q -d POWER``). Set by UUID at boot and after every apply."""
    display: bool = False
    """Whether a display hangs on the card; a bigger reserve is kept then."""
    reserve_mib: MiB | None = None
    """Memory that other programs may take on this card, on top of what the driver keeps."""
    claims: CardClaims | None = None
    """What is said of the card, to be held against its data sheet; nothing is planned with it."""


Fingerprint = Annotated[str, StringConstraints(pattern=r"^([0-9A-F]{40}|[0-9A-F]{64})$")]
"""Of an OpenPGP key, whole."""


class Driver(SpecModel):
    """The NVIDIA driver, pinned to one version."""

    source: Literal["nvidia-repo", "debian", "mirror", "directory"]
    """Where its packages come from."""
    version: Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+){1,2}$")]
    """The whole version."""
    revision: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z.+~]+$")] | None = None
    """Of its packages, in quotes: ``"2"`` of ``550.163.01-2``; patches for newer kernels come with one. The package
    with the module must have it, and every other that is offered in it. Not given: the newest that the source has."""
    flavour: Literal["open", "proprietary"]
    """Of the kernel modules; Blackwell needs ``open``, what is older than Turing ``proprietary``."""
    location: OneLine | None = None
    """URL of the mirror, or path of the directory on the host: a flat, signed apt repository."""
    key: RelativePath | None = None
    """File below the project with the public key that signs the repository, armoured or not."""
    key_fingerprint: Fingerprint | Unlocked | None = None
    """The whole fingerprint of that key, 40 or 64 upper-case hexadecimal digits, as its issuer tells it."""


class Cuda(SpecModel):
    """The CUDA toolkit that builds the engine, in a prefix of its own."""

    source: Literal["archive", "runfile", "apt", "wheels", "directory"]
    """Where it comes from. ``apt`` is not built: a package cannot be kept out of everybody's way."""
    version: Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]
    """The whole version, as nvcc prints it."""
    sha256: Lockable | None = None
    """Of the runfile or archive; of a list of archives (``redistrib_*.json``), which pins each that it names; of the
    tar that llamarig makes of a prepared tree in a directory."""
    wheels: dict[Requirement, Lockable] = Field(default_factory=dict)
    """The Python distributions that are the toolkit together, ``name==version``, each with its sha256; from 13.0 on."""
    location: OneLine | None = None
    """URL or path on the controller of the archive, the list of archives or the runfile, where it is not NVIDIA's
    list for ``version``; path of the directory, for that source."""


class Memory(SpecModel):
    """The host's RAM, as the kernel reports it; ``init`` writes what it sees."""

    total_mib: MiB
    """What ``free -m`` shows as total."""
    reserve_mib: MiB = 2048
    """What the system and other programs need; the services get the rest."""


Gpus = dict[Name, Gpu]
