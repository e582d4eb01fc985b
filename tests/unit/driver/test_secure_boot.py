"""Secure Boot read from trees composed after UEFI's variables and dkms's configuration: which key counts."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.support.observe.load import part

secure = part("rig_secure_boot")

SECURE = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23"
KERNELS = ["6.12.100+deb13-amd64", "6.12.117+deb13-amd64"]
DKMS, UBUNTU = "/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der"
KEYS = {DKMS: b"0\x82\x03\x0bcertificate of dkms", UBUNTU: b"0\x82\x03\x0bcertificate of shim-signed"}


def write(root: Path, path: str, content: bytes | str) -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with both keys, as one is that was set up for Ubuntu's instructions on Debian."""
    for path, key in KEYS.items():
        write(tmp_path, path, key)
    write(tmp_path, "etc/os-release", "ID=debian\n")
    write(tmp_path, "etc/dkms/framework.conf", f'# mok_certificate="{UBUNTU}"\n# mok_signing_key=/x\n')
    return tmp_path


def enrol(root: Path, *keys: bytes) -> None:
    write(root, "sys/firmware/efi/mok-variables/MokListRT", b"list" + b"".join(keys) + b"others")


def key(root: Path) -> tuple[str, str]:
    found: tuple[str, str] = secure.signing_key(KERNELS, str(root))
    return found


def test_secure_boot_is_read_from_the_firmware(root: Path) -> None:
    assert secure.secure_boot(str(root)) is None
    write(root, SECURE, b"\x06\x00\x00\x00\x01")
    assert secure.secure_boot(str(root)) is True
    write(root, SECURE, b"\x06\x00\x00\x00\x00")
    assert secure.secure_boot(str(root)) is False


def test_the_key_of_dkms_is_looked_for_among_the_enrolled(root: Path) -> None:
    assert key(root) == ("unknown", DKMS)
    write(root, f"sys/firmware/efi/efivars/MokNew-{SHIM}", b"\x07\x00\x00\x00list" + KEYS[DKMS])
    assert key(root) == ("pending", DKMS)
    enrol(root, KEYS[DKMS])
    assert key(root) == ("enrolled", DKMS)
    (root / DKMS.lstrip("/")).unlink()
    assert key(root) == ("absent", DKMS)


def test_the_other_key_of_the_machine_does_not_stand_for_it(root: Path) -> None:
    enrol(root, KEYS[UBUNTU])
    assert key(root) == ("unknown", DKMS)
    # Ubuntu's dkms signs with that very key, and there dkms's own directory says nothing.
    write(root, "etc/os-release", "ID=ubuntu\nID_LIKE=debian\n")
    assert key(root) == ("enrolled", UBUNTU)
    enrol(root, KEYS[DKMS])
    assert key(root) == ("unknown", UBUNTU)


@pytest.mark.parametrize(
    "line",
    [
        f"mok_certificate={UBUNTU}",
        f'  mok_certificate="{UBUNTU}"  # of the machine',
        f"export mok_certificate='{UBUNTU}'",
        f"mok_certificate=/elsewhere\nmok_certificate={UBUNTU}",
    ],
)
def test_what_the_configuration_names_counts(root: Path, line: str) -> None:
    enrol(root, KEYS[UBUNTU])
    write(root, "etc/dkms/framework.conf", f"{line}\nmok_signing_key=/var/lib/shim-signed/mok/MOK.priv\n")
    assert key(root) == ("enrolled", UBUNTU)
    write(root, "etc/dkms/framework.conf.d/50-other.conf", f"mok_certificate={DKMS}\n")
    assert key(root) == ("unknown", DKMS)
    write(root, "etc/dkms/framework.conf.d/60.conf.dpkg-old", f"mok_certificate={UBUNTU}\n")
    assert key(root) == ("unknown", DKMS)


def test_ubuntu_without_a_named_key_takes_its_own_whatever_certificate_is_named(root: Path) -> None:
    write(root, "etc/os-release", "ID=ubuntu\n")
    write(root, "etc/dkms/framework.conf", f"mok_certificate={DKMS}\n")
    assert key(root)[1] == UBUNTU
    write(root, "etc/dkms/framework.conf", "mok_signing_key=/root/mine.priv\n")
    assert key(root)[1] == DKMS


def test_a_key_for_each_kernel_must_be_enrolled_for_each(root: Path) -> None:
    write(root, "etc/dkms/framework.conf", "mok_signing_key=/k\nmok_certificate=/keys/${kernelver}/mok.der\n")
    for kernel in KERNELS:
        write(root, f"keys/{kernel}/mok.der", kernel)
    enrol(root, KERNELS[0].encode())
    assert key(root) == ("unknown", f"/keys/{KERNELS[1]}/mok.der")
    enrol(root, *(kernel.encode() for kernel in KERNELS))
    assert key(root)[0] == "enrolled"
    assert secure.signing_key([], str(root)) == ("absent", DKMS)


def test_an_armoured_certificate_is_the_same_one(root: Path) -> None:
    text = b"-----BEGIN CERTIFICATE-----\n" + base64.b64encode(KEYS[DKMS]) + b"\n-----END CERTIFICATE-----\n"
    write(root, DKMS, text)
    assert key(root)[0] == "unknown"
    enrol(root, KEYS[DKMS])
    assert key(root)[0] == "enrolled"


@pytest.mark.parametrize("line", ['mok_certificate="', "mok_certificate=", "mok_certificate=$(date)", "\x00\xff"])
def test_a_configuration_of_another_form_enrols_nothing(root: Path, line: str) -> None:
    enrol(root, KEYS[UBUNTU])
    write(root, "etc/dkms/framework.conf", line)
    assert key(root)[0] in ("unknown", "absent")


def test_a_bare_tree_has_no_key(tmp_path: Path) -> None:
    assert key(tmp_path) == ("absent", DKMS)
