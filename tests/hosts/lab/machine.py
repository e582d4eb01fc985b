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
HOOKS = (
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
        mmdebstrap(recipe, root, "directory", extra=("linux-image-cloud-amd64",), options=HOOKS)
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


class Virtual(Remote):
    """A virtual machine, driven over SSH. Use it as a context; at the end it and its state are gone."""

    def __init__(self, *, memory_mib: int) -> None:
        ensure_commands(COMMANDS)
        self.state = Path(tempfile.mkdtemp(prefix="machine-", dir=cache_dir() / "lab"))
        self.identity, self.host_key = KeyPair(self.state / "id_ed25519"), KeyPair(self.state / "host_key")
        self.port = free_port()
        known = self.host_key.public_text()
        config = write_ssh_config(self.state, "machine", "127.0.0.1", self.identity.private, known, port=self.port)
        super().__init__("machine", config)
        self._memory_mib = memory_mib
        self._log = self.state / "console.log"
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, options: list[str]) -> None:
        """Switch the machine on. ``options`` tell QEMU from what it boots; the console's text is added to the log."""
        command = ["qemu-system-x86_64", "-nodefaults", "-display", "none"]
        command += ["-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", str(self._memory_mib)]
        forward = f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22"
        command += ["-netdev", forward, "-device", "virtio-net-pci,netdev=net"]
        command += ["-chardev", f"file,id=console,path={self._log},append=on", "-serial", "chardev:console"]
        command += ["-smbios", f"type=11,value={_credential(self.identity, self.host_key)}"]
        self._process = subprocess.Popen(
            [*command, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        try:
            self.wait_booted()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def console(self) -> str:
        """Everything that its console has shown since it was switched on first."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def cut_power(self) -> None:
        """End it at once, as by pulling the plug: nothing is written any more."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def stop(self) -> None:
        """End the machine and take its state away."""
        self.cut_power()
        shutil.rmtree(self.state, ignore_errors=True)

    def ended(self, seconds: float) -> None:
        """Wait until it has switched itself off; :class:`LabError` when it does not within ``seconds``."""
        try:
            if self._process is not None:
                self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"the machine is still on after {seconds:.0f} s:\n{self.console()[-3000:]}") from error
        self._process = None

    def wait_down(self, seconds: float = 120) -> None:
        """Until it does not answer any more, on its way down; :class:`LabError` when it goes on answering."""
        deadline = time.monotonic() + seconds
        while self._said("echo up"):
            if time.monotonic() > deadline:
                raise LabError("the machine is to reboot and still answers")
            time.sleep(1)

    def wait_booted(self) -> None:
        """Until systemd has started what it starts; :class:`LabError` with the console when it does not."""
        deadline = time.monotonic() + BOOT_SECONDS
        state = ""
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                said = b"" if self._process is None else self._process.communicate()[1] or b""
                raise LabError(f"qemu has ended: {said.decode(errors='replace')[-2000:]}")
            state = self._said("systemctl is-system-running")
            if state in {"running", "degraded"}:
                return
            time.sleep(1)
        raise LabError(f"the machine did not boot (it says {state!r}); its console:\n{self.console()[-3000:]}")

    def _said(self, command: str) -> str:
        """What a command printed; nothing when the machine does not answer, or goes down before it has."""
        try:
            return self.ssh(command, check=False, seconds=60).strip()
        except subprocess.TimeoutExpired:
            return ""


class Machine(Virtual):
    """One that boots the cloud kernel without a boot loader, from a throw-away copy of its disk."""

    def __init__(self, *, memory_mib: int = 1024) -> None:
        ensure_commands(COMMANDS)
        disk, kernel, initrd = _ensure_disk(machine_recipe())
        super().__init__(memory_mib=memory_mib)
        options = ["-no-reboot", "-kernel", str(kernel), "-initrd", str(initrd)]
        options += ["-append", "root=/dev/vda rw console=ttyS0 quiet"]
        self.launch([*options, "-drive", f"file={disk},format=raw,if=virtio,snapshot=on"])


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
