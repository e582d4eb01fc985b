"""What is on a host of the NVIDIA driver: packages, modules by kernel, what is loaded, Secure Boot. Files alone are
read: dpkg's and dkms's own, /boot, /lib/modules, /sys and /proc; no tool is started."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_files import UnusualFileError, lstat, read_json, read_kernel, read_small
from ansible.module_utils.rig_reboot_note import read_note
from ansible.module_utils.rig_secure_boot import secure_boot, signing_key

DPKG = "/var/lib/dpkg/status"
JOURNAL = "/var/lib/dpkg/updates"
DKMS = "/var/lib/dkms"
WANTS = "/etc/systemd/system/multi-user.target.wants"
PERSISTENCE = "/etc/systemd/system/nvidia-persistenced.service"
"""A link to /dev/null where somebody has masked it (systemctl(1), mask)."""
_GONE = ("not-installed", "config-files")
_NOUVEAU = ("nouveau", "nova_core")
BOOT_FILES = ("/etc/modprobe.d/", "/etc/modules-load.d/")
_RUN_FILE = ("/usr/bin/nvidia-uninstall", "/usr/bin/nvidia-installer")
_STATUS_WORDS = 3
_IMAGES = re.compile(r"linux-image-((?:cloud-|rt-)?amd64|generic(?:-hwe-[0-9]{2}\.[0-9]{2})?)")
"""Debian's metapackages of kernels, and Ubuntu's."""
KERNELS = "/var/lib/llamarig/kernels.json"
"""Written by rig_boot after a reboot."""


def is_own(name: str, own: list[str], apart: list[str]) -> bool:
    """Whether a package carries the driver's version."""
    plain = name.partition(":")[0]
    return any(fnmatch.fnmatchcase(plain, each) for each in own) and not any(
        fnmatch.fnmatchcase(plain, each) for each in apart
    )


def interrupted(root: str = "") -> list[str]:
    """dpkg's journal: what it had not yet written into its table when it was killed, in order. apt does nothing before
    `dpkg --configure -a` has taken it in (modstatdb in dpkg's sources: names of digits alone)."""
    return [f"{root}{JOURNAL}/{name}" for name in _names(root + JOURNAL) if name.isdecimal()]


Table = list[dict[str, str]]
"""The fields of each package."""


def _table(root: str) -> Table:
    """Every package that dpkg knows, as its table has it and the journal after it."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for path in (root + DPKG, *interrupted(root)):
        try:
            text = read_small(path, 64 << 20).decode("utf-8", "replace")
        except UnusualFileError:
            continue
        for stanza in text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and line[:1] != " ")
            if fields.get("Package", "").strip():
                found[fields["Package"].strip(), fields.get("Architecture", "")] = fields
    return list(found.values())


def packages(
    names: list[str], own: list[str], apart: list[str], root: str = "", table: Table | None = None
) -> dict[str, dict[str, Any]]:
    """The named packages and those that carry the driver's version, as dpkg has them; those of which no file is left
    are not among them. One of a foreign architecture is ``name:arch``. ``table``: dpkg's, where it was read before."""
    found: dict[str, dict[str, Any]] = {}
    for fields in _table(root) if table is None else table:
        name, words = fields["Package"].strip(), fields.get("Status", "").split()
        if len(words) != _STATUS_WORDS or words[2] in _GONE:
            continue
        if name in names or is_own(name, own, apart):
            foreign = fields.get("Architecture", "") not in ("amd64", "all")
            key = f"{name}:{fields['Architecture']}" if foreign and "Architecture" in fields else name
            found[key] = {"version": fields.get("Version", ""), "state": words[2], "held": words[0] == "hold"}
    return found


def flavours(root: str = "", table: Table | None = None) -> dict[str, dict[str, Any]]:
    """Each metapackage by which new kernels come, ``amd64`` for linux-image-amd64: its ``version``, and whether the one
    that brings their ``headers`` is installed, too."""
    there = {
        fields["Package"].strip(): fields.get("Version", "")
        for fields in (_table(root) if table is None else table)
        if fields.get("Status", "").split()[2:] == ["installed"]
    }
    return {
        match[1]: {"version": version, "headers": f"linux-headers-{match[1]}" in there}
        for name, version in sorted(there.items())
        if (match := _IMAGES.fullmatch(name))
    }


def half_done(root: str = "") -> list[str]:
    """Packages that dpkg has begun and not finished, of any name."""
    found = []
    for fields in _table(root):
        words = fields.get("Status", "").split()
        if len(words) == _STATUS_WORDS and (words[2] not in ("installed", *_GONE) or words[1] != "ok"):
            found.append(fields["Package"].strip())
    return found


def _names(path: str) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(path))
    except OSError:
        return []


def bootable(root: str = "") -> list[str]:
    """Kernels that could boot: those whose image lies in /boot."""
    return [name.removeprefix("vmlinuz-") for name in _names(f"{root}/boot") if name.startswith("vmlinuz-")]


def _modules(root: str) -> list[tuple[str, str]]:
    """(name, version) of every NVIDIA module that dkms knows."""
    base = f"{root}{DKMS}"
    return [
        (name, version)
        for name in _names(base)
        if name.startswith("nvidia")
        for version in _names(f"{base}/{name}")
        if Path(f"{base}/{name}/{version}/source").is_symlink()
    ]


def _built(base: str, kernel: str) -> str:
    """The architecture for which a module is built for a kernel, empty when for none."""
    return next((arch for arch in _names(f"{base}/{kernel}") if Path(f"{base}/{kernel}/{arch}/module").is_dir()), "")


