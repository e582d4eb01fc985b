"""A signed apt repository of stand-ins: packages that bear the names of NVIDIA's and hold no driver at all."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

KERNEL = "6.12.0-stand-in-amd64"
"""One that no archive has, so that only the stand-in of its headers is offered."""

_DKMS = """#!/bin/sh
set -e
# Leaves what dkms 3.2.2 leaves of an installed module; nothing is compiled.
version=%s
base=/var/lib/dkms/nvidia
mkdir -p "$base/$version" /usr/src/nvidia-$version
ln -sfn /usr/src/nvidia-$version "$base/$version/source"
for image in /boot/vmlinuz-*; do
  kernel=${image#/boot/vmlinuz-}
  test -e "/lib/modules/$kernel/build/Makefile"
  mkdir -p "$base/$version/$kernel/x86_64/module" "/lib/modules/$kernel/updates/dkms"
  touch "/lib/modules/$kernel/updates/dkms/nvidia.ko"
  ln -sfn "$version/$kernel/x86_64" "$base/kernel-$kernel-x86_64"
done
"""


@dataclass(frozen=True)
class StandIn:
    """One package: control fields, files by path, and what runs after it was unpacked."""

    name: str
    version: str
    fields: str = ""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    after: str = ""

    def control(self) -> str:
        return (
            f"Package: {self.name}\nVersion: {self.version}\nArchitecture: amd64\nMaintainer: tests\n{self.fields}"
            "Description: stand-in of llamarig's tests, without a driver inside\n"
        )


def set_of(version: str) -> list[StandIn]:
    """What NVIDIA's repository offers of one version, as far as the names go."""
    full = f"{version}-1"
    return [
        StandIn("nvidia-driver-cuda", full, f"Depends: libcuda1 (= {full})\n"),
        StandIn("libcuda1", full),
        StandIn("firmware-nvidia-gsp", full),
        StandIn(
            "nvidia-kernel-open-dkms",
            full,
            f"Depends: firmware-nvidia-gsp (= {full})\nConflicts: nvidia-kernel-dkms\n",
            after=_DKMS % version,
        ),
        StandIn("nvidia-kernel-dkms", full, "Conflicts: nvidia-kernel-open-dkms\n", after=_DKMS % version),
    ]


def headers(kernel: str = KERNEL) -> StandIn:
    """The headers of a kernel, as far as they are looked at."""
    return StandIn(f"linux-headers-{kernel}", "1", files={f"usr/lib/modules/{kernel}/build/Makefile": "all:\n"})


def _archive(files: Mapping[str, tuple[str | bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", format=tarfile.GNU_FORMAT) as archive:
        made: set[str] = set()
        for path, (content, mode) in files.items():
            parents = path.split("/")[:-1]
            for depth in range(1, len(parents) + 1):
                folder = "/".join(parents[:depth])
                if folder not in made:
                    made.add(folder)
                    info = tarfile.TarInfo(f"./{folder}/")
                    info.type, info.mode = tarfile.DIRTYPE, 0o755
                    archive.addfile(info)
            held = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(f"./{path}")
            info.size, info.mode = len(held), mode
            archive.addfile(info, io.BytesIO(held))
    return buffer.getvalue()


def deb(package: StandIn) -> bytes:
    """The package as dpkg takes it: an ar archive of three members (deb(5))."""
    control: dict[str, tuple[str | bytes, int]] = {"control": (package.control(), 0o644)}
    if package.after:
        control["postinst"] = (package.after, 0o755)
    documented: dict[str, str | bytes] = {f"usr/share/doc/{package.name}/stand-in": "made by llamarig's tests\n"}
    data = {path: (content, 0o644) for path, content in (documented | dict(package.files)).items()}
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": _archive(control),
        "data.tar.xz": _archive(data),
    }
    out = b"!<arch>\n"
    for name, content in members.items():
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        out += content + (b"\n" if len(content) % 2 else b"")
    return out


@dataclass(frozen=True)
class Signer:
    """A key of the tests' own in a keyring of its own; ``digest`` is that of the signature that binds its parts."""

    home: Path
    digest: str = "SHA256"

    def make(self) -> str:
        """Make the key; its whole fingerprint."""
        self.home.mkdir(mode=0o700)
        options = ["--cert-digest-algo", self.digest, "--passphrase", ""]
        self._gpg(*options, "--quick-gen-key", "Stand-in <tests@example.invalid>", "rsa3072", "sign", "never")
        listed = self._gpg("--with-colons", "--list-keys")
        return next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))

    def public(self) -> bytes:
        return self._gpg("--armor", "--export").encode()

    def sign(self, text: str) -> str:
        return self._gpg("--digest-algo", "SHA512", "--clearsign", given=text)

    def _gpg(self, *arguments: str, given: str = "") -> str:
        command = ["gpg", "--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback", "--homedir", str(self.home)]
        done = subprocess.run([*command, *arguments], input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def repository(packages: list[StandIn], signer: Signer) -> dict[str, bytes]:
    """The files of a flat repository, by name: packages, Packages and the signed InRelease."""
    files: dict[str, bytes] = {}
    stanzas = []
    for package in packages:
        name, content = f"{package.name}_{package.version}_amd64.deb", deb(package)
        files[name] = content
        sha256 = hashlib.sha256(content).hexdigest()
        stanzas.append(f"{package.control()}Filename: ./{name}\nSize: {len(content)}\nSHA256: {sha256}\n")
    index = "\n".join(stanzas).encode()
    files["Packages"] = index
    release = (
        "Origin: stand-in\nLabel: stand-in\nArchitectures: amd64\nDate: Sun, 29 Nov 2026 12:00:00 UTC\n"
        f"SHA256:\n {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n"
    )
    files["InRelease"] = signer.sign(release).encode()
    return files
