"""The CUDA toolkit as data: where it lies, what pins every byte of it, and what it is tried with."""

from __future__ import annotations

import hashlib
import json

from llamarig.catalog.toolkits import needs_header_fix, system
from llamarig.render.wanted import TOOLKITS, WantedToolkit
from llamarig.spec.host import HostSpec


def compiler_policy(spec: HostSpec) -> str:
    """Which compiler builds: the distribution's own, by major version where that is known."""
    known = system(f"{spec.os.distribution} {spec.os.release}")
    return f"gcc-{known.gcc if known is not None else 'distribution'}"


def host_compiler(spec: HostSpec) -> str:
    """The C++ compiler that nvcc is told to use, by name."""
    version = compiler_policy(spec).removeprefix("gcc-")
    return f"g++-{version}" if version.isdigit() else "g++"


def prefix(version: str) -> str:
    """The directory of a toolkit; nothing of it is in anybody's PATH."""
    return f"{TOOLKITS}/{version}"


def toolkit(spec: HostSpec) -> WantedToolkit | None:
    """The toolkit that the spec asks for; None where none builds the engine."""
    cuda = spec.cuda
    if cuda is None or spec.engine.backend != "cuda":
        return None
    fix = needs_header_fix(cuda.version, f"{spec.os.distribution} {spec.os.release}")
    inputs = {
        "version": cuda.version,
        "pins": dict(sorted(cuda.wheels.items())) or {"sha256": cuda.sha256 or ""},
        "header-fix": fix,
    }
    return WantedToolkit(
        version=cuda.version,
        prefix=prefix(cuda.version),
        source=cuda.source,
        location=cuda.location or "",
        sha256=cuda.sha256 or "",
        wheels=dict(sorted(cuda.wheels.items())),
        header_fix=fix,
        id=hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest(),
        compiler=host_compiler(spec),
        architectures=tuple(spec.engine.architectures),
    )