def dkms(kernel: str, root: str = "") -> dict[str, str]:
    """``name/version`` of each NVIDIA module -> ``added``, ``built`` or ``installed`` for one kernel.

    As dkms 3.2.2 itself decides it (``is_module_added``, ``is_module_built``, ``_is_module_installed`` in its script):
    a ``module`` directory is a build, and ``kernel-<kernel>-<arch>`` links to the build that is installed.
    """
    found: dict[str, str] = {}
    for name, version in _modules(root):
        base = f"{root}{DKMS}/{name}/{version}"
        arch = _built(base, kernel)
        state = "built" if arch else "added"
        link = Path(f"{root}{DKMS}/{name}/kernel-{kernel}-{arch}")
        try:
            target = str(link.readlink()) if arch else ""
        except OSError:
            target = ""
        if target and target.rstrip("/").endswith(f"{version}/{kernel}/{arch}"):
            # What is loaded at boot is the copy below /lib/modules; without it the link lies.
            state = "installed" if _copied(kernel, root) else "built"
        found[f"{name}/{version}"] = state
    return found


def _copied(kernel: str, root: str) -> bool:
    base = f"{root}/lib/modules/{kernel}"
    places = (f"{base}/updates/dkms", f"{base}/updates", f"{base}/extra")
    # Debian's own packages name the module nvidia-current.ko and alias it.
    return any(name.startswith("nvidia") and ".ko" in name for place in places for name in _names(place))


def headers(kernel: str, root: str = "") -> bool:
    """Whether a module can be built for a kernel; the link into /usr/src is there without what it points to."""
    link = Path(f"{root}/lib/modules/{kernel}/build")
    try:
        target = str(link.readlink()) if link.is_symlink() else ""
    except OSError:
        return False
    place = Path(f"{root}{target}") if target.startswith("/") else link
    return (place / "Makefile").exists()


def kernels(root: str = "") -> dict[str, dict[str, Any]]:
    """Every kernel that could boot, with its headers and modules."""
    return {kernel: {"headers": headers(kernel, root), "dkms": dkms(kernel, root)} for kernel in bootable(root)}


def old_initramfs(files: Iterable[str], root: str = "") -> list[str]:
    """Kernels whose initramfs is older than a file that says what is loaded at boot; one without an initramfs needs
    none."""
    changed = [
        info.st_mtime_ns for path in files if path.startswith(BOOT_FILES) and (info := lstat(root + path)) is not None
    ]
    images = {kernel: lstat(f"{root}/boot/initrd.img-{kernel}") for kernel in bootable(root)}
    return [kernel for kernel, info in images.items() if info and info.st_mtime_ns < max(changed, default=0)]


def loaded(root: str = "") -> tuple[str, bool]:
    """Version of the module that runs, empty when none does, and whether it is the open one."""
    version = read_kernel(f"{root}/sys/module/nvidia/version", 256).decode("ascii", "replace").strip()
    told = read_kernel(f"{root}/proc/driver/nvidia/version", 1 << 14).decode("utf-8", "replace")
    return version, "Open Kernel Module" in told


def nouveau(root: str = "") -> list[str]:
    """Bus ids of the cards that a free driver holds."""
    base = f"{root}/sys/bus/pci/devices"
    held = []
    for slot in _names(base):
        if read_kernel(f"{base}/{slot}/vendor", 64).strip() != b"0x10de":
            continue
        link = Path(f"{base}/{slot}/driver")
        if link.is_symlink() and link.readlink().name in _NOUVEAU:
            held.append(slot)
    return held


def persistence_masked(root: str = "") -> bool:
    """Whether the daemon that keeps the driver loaded may not start; our unit starts one that is only disabled."""
    link = Path(root + PERSISTENCE)
    return link.is_symlink() and str(link.readlink()) == os.devnull


def run_file(own_packages: dict[str, dict[str, Any]], root: str = "") -> bool:
    """Whether a driver is there that no package owns, as NVIDIA's .run file installs it."""
    if any(name.startswith(("nvidia-", "libcuda1", "libnvidia-")) for name in own_packages):
        return False
    return bool(loaded(root)[0]) or any(os.path.lexists(root + path) for path in _RUN_FILE)


def proven_kernels(root: str = "") -> list[str]:
    """Kernels that were proven on this host, the last first; none where nobody rebooted it with llamarig."""
    try:
        told = read_json(root + KERNELS)
    except UnusualFileError:
        return []
    kernels = told.get("proven") if isinstance(told, dict) else None
    return [name for name in kernels if isinstance(name, str) and name] if isinstance(kernels, list) else []


def observe(probe: dict[str, Any], root: str = "") -> dict[str, Any]:
    """Everything that the comparison and the role need; ``probe`` is docs/contracts.md, Probe list, ``driver``."""
    own, apart = list(probe.get("own", [])), list(probe.get("apart", []))
    named = [*probe.get("packages", []), *probe.get("other", []), *probe.get("stale-packages", [])]
    table = _table(root)
    there = packages(named, own, apart, root, table)
    version, is_open = loaded(root)
    unit = str(probe.get("unit", ""))
    key, certificate = signing_key(bootable(root), root)
    return {
        "packages": there,
        "kernels": kernels(root),
        "flavours": flavours(root, table),
        "proven-kernels": proven_kernels(root),
        "reboot-tried": read_note(root),
        "initramfs": old_initramfs(probe.get("files", {}), root),
        "loaded": version,
        "open": is_open,
        "run-file": run_file({name: entry for name, entry in there.items() if is_own(name, own, apart)}, root),
        "nouveau": nouveau(root),
        "secure-boot": secure_boot(root),
        "signing-key": key,
        "signing-certificate": certificate,
        "stale": [path for path in probe.get("stale", []) if os.path.lexists(root + path)],
        "persistence-masked": persistence_masked(root),
        "enabled": bool(unit) and os.path.lexists(f"{root}{WANTS}/{unit}"),
    }
