"""A virtual machine that boots as a user's does: firmware, GRUB in the disk's first sectors, one of two real kernels.

The disk is made once and kept. GRUB is installed from within the machine, as Debian's installer does: it is booted
without a boot loader that one time. Every run works on a copy-on-write layer, which outlives a cut of the power.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from lab.image import holds, keep, machine_recipe, mmdebstrap
from lab.machine import COMMANDS, HOOKS, Virtual
from lab.packages import LabError, cache_dir, ensure_commands

PACKAGES = ("grub-pc", "initramfs-tools", "zstd", "kmod", "dkms", "e2fsprogs")
DISK_MIB = 4096
_START = 2048
"""First sector of the only partition; GRUB's own code lies before it."""
_SECTOR = 512
_SCRIPTS = (Path(__file__).with_name("two_kernels.sh"), Path(__file__).with_name("install_grub.sh"))
_FORM = 1
_TOOLS = {**COMMANDS, "qemu-img": "qemu-utils"}


class GrubMachine(Virtual):
    """Two kernels on a partitioned disk. It boots the older one first, and from then on whatever GRUB chooses."""

    def __init__(self, *, memory_mib: int = 1536) -> None:
        ensure_commands(_TOOLS)
        disk = _ensure_disk()
        super().__init__(memory_mib=memory_mib)
        self._layer = self.state / "layer.qcow2"
        backing = ["-b", str(disk), "-F", "raw"]
        command = ["qemu-img", "create", "-q", "-f", "qcow2", *backing, str(self._layer)]
        subprocess.run(command, check=True, capture_output=True)
        self.switch_on()

    def switch_on(self) -> None:
        """Boot from the disk; :meth:`wait_booted` waits for it. A reboot stays within the running QEMU."""
        self.launch(["-drive", f"file={self._layer},format=qcow2,if=virtio"])

    def connection(self) -> dict[str, Any]:
        """The ``connection`` of a spec that reaches this machine."""
        return {
            "address": "127.0.0.1",
            "port": self.port,
            "host-key": self.host_key.public_text(),
            "identity-file": str(self.identity.private),
        }

    def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Put a file of root's into the machine."""
        script = f"install -D -m {mode:o} /dev/stdin {path}"
        subprocess.run([*self.ssh_command(), script], input=content, check=True, capture_output=True, timeout=120)


class _Installer(Virtual):
    """The machine while its disk is made: the newer kernel is handed over by QEMU."""

    def __init__(self, disk: Path, kernel: Path, initrd: Path) -> None:
        super().__init__(memory_mib=1024)
        options = ["-no-reboot", "-kernel", str(kernel), "-initrd", str(initrd)]
        options += ["-append", "root=/dev/vda1 rw console=ttyS0 quiet"]
        self.launch([*options, "-drive", f"file={disk},format=raw,if=virtio"])


def _key() -> str:
    """16 hex digits over everything that shapes the disk."""
    parts = [_FORM, machine_recipe().key, PACKAGES, HOOKS, DISK_MIB, *(path.read_text() for path in _SCRIPTS)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _ensure_disk() -> Path:
    """The disk, from the cache or made now."""
    path = cache_dir() / "lab" / f"machine-grub-{_key()}" / "disk.raw"
    if not holds(path):
        recipe = machine_recipe()
        if not recipe.sources:
            raise LabError("the machine's disk is made from Debian's archive, and this machine's apt has none")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            root = Path(scratch) / "root"
            hooks = [f"--customize-hook=upload {path} /root/{path.name}" for path in _SCRIPTS]
            hooks.append('--customize-hook=chroot "$1" sh /root/two_kernels.sh')
            mmdebstrap(recipe, root, "directory", extra=PACKAGES, options=(*HOOKS, *hooks))
            disk = Path(scratch) / "disk.raw"
            _partition(disk)
            _fill(disk, root)
            newer = (root / "srv/newer").read_text().strip()
            _install_grub(disk, root / f"boot/vmlinuz-{newer}", root / f"boot/initrd.img-{newer}")
            keep(disk, path)
    return path


def _partition(disk: Path) -> None:
    """A master boot record with one bootable Linux partition up to the end (its 16 octets: flag, CHS, type, CHS,
    first sector, sectors)."""
    sectors = (DISK_MIB << 20) // _SECTOR
    entry = struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", _START, sectors - _START)
    with disk.open("wb") as stream:
        stream.truncate(DISK_MIB << 20)
        stream.seek(446)
        stream.write(entry.ljust(64, b"\0") + b"\x55\xaa")


def _fill(disk: Path, root: Path) -> None:
    size = (DISK_MIB << 10) - _START * _SECTOR // 1024
    place = ["-E", f"offset={_START * _SECTOR}", "-d", str(root)]
    # GRUB of Debian 13 reads ext4 with the features that mkfs of Debian 12 and 13 choose by default.
    subprocess.run(
        ["mkfs.ext4", "-q", "-L", "root", *place, str(disk), f"{size}k"],
        check=True,
        capture_output=True,
        env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"},
    )


def _install_grub(disk: Path, kernel: Path, initrd: Path) -> None:
    with _Installer(disk, kernel, initrd) as machine:
        machine.ssh("sh /root/install_grub.sh", seconds=600)
        machine.ssh("systemctl poweroff", check=False)
        machine.ended(180)


__all__ = ["GrubMachine"]
