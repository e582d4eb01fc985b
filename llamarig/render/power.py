"""Power: the limits of the cards and the watch over them, as the files of ``libexec/power-limit`` and its units.

A limit is gone after a boot, and other programs set it too (field case 43), so it is applied at boot and looked at
again by a timer. A card that slept answers CUDA with an error (field case 46), so a host that serves does not sleep.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from llamarig.render.quoting import command_line
from llamarig.render.sandbox import GPU_DEVICES, Directive
from llamarig.render.text import fill, verbatim
from llamarig.render.units import unit_name
from llamarig.render.wanted import CONFIG, LIBEXEC, STATE, UNITS, WantedFile, WantedPower, WantedPowerCard
from llamarig.spec.hardware import full_bus_id
from llamarig.spec.host import HostSpec, Power

PROGRAM = f"{LIBEXEC}/power-limit"
CONFIG_FILE = f"{CONFIG}/power.json"
SERVICE = "llamarig-power.service"
TIMER = "llamarig-power.timer"
STATE_FILE = f"{STATE}/power/state.json"
SMI = "/usr/bin/nvidia-smi"
PERIOD = "5min"
"""Between two looks. Long beside the 0.1 s that a look takes, short beside a night with a wrong limit."""

SANDBOX: tuple[Directive, ...] = (
    ("NoNewPrivileges", "yes"),
    # The driver asks for it before it takes a limit (NV_IS_SUSER of nv-linux.h is capable(CAP_SYS_ADMIN)).
    ("CapabilityBoundingSet", "CAP_SYS_ADMIN"),
    ("AmbientCapabilities", ""),
    ("DevicePolicy", "closed"),
    *(("DeviceAllow", f"{device} rw") for device in GPU_DEVICES),
    ("IPAddressDeny", "any"),
    ("KeyringMode", "private"),
    ("LockPersonality", "yes"),
    ("MemoryDenyWriteExecute", "yes"),
    ("PrivateIPC", "yes"),
    ("PrivateMounts", "yes"),
    ("PrivateNetwork", "yes"),
    ("PrivateTmp", "yes"),
    ("ProtectClock", "yes"),
    ("ProtectControlGroups", "yes"),
    ("ProtectHome", "yes"),
    ("ProtectHostname", "yes"),
    ("ProtectKernelLogs", "yes"),
    ("ProtectKernelModules", "yes"),
    ("ProtectKernelTunables", "yes"),
    ("ProtectProc", "invisible"),
    ("ProtectSystem", "strict"),
    # nvidia-smi speaks to nvidia-persistenced over its socket.
    ("RestrictAddressFamilies", "AF_UNIX"),
    ("RestrictNamespaces", "yes"),
    ("RestrictRealtime", "yes"),
    ("RestrictSUIDSGID", "yes"),
    ("SystemCallArchitectures", "native"),
    ("SystemCallFilter", "@system-service"),
    ("SystemCallFilter", "~@privileged @resources"),
    ("SystemCallErrorNumber", "EPERM"),
    ("LimitCORE", "0"),
    ("TasksMax", "64"),
)
"""PrivateUsers= is left out: in a user namespace CAP_SYS_ADMIN is none to the driver."""

UNPROVEN_ON_GPU: tuple[str, ...] = (
    "CapabilityBoundingSet=CAP_SYS_ADMIN",
    "DeviceAllow=" + " ".join(GPU_DEVICES),
    "MemoryDenyWriteExecute=yes",
    "PrivateIPC=yes",
    "PrivateNetwork=yes",
    "ProtectKernelTunables=yes",
    "ProtectProc=invisible",
    "ProtectSystem=strict",
    "RestrictAddressFamilies=AF_UNIX",
    "SystemCallFilter=~@privileged @resources",
)
"""Directives that may meet what nvidia-smi does with a real driver; no run on a card has proven them yet."""


def wanted_power(spec: HostSpec) -> WantedPower | None:
    """What is wanted of power; None on a host that has no cards and does not ask for anything."""
    given = spec.power
    if given is None and not spec.gpus:
        return None
    given = given or Power()
    limited = any(card.power_limit_w is not None for card in spec.gpus.values())
    cards = tuple(
        WantedPowerCard(name, full_bus_id(card.bus_id) if card.bus_id else "", card.uuid, card.power_limit_w)
        for name, card in spec.gpus.items()
        if given.watch or card.power_limit_w is not None
    )
    if not (given.mask_sleep or (given.watch and cards) or limited):
        return None
    power = WantedPower(cards, given.watch and bool(cards), given.mask_sleep, tuple(spec.services))
    return replace(power, files=_files(power))


def with_uuids(power: WantedPower, known: Mapping[str, str | None]) -> WantedPower:
    """The same with the UUIDs of ``known`` (card -> UUID) where none was known, in the files too."""
    cards = tuple(replace(card, uuid=card.uuid or known.get(card.name)) for card in power.cards)
    named = replace(power, cards=cards)
    return replace(named, files=_files(named))


def _files(power: WantedPower) -> tuple[WantedFile, ...]:
    config = WantedFile(CONFIG_FILE, _config(power))
    if not power.cards:
        return (config,)
    unit = fill(
        f"etc/systemd/system/{SERVICE}.j2",
        unit=_order(power),
        start=command_line((PROGRAM, "apply", CONFIG_FILE)),
        sandbox=SANDBOX,
    )
    files = [
        WantedFile(PROGRAM, verbatim(PROGRAM.lstrip("/")), mode="0755"),
        config,
        WantedFile(f"{UNITS}/{SERVICE}", unit),
    ]
    if power.watch:
        files.append(WantedFile(f"{UNITS}/{TIMER}", fill(f"etc/systemd/system/{TIMER}.j2", period=PERIOD)))
    return tuple(files)


def _order(power: WantedPower) -> tuple[Directive, ...]:
    """After what loads and keeps the driver, before what loads the cards."""
    return (
        ("After", "systemd-modules-load.service nvidia-persistenced.service"),
        ("Before", " ".join(f"{unit_name(name)}.service" for name in power.services)),
    )


def _config(power: WantedPower) -> str:
    data = {
        "schema": 1,
        "nvidia-smi": SMI,
        "state": STATE_FILE,
        "mask-sleep": power.mask_sleep,
        "cards": [{"name": card.name, "uuid": card.uuid, "watts": card.watts} for card in power.cards],
    }
    return json.dumps(data, indent=2) + "\n"
