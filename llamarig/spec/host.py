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
    address: OneLine | None = None
    """Name or address; the host's name when not given."""
    port: Port = 22
    user: UserName = "root"
    host_key: OneLine | None = None
    """The host's public key, ``ssh-ed25519 AAAA…``; without it the user's known_hosts decides, strictly."""
    identity_file: OneLine | None = None
    """A private key on the controller; without it ssh's own choice."""
    become: bool = False
    """Whether to become root with sudo; not needed when ``user`` is root."""
    become_password_file: OneLine | None = None
    """A file on the controller that holds the sudo password."""
    wake_on_lan: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}:){5}[0-9a-f]{2}$")] | None = None
    """The MAC address that wakes the host."""


class Maintenance(SpecModel):
    """When the host may be changed (the fleet commands)."""

    window: OneLine | None = None
    """Days and hours, ``Sat 02:00-06:00``."""
    idle_minutes: Annotated[int, Field(ge=0, le=10080)] | None = None
    """Minutes without a request after which the host counts as idle."""
    drain: bool = False
    """Whether running requests are waited for."""
    reboot: Literal["never", "ask", "now"] = "ask"


class Kernel(SpecModel):
    """The kernel that the driver is built for."""

    version: Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9][0-9A-Za-z.+~-]*$")]
    """As ``uname -r`` prints it."""


class Power(SpecModel):
    """What is watched about power while the host serves."""

    watch: bool = False
    """Whether a timer applies the cards' limits again when something else changed them."""
    mask_sleep: bool = False
    """Whether the sleep targets are masked."""


class HostSpec(SpecModel):
    """A description of one host, complete enough to plan, build and prove it."""

    schema_version: Literal[1]
    host: HostName
    labels: dict[Name, OneLine] = Field(default_factory=dict)
    connection: Connection = Connection()
    os: Os
    memory: Memory | None = None
    gpus: Gpus = Field(default_factory=dict)
    kernel: Kernel | None = None
    driver: Driver | None = None
    cuda: Cuda | None = None
    engine: Engine
    models: Annotated[dict[Name, Model], Field(min_length=1)]
    services: Annotated[dict[Name, Service], Field(min_length=1)]
    models_dir: AbsolutePath = "/var/lib/llamarig/models"
    """Where the model files lie on the host."""
    power: Power | None = None
    maintenance: Maintenance = Maintenance()


__all__ = ["Connection", "HostSpec", "Kernel", "Maintenance", "Power"]
