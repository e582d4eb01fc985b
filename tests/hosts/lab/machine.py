"""A virtual machine with a kernel of its own, for what containers cannot show: enforced memory and task limits.

Debian 13 with the cloud kernel under QEMU. It is emulated in software, which works everywhere: KVM in a rented
machine often half works. The disk is made once and kept; every run works on a throw-away
copy of it. Keys get in as systemd credentials.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from lab.host import Remote
from lab.image import Recipe, holds, keep, machine_recipe, mmdebstrap
from lab.packages import LabError, cache_dir, ensure_commands
from lab.ssh import KeyPair, free_port, write_ssh_config

COMMANDS = {"qemu-system-x86_64": "qemu-system-x86", "mkfs.ext4": "e2fsprogs", "ssh": "openssh-client"}
DISK_MIB = 3072
BOOT_SECONDS = 300.0
_NETWORK = "[Match]\\nName=en* eth*\\n[Network]\\nDHCP=yes\\n"
_HOOKS = (
    f"--customize-hook=printf '{_NETWORK}' >\"$1/etc/systemd/network/any.network\"",
    '--customize-hook=systemctl --root="$1" enable systemd-networkd.service',
    '--customize-hook=echo lab >"$1/etc/hostname"',
    "--customize-hook=echo 'HostKey /etc/ssh/lab_host_key' >\"$1/etc/ssh/sshd_config.d/lab.conf\"",
)


def _ensure_disk(recipe: Recipe) -> tuple[Path, Path, Path]:
    """(disk, kernel, initrd), from the cache or made now."""
    directory = cache_dir() / "lab" / f"machine-{recipe.key}"
    files = tuple(directory / name for name in ("disk.raw", "vmlinuz", "initrd"))
    if not all(holds(path) for path in files):
        if not recipe.sources:
            raise LabError("the machine's disk is made from Debian's archive, and this machine's apt has none")
        directory.mkdir(parents=True, exist_ok=True)
        _make_disk(recipe, directory)
    return files[0], files[1], files[2]


def _make_disk(recipe: Recipe, directory: Path) -> None:
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        root = Path(scratch) / "root"
        mmdebstrap(recipe, root, "directory", extra=("linux-image-cloud-amd64",), options=_HOOKS)
        for pattern, name in (("vmlinuz-*", "vmlinuz"), ("initrd.img-*", "initrd")):
            found = sorted((root / "boot").glob(pattern))
            if len(found) != 1:
                raise LabError(f"{len(found)} files match /boot/{pattern} in the machine's disk, not one")
            keep(found[0], directory / name)
        disk = Path(scratch) / "disk.raw"
        with disk.open("wb") as stream:
            stream.truncate(DISK_MIB << 20)
        subprocess.run(["mkfs.ext4", "-q", "-L", "root", "-d", str(root), str(disk)], check=True, capture_output=True)
        keep(disk, directory / "disk.raw")


class Machine(Remote):
    """A running virtual machine, driven over SSH. Use it as a context; at the end it is gone."""

    def __init__(self, *, memory_mib: int = 1024) -> None:
        ensure_commands(COMMANDS)
        disk, kernel, initrd = _ensure_disk(machine_recipe())
        self._state = Path(tempfile.mkdtemp(prefix="machine-", dir=cache_dir() / "lab"))
        identity, host_key = KeyPair(self._state / "id_ed25519"), KeyPair(self._state / "host_key")
        port = free_port()
        config = write_ssh_config(
            self._state, "machine", "127.0.0.1", identity.private, host_key.public_text(), port=port
        )
        super().__init__("machine", config)
        self._log = self._state / "console.log"
        command = ["qemu-system-x86_64", "-nodefaults", "-display", "none", "-no-reboot"]
        command += ["-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", str(memory_mib)]
        command += ["-kernel", str(kernel), "-initrd", str(initrd)]
        command += ["-append", "root=/dev/vda rw console=ttyS0 quiet"]
        command += ["-drive", f"file={disk},format=raw,if=virtio,snapshot=on"]
        command += ["-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{port}-:22", "-device", "virtio-net-pci,netdev=net"]
        command += ["-serial", f"file:{self._log}"]
        command += ["-smbios", f"type=11,value={_credential(identity, host_key)}"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        try:
            self._wait_booted()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the machine and take its state away."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._state, ignore_errors=True)

    def _wait_booted(self) -> None:
        deadline = time.monotonic() + BOOT_SECONDS
        state = ""
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                said = (self._process.communicate()[1] or b"").decode(errors="replace")
                raise LabError(f"qemu ended with {self._process.returncode}: {said[-2000:]}")
            state = self.ssh("systemctl is-system-running", check=False, seconds=60).strip()
            if state in {"running", "degraded"}:
                return
            time.sleep(1)
        console = self._log.read_text(errors="replace")[-3000:] if self._log.exists() else ""
        raise LabError(f"the machine did not boot (it says {state!r}); its console:\n{console}")


def _credential(identity: KeyPair, host_key: KeyPair) -> str:
    """Login key and host key as lines of tmpfiles.d, which systemd carries out before sshd starts."""
    lines = [
        f"f+~ /etc/ssh/lab_host_key 0600 root root - {_base64(host_key.private.read_text())}",
        "d /root/.ssh 0700 root root -",
        f"f+~ /root/.ssh/authorized_keys 0600 root root - {_base64(identity.public_text())}",
    ]
    return f"io.systemd.credential.binary:tmpfiles.extra={_base64(chr(10).join(lines) + chr(10))}"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
