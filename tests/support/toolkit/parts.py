"""Parts of a CUDA toolkit, composed: wheels, archives and a runfile of the form in which NVIDIA gives them, but tiny.

Their nvcc is a shell script that answers ``--version`` and copies a library that lies beside it to where ``-o`` says.
"""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Mapping

from tests.unit.build.test_machine_code import CODE, container, elf, image

NVCC = b"""#!/bin/sh
here=$(dirname "$0")
case "$*" in *--version*) echo "Cuda compilation tools, release 13.0, V13.0.88"; exit 0;; esac
while [ "$1" != "-o" ]; do shift; done
cp "$here/made" "$2"
"""
CUDA_H = b"typedef int CUresult;\nextern CUresult cuInit(unsigned int flags);\n"
DECLARATION = "extern __DEVICE_FUNCTIONS_DECL__ __device_builtin__ {kind:<22} {name}({kind} x){behind};"


def library(*architectures: str) -> bytes:
    """What a compiler makes: a library with machine code for these."""
    return elf(container(*(image(CODE, each) for each in architectures)))


def header(behind: str = "") -> str:
    """The lines of crt/math_functions.h of 12.9 around the four declarations, with ``behind`` them."""
    names = {"sinpi": "double", "sinpif": "float", "cospi": "double", "cospif": "float"}
    lines = [DECLARATION.format(kind=kind, name=name, behind=behind) for name, kind in names.items()]
    lines += ["__MATH_FUNCTIONS_DECL__ float sinpi(const float a);", "__func__(double cospi(double a));"]
    return "/* * \\see ::sinpi() and ::cospi(). */\n" + "\n".join(lines) + "\n"


def files(*architectures: str) -> dict[str, bytes]:
    """A whole toolkit in the one layout."""
    return {
        "bin/nvcc": NVCC,
        "bin/made": library(*architectures),
        "include/cuda.h": CUDA_H,
        "include/crt/math_functions.h": header().encode(),
        "lib/libcudart.so.13": b"cudart",
    }


def wheel(members: Mapping[str, bytes], mode: int = stat.S_IFREG | 0o744) -> bytes:
    """A wheel as NVIDIA's are: everything below ``nvidia/cu13``, programs executable for their owner alone."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name if name.startswith("/") or ".." in name else f"nvidia/cu13/{name}")
            info.external_attr = mode << 16
            archive.writestr(info, content)
        archive.writestr("nvidia_x-13.0.dist-info/METADATA", "about")
    return buffer.getvalue()


def tar(members: Mapping[str, bytes], below: str, *odd: tarfile.TarInfo, mode: str = "w:xz") -> bytes:
    """A tar archive with everything below one name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(f"{below}/{name}")
            info.size, info.mode = len(content), 0o755 if name.startswith("bin/") else 0o644
            archive.addfile(info, io.BytesIO(content))
        for info in odd:
            archive.addfile(info)
    return buffer.getvalue()


def entry(name: str, kind: bytes, target: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    """A member without content."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info


def runfile(members: Mapping[str, bytes], old: bool = True) -> bytes:
    """A self-extracting archive as makeself 2.1.4 writes it, which NVIDIA uses, or as later ones do."""
    held = {f"cuda_nvcc/{name}": content for name, content in members.items()}
    # The installer holds more than a toolkit: a driver, and libraries that build nothing here.
    held |= {"cuda_gdb/bin/cuda-gdb": b"gdb", "libcufft/lib/libcufft.so.11": b"fft", "NVIDIA-Linux.run": b"driver"}
    packed = gzip.compress(tar(held, "./builds", mode="w"))
    if old:
        lines = ["#!/bin/sh", "# This script was generated using Makeself 2.1.4", "echo never run >&2; exit 1"]
        lines += ['offset=`head -n 5 "$0" | wc -c | tr -d " "`', "exit 0"]
    else:
        lines = ["#!/bin/sh", "# This script was generated using Makeself 2.4.5", 'skip="4"', "exit 1"]
    return "\n".join([*lines, ""]).encode() + packed
