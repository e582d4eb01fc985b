"""A wanted driver as the host's modules get it, and the log of a build that failed."""

from __future__ import annotations

from typing import Any

# Composed after what nvidia-open-kernel-dkms 550.163.01 says on 6.12.117: nv-pci.c calls pci_resize_resource.
MAKE_LOG = """DKMS (dkms-3.2.2) make.log for nvidia-current-open/550.163.01 for kernel 6.12.117+deb13-amd64 (x86_64)
  CC [M]  nvidia/nv-pci.o
nvidia/nv-pci.c: In function 'nv_resize_pcie_bars':
nvidia/nv-pci.c:243:9: error: too few arguments to function 'pci_resize_resource'
  243 |     r = pci_resize_resource(pci_dev, NV_GPU_BAR1, requested_size);
make[3]: *** [scripts/Makefile.build:245: nvidia/nv-pci.o] Error 1
make: *** [Makefile:115: modules] Error 2
"""


def driver(version: str = "590.48.01") -> dict[str, Any]:
    """Two packages of NVIDIA's repository."""
    return {
        "version": version,
        "packages": ["nvidia-driver-cuda", "nvidia-kernel-open-dkms"],
        "own": ["libcuda1", "libnvidia-*", "nvidia-driver*", "nvidia-kernel-*", "firmware-nvidia-gsp"],
        "apart": [],
        "other": ["nvidia-kernel-dkms"],
        "stale_packages": ["cuda-keyring"],
    }
