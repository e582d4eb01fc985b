"""A whole host, and what a fleet adds to it."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from llamarig.spec.base import AbsolutePath, HostName, Name, OneLine, Port, SpecModel, SpecValueError
from llamarig.spec.engine import Engine
from llamarig.spec.hardware import Cuda, Driver, Gpus, Memory, Os
from llamarig.spec.models import Model
from llamarig.spec.service import Service
from llamarig.spec.site import Mirror, Transfer
from llamarig.spec.window import WindowText

MacAddress = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}:){5}[0-9a-f]{2}$")]
TimeZone = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$")]
"""A name of the time zone database."""


def _ipv4(text: str) -> str:
    try:
        IPv4Address(text)
    except ValueError:
        raise SpecValueError("is no IPv4 address", "for example 192.168.10.255") from None
    return text


IPv4 = Annotated[str, AfterValidator(_ipv4)]
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


class Wake(SpecModel):
    """How the host is woken when it sleeps, by Wake-on-LAN; its firmware and its network card must be set up for it."""

    mac: MacAddress
    """Of the host's wired network card."""
    broadcast: IPv4 = "255.255.255.255"
    """Where the packet goes. The broadcast address of the host's network when the controller is in
    another, and the router lets it through; the host's own address, where the router keeps it."""
    port: Port = 9
    """The UDP port; cards do not look at it, routers may."""
    wait_s: Annotated[int, Field(ge=1, le=3600)] = 180
    """Seconds until SSH answers; a host that does not by then counts as asleep."""


class Maintenance(SpecModel):
    """When the host may be changed (the fleet commands)."""

    window: WindowText | Annotated[list[WindowText], Field(min_length=1)] | None = None
    """Days and hours in which a rollout may change the host, and `rebuild` reboot it, ``Sat 02:00-06:00``, or several
    in a list; any time when not given. Over midnight a window belongs to the day on which it begins. It is read on the
    clock of the wall: an hour that the change to summer time leaves out is not there, one that comes twice counts
    twice."""
    timezone: TimeZone | None = None
    """Of the window, ``Europe/Berlin``; the host's own when not given."""
    idle_minutes: Annotated[int, Field(ge=0, le=10080)] | None = None
    """Minutes without a request after which the host counts as idle; 10 when not given."""
    reboot: Literal["never", "ask", "now"] = "ask"
    """Whether `rebuild` or a rollout makes a reboot that is needed: ``now`` once nobody would notice, ``ask`` first,
    ``never``."""


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
    mirror: Mirror | None = None
    """What ``llamarig mirror`` collected for the host's site; a site without internet access applies from it alone."""
    transfer: Transfer = Transfer()
    """How files come to the host."""
    power: Power | None = None
    """Limits, throttling and sleep. A host with cards has all of it even without this section; one without cards
    sleeps as it likes unless it is given."""
    maintenance: Maintenance = Maintenance()
    """When the host may be changed."""
    wake: Wake | None = None
    """How the host is woken when it sleeps."""


__all__ = ["Connection", "HostSpec", "Kernel", "Maintenance", "Power", "Wake"]
