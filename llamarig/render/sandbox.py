"""The sandbox of a service's unit, as data: which directives, and for which kind of service.

What each directive does is in systemd.exec(5) and systemd.resource-control(5). Three
kinds of service differ: one that needs a GPU, one on a socket, one on a TCP port.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from llamarig.errors import RigError
from llamarig.render.quoting import quote

Directive = tuple[str, str]

ALWAYS: tuple[Directive, ...] = (
    ("NoNewPrivileges", "yes"),
    ("CapabilityBoundingSet", ""),
    ("AmbientCapabilities", ""),
    ("DevicePolicy", "closed"),
    ("KeyringMode", "private"),
    ("LockPersonality", "yes"),
    ("MemoryDenyWriteExecute", "yes"),
    ("PrivateIPC", "yes"),
    ("PrivateMounts", "yes"),
    ("PrivateTmp", "yes"),
    ("PrivateUsers", "yes"),
    ("ProtectClock", "yes"),
    ("ProtectControlGroups", "yes"),
    ("ProtectHostname", "yes"),
    ("ProtectKernelLogs", "yes"),
    ("ProtectKernelModules", "yes"),
    ("ProtectKernelTunables", "yes"),
    ("ProtectProc", "invisible"),
    ("ProtectSystem", "strict"),
    ("RemoveIPC", "yes"),
    ("RestrictNamespaces", "yes"),
    ("RestrictRealtime", "yes"),
    ("RestrictSUIDSGID", "yes"),
    ("SystemCallArchitectures", "native"),
    ("SystemCallFilter", "@system-service"),
    ("SystemCallFilter", "~@privileged @resources"),
    ("SystemCallErrorNumber", "EPERM"),
)

GPU_DEVICES: tuple[str, ...] = (
    "char-nvidia",
    "char-nvidia-frontend",
    "char-nvidiactl",
    "char-nvidia-uvm",
)
"""Names in /proc/devices behind /dev/nvidia0…, /dev/nvidiactl and /dev/nvidia-uvm. The first
three are the same major number under the names that different driver branches give it.
Left out: nvidia-uvm-tools (profilers), nvidia-caps (MIG), nvidia-modeset and DRM nodes (displays)."""

UNPROVEN_ON_GPU: tuple[str, ...] = (
    "DeviceAllow=" + " ".join(GPU_DEVICES),
    "MemoryDenyWriteExecute=yes",
    "PrivateIPC=yes",
    "PrivateUsers=yes",
    "ProtectKernelTunables=yes",
    "ProtectProc=invisible",
    "ProtectSystem=strict",
    "RestrictAddressFamilies=AF_INET AF_INET6",
    "SocketBindDeny=any",
    "SystemCallFilter=~@privileged @resources",
)
"""Directives of a GPU unit that may meet what the driver's library does (mapped code, NUMA and
affinity calls, its nodes, its files in /proc and /sys) and that no run on a card has proven yet."""

CHILD_PORTS = "32768-60999"
"""Ports that the kernel chooses from (ip(7), ip_local_port_range); a router's children listen on one each."""

_HOMES = ("/home", "/root", "/run/user")
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - a user's choice is recognised, nothing is made there


@dataclass(frozen=True, slots=True)
class Needs:
    """What a service needs of the machine."""

    gpu: bool
    address: str
    """An IP address or the path of a unix socket."""
    port: int
    """0 for a socket."""
    allow: tuple[str, ...] = ()
    """Networks that may connect besides the host itself; empty beyond loopback: any."""
    models_dir: str = "/var/lib/llamarig/models"
    lock_memory: bool = False
    children: bool = False
    """Whether it starts servers of its own, each on a loopback port that the kernel chooses."""

    @property
    def socket(self) -> bool:
        """Whether it listens on a unix socket."""
        return self.address.startswith("/")

    @property
    def loopback(self) -> bool:
        """Whether only the host itself can reach its port."""
        return not self.socket and is_loopback(self.address)


def is_loopback(address: str) -> bool:
    """Whether a host name or IP address is the host itself; an unknown name is taken for an outer one."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _devices(needs: Needs) -> list[Directive]:
    if not needs.gpu:
        return [("PrivateDevices", "yes"), ("ProcSubset", "pid")]
    # PrivateDevices= would hide the card, and the driver's library reads /proc/driver/nvidia.
    return [("DeviceAllow", f"{device} rw") for device in GPU_DEVICES]


def _networks(allow: tuple[str, ...]) -> str:
    try:
        return " ".join(str(ip_network(network, strict=False)) for network in allow)
    except ValueError as error:
        raise RigError(
            what=f"listen.allow: {error}", fix="write networks in CIDR form, such as 192.168.1.0/24"
        ) from error


def _network(needs: Needs) -> list[Directive]:
    if needs.socket:
        return [("PrivateNetwork", "yes"), ("RestrictAddressFamilies", "AF_UNIX"), ("IPAddressDeny", "any")]
    directives = [
        ("RestrictAddressFamilies", "AF_INET AF_INET6"),
        ("SocketBindDeny", "any"),
        ("SocketBindAllow", f"tcp:{needs.port}"),
        *([("SocketBindAllow", f"ipv4:tcp:{CHILD_PORTS}")] if needs.children else []),
    ]
    if needs.loopback:
        return [*directives, ("IPAddressDeny", "any"), ("IPAddressAllow", "localhost")]
    if needs.allow:
        admitted = f"localhost {_own(needs.address)}{_networks(needs.allow)}"
        return [*directives, ("IPAddressDeny", "any"), ("IPAddressAllow", admitted)]
    return directives


def _own(address: str) -> str:
    """The server's own address: the start probe comes from it, whatever networks may connect."""
    try:
        return "" if ip_address(address).is_unspecified else f"{address} "
    except ValueError:
        return ""


def _home(needs: Needs) -> list[Directive]:
    home, temporary = _below(needs.models_dir, _HOMES), _below(needs.models_dir, _TEMPORARY)
    if home and needs.gpu and not (needs.socket or needs.loopback or needs.allow):
        # It would be the one kind of unit above the exposure that every server has to stay below.
        raise RigError(
            what=f"a service on {needs.address} is open to any network while models-dir is below {needs.models_dir}",
            why="home directories cannot be hidden from it completely then, which is too much for an open server",
            fix="name the networks that may connect in listen.allow, or choose a models-dir such as /srv/models",
        )
    shown = [("BindReadOnlyPaths", _bound(needs.models_dir))] if home or temporary else []
    return [("ProtectHome", "tmpfs" if home else "yes"), *shown]


def _below(path: str, tops: tuple[str, ...]) -> bool:
    return any(path == top or path.startswith(top + "/") for top in tops)


def _bound(path: str) -> str:
    if ":" in path:
        raise RigError(
            what=f"models-dir {path!r} cannot be shown to a confined service",
            why="below home and temporary directories it is mounted by itself, and a mount's path may hold no colon",
            fix="choose a directory elsewhere, or one without a colon",
        )
    return quote(path)


def _files(needs: Needs) -> list[Directive]:
    # A socket is for the group of the service; nothing else is ever written.
    return [("UMask", "0007" if needs.socket else "0077")]


def _limits(needs: Needs) -> list[Directive]:
    limits = [("LimitCORE", "0"), ("TasksMax", "2048")]
    if needs.lock_memory:
        limits.append(("LimitMEMLOCK", "infinity"))
    return limits


def sandbox(needs: Needs) -> tuple[Directive, ...]:
    """Every directive that confines the service, in the order in which the unit shows them."""
    return (*ALWAYS, *_home(needs), *_devices(needs), *_network(needs), *_files(needs), *_limits(needs))
