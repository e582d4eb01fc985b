"""A whole host, and what a fleet adds to it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from llamarig.spec.base import AbsolutePath, HostName, Name, OneLine, Port, SpecModel
from llamarig.spec.engine import Engine
from llamarig.spec.hardware import Cuda, Driver, Gpus, Memory, Os
from llamarig.spec.models import Model
from llamarig.spec.service import Service

UserName = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]


class Connection(SpecModel):
    """How the controller reaches the host; ``local`` when it is the controller itself."""

    type: Literal["ssh", "local"] = "ssh"
    """``local`` when the controller provisions itself."""
    address: OneLine | None = None
    """Name or address; the host's name when not given."""
    port: Port = 22
    """Of sshd."""
    user: UserName = "root"
    """Who logs in; root, or somebody who may use sudo."""
    host_key: OneLine | None = None
    """The host's public key, ``ssh-ed25519 AAAA…``; without it the user's known_hosts decides, strictly."""
    identity_file: OneLine | None = None
    """A private key on the controller; without it ssh's own choice."""
    become: bool = False
    """Whether to become root with sudo; not needed when ``user`` is root."""
    become_password_file: OneLine | None = None
    """A file on the controller that holds the sudo password."""
    wake_on_lan: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}:){5}[0-9a-f]{2}$")] | None = None
    """The MAC address that wakes the host. Not built yet."""


class Maintenance(SpecModel):
    """When the host may be changed (the fleet commands)."""

    window: OneLine | None = None
    """Days and hours, ``Sat 02:00-06:00``. Not built yet."""
    idle_minutes: Annotated[int, Field(ge=0, le=10080)] | None = None
    """Minutes without a request after which the host counts as idle; 10 when not given."""
    drain: bool = False
    """Whether running requests are waited for. Not built yet."""
    reboot: Literal["never", "ask", "now"] = "ask"
    """Whether `rebuild` makes a reboot that is needed: ``now`` once nobody would notice, ``ask`` first, ``never``."""


class Kernel(SpecModel):
    """The kernel that the driver is built for."""

    version: Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9][0-9A-Za-z.+~-]*$")]
    """As ``uname -r`` prints it."""


class Power(SpecModel):
    """What is watched about power while the host serves."""

    watch: bool = True
    """Whether a timer applies the cards' limits again when something else changed them, and counts throttling."""
    mask_sleep: bool = True
    """Whether the sleep targets are masked, so that the host does not suspend: a card that slept fails in CUDA."""


class HostSpec(SpecModel):
    """A description of one host, complete enough to plan, build and prove it."""

    schema_version: Literal[1]
    """Which version of this schema the file is written for."""
    host: HostName
    """The name by which every command knows the host; unique in the project."""
    labels: dict[Name, OneLine] = Field(default_factory=dict)
    """Words of your own about the host; rollouts choose hosts by them."""
    connection: Connection = Connection()
    """How the controller reaches the host."""
    os: Os
    """What the host runs."""
    memory: Memory | None = None
    """The host's RAM, as a second budget beside the cards'."""
    gpus: Gpus = Field(default_factory=dict)
    """The cards, each under a name of your own."""
    kernel: Kernel | None = None
    """Not built yet."""
    driver: Driver | None = None
    """The NVIDIA driver, installed from packages at one version."""
    cuda: Cuda | None = None
    """The CUDA toolkit that builds the engine, in a directory of its own below /opt/llamarig/cuda."""
    engine: Engine
    """The llama.cpp that is built."""
    models: Annotated[dict[Name, Model], Field(min_length=1)]
    """The model files, each under a name of your own."""
    services: Annotated[dict[Name, Service], Field(min_length=1)]
    """The servers; each runs as ``llama-NAME.service``."""
    models_dir: AbsolutePath = "/var/lib/llamarig/models"
    """Where the model files lie on the host."""
    power: Power | None = None
    """Limits, throttling and sleep. A host with cards has all of it even without this section; one without cards
    sleeps as it likes unless it is given."""
    maintenance: Maintenance = Maintenance()
    """When the host may be changed."""


__all__ = ["Connection", "HostSpec", "Kernel", "Maintenance", "Power"]
