"""Whether the firmware takes signed modules only, and whether it knows the key that dkms signs with. Files alone are
read: the firmware's variables, dkms's configuration and its certificate."""

from __future__ import annotations

import base64
import binascii
import os
import re
import shlex

from ansible.module_utils.rig_files import read_kernel
from ansible.module_utils.rig_system import os_release

_EFI = "/sys/firmware/efi"
_SECURE_BOOT = f"{_EFI}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
"""UEFI specification, 3.3: four octets of attributes, then 1 when it is on."""
_SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23"
_ENROLLED = (
    f"{_EFI}/mok-variables/MokListRT",
    f"{_EFI}/efivars/MokListRT-{_SHIM}",
    f"{_EFI}/efivars/db-d719b2cb-3d3a-4596-a3bc-dad00e67656f",
)
"""Where the kernel and shim tell which keys a machine's owner has enrolled; a certificate stands in it as it is."""
_PENDING = (f"{_EFI}/efivars/MokNew-{_SHIM}",)
CONFIG = "/etc/dkms/framework.conf"
"""And each ``framework.conf.d/*.conf`` after it (read_framework_conf and prepare_signing in dkms 3.0.10 and later)."""
DKMS_KEY = "/var/lib/dkms/mok.pub"
UBUNTU_KEY = "/var/lib/shim-signed/mok/MOK.der"
"""Of update-secureboot-policy, which dkms takes on Ubuntu where nobody has named a key."""
_ASSIGNED = re.compile(r"(?m)^[ \t]*(?:export[ \t]+)?(mok_signing_key|mok_certificate)=([^\n]*)$")
_KERNEL = ("${kernelver}", "$kernelver")
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_LARGEST = 1 << 16
WORST = ("unknown", "absent", "pending", "enrolled")


def secure_boot(root: str = "") -> bool | None:
    """Whether the firmware takes signed modules only; None on a machine without UEFI."""
    value = read_kernel(root + _SECURE_BOOT, 64)
    if not value:
        return None
    return value[-1:] == b"\x01"


def _configured(root: str) -> dict[str, str]:
    """What dkms's configuration, a piece of shell, says of its key; the last word counts."""
    try:
        names = sorted(name for name in os.listdir(f"{root}{CONFIG}.d") if name.endswith(".conf"))  # noqa: PTH208 - names are enough
    except OSError:
        names = []
    found: dict[str, str] = {}
    for path in (CONFIG, *(f"{CONFIG}.d/{name}" for name in names)):
        text = read_kernel(root + path, _LARGEST).decode("utf-8", "replace")
        for name, value in _ASSIGNED.findall(text):
            try:
                words = shlex.split(value, comments=True)
            except ValueError:
                words = [value]
            found[name] = words[0] if words else ""
    return found


def certificates(kernels: list[str], root: str = "") -> list[str]:
    """The certificate that dkms signs with, or one for each kernel where the configuration names them so."""
    told = _configured(root)
    if not told.get("mok_signing_key") and os_release(root)["id"] == "ubuntu":
        return [UBUNTU_KEY]
    path = told.get("mok_certificate") or DKMS_KEY
    if not any(word in path for word in _KERNEL):
        return [path]
    return [path.replace(_KERNEL[0], kernel).replace(_KERNEL[1], kernel) for kernel in kernels]


def _content(path: str, root: str) -> bytes:
    """A certificate as it stands in the firmware's lists."""
    data = read_kernel(root + path, _LARGEST)
    armoured = _PEM.search(data)
    try:
        return base64.b64decode(armoured[1]) if armoured else data
    except binascii.Error:
        return data


def _state(path: str, root: str) -> str:
    if not (key := _content(path, root)):
        return "absent"
    for state, places in (("enrolled", _ENROLLED), ("pending", _PENDING)):
        if any(key in read_kernel(root + place, 1 << 20) for place in places):
            return state
    return "unknown"


def signing_key(kernels: list[str], root: str = "") -> tuple[str, str]:
    """``enrolled``, ``pending`` (imported, and not yet confirmed at the console), ``unknown`` to the firmware, or
    ``absent`` when dkms has no key yet; and its certificate. Of several the worst counts."""
    states = [(_state(path, root), path) for path in certificates(kernels, root)]
    return min(states, key=lambda each: WORST.index(each[0]), default=("absent", DKMS_KEY))
