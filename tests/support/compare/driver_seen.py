"""What the observer says of a host whose driver is as wanted. Composed after docs/contracts.md, not recorded."""

from __future__ import annotations

from typing import Any

from llamarig.render.wanted import WantedDriver
from tests.support.compare.files_seen import files_seen

KERNEL = "6.12.117+deb13-amd64"


def driver_seen(wanted: WantedDriver | None) -> dict[str, Any] | None:
    """The converged host: every package held, a module installed for its one kernel, and that module loaded."""
    if wanted is None:
        return None
    return {
        "packages": {
            name: {"version": f"{wanted.version}-1", "state": "installed", "held": True} for name in wanted.packages
        },
        "kernels": {KERNEL: {"headers": True, "dkms": {f"nvidia/{wanted.version}": "installed"}}},
        "flavours": {"amd64": {"version": "6.12.117-1", "headers": True}},
        "proven-kernels": [],
        "reboot-tried": None,
        "initramfs": [],
        "loaded": wanted.version,
        "open": wanted.flavour == "open",
        "run-file": False,
        "nouveau": [],
        "secure-boot": False,
        "signing-key": "absent",
        "signing-certificate": "/var/lib/dkms/mok.pub",
        "stale": [],
        "persistence-masked": False,
        "enabled": True,
        "files": files_seen(wanted.files),
    }
