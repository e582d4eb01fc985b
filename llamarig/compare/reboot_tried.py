"""Whether a reboot was made for just this before. Without that memory a host whose new kernel hangs, or whose module
never loads, would reboot again each night. Pure: nothing is touched here."""

from __future__ import annotations

import hashlib
import re

from llamarig.compare.text import printable
from llamarig.compare.view import View, as_map, as_text

NOTE = "/var/lib/llamarig/reboot.json"
"""Written by rig_boot before a reboot (plugins/module_utils/rig_reboot_note.py)."""

TRIES = 2
"""Power that fails while a kernel comes up looks like a kernel that hangs: one failure proves nothing, two do."""


def purpose(view: View, kernel: str) -> dict[str, str]:
    """What a reboot into ``kernel`` is to bring. Another kernel, driver or package makes it another purpose."""
    wanted = view.wanted.driver
    if wanted is None:
        return {}
    packages = as_map(view.part("driver").get("packages"))
    versions = sorted(f"{name} {as_text(as_map(entry).get('version'))}" for name, entry in packages.items())
    return {
        "kernel": kernel,
        "module": f"{wanted.version} {wanted.flavour}",
        "packages": hashlib.sha256("\n".join(versions).encode("utf-8", "backslashreplace")).hexdigest(),
    }


def in_vain(view: View, kernel: str) -> str:
    """Why another reboot into ``kernel`` would bring no more than the last ones, and what to do; empty where fewer than
    :data:`TRIES` were made for the same, or the host has not booted since."""
    noted, wanted = view.part("driver", "reboot-tried"), purpose(view, kernel)
    boots = as_text(noted.get("boot-id")), as_text(view.observed.get("boot-id"))
    if not wanted or not all(boots) or boots[0] == boots[1]:
        return ""
    if any(noted.get(key) != value for key, value in wanted.items()):
        return ""
    tries = as_text(noted.get("tries")) or ""
    if not (re.fullmatch("[1-9][0-9]{0,3}", tries, re.ASCII) and int(tries) >= TRIES):
        return ""
    return (
        f"{tries} reboots were made for just this, the last at {printable(noted.get('at'), 40)}, and it is needed all "
        f"the same; `llamarig doctor {view.wanted.host}` tells more. With the cause mended, remove {NOTE} on the "
        "host, and it is tried again; another kernel, driver or package is tried by itself"
    )


__all__ = ["NOTE", "TRIES", "in_vain", "purpose"]
