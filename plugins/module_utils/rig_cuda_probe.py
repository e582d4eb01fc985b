"""Try a CUDA toolkit before anything is built with it: compile and link a small source as the build user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from ansible.module_utils import rig_fatbin
from ansible.module_utils.rig_release_run import without_network
from ansible.module_utils.rig_unpack import RefusedError

SOURCE = """\
#include <cuda_runtime.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cmath>

__global__ void scale(float * values, float by) { values[threadIdx.x] = cosf(values[threadIdx.x] * by); }

extern "C" int probe(float * values, double by) {
    scale<<<1, 32>>>(values, static_cast<float>(std::cos(by)));
    return cudaDeviceSynchronize() == cudaSuccess && cuInit(0) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : 1;
}
"""
"""Reaches the headers that clash with a C library, both runtimes and the driver's library, as the engine does."""
_SAID = 6000
_DECLARED = re.compile(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(")
_STUB_ERROR = 34
"""CUDA_ERROR_STUB_LIBRARY, which says of itself that it is no driver."""
SECONDS = 600


def _as_user(user: str, command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a part of the toolkit as the build user, without network and with an empty environment."""
    drop: list[str] = []
    if os.geteuid() == 0:
        drop = [*without_network(), "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        drop += ["--no-new-privs", "--bounding-set=-all"]
    return subprocess.run(  # noqa: S603 - no shell, and a user without rights
        [*drop, *command],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=SECONDS,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(cwd), "TMPDIR": str(cwd)},
    )


def _gencode(architecture: str) -> list[str]:
    name, _, kind = architecture.partition("-")
    if kind == "virtual":
        return ["-gencode", f"arch=compute_{name},code=compute_{name}"]
    codes = f"sm_{name}" if kind == "real" else f"[compute_{name},sm_{name}]"
    return ["-gencode", f"arch=compute_{name},code={codes}"]


def _failed(what: str, done: subprocess.CompletedProcess[str]) -> RefusedError:
    said = (done.stdout + done.stderr).strip()
    return RefusedError(f"{what} (exit status {done.returncode}):\n{said[-_SAID:]}")


def make_stub(prefix: Path, compiler: str, user: str, work: Path) -> None:
    """A stand-in for the driver's library to link against, where the parts bring none (wheels do not).

    It has every function that the toolkit's own cuda.h declares, under the name that a source gets for it. Nothing
    runs with it: it lies in no place where the loader looks.
    """
    stubs = prefix / "lib" / "stubs"
    if (stubs / "libcuda.so").exists():
        return
    seen = _as_user(user, [compiler, "-E", "-P", "-x", "c++", str(prefix / "include/cuda.h")], work)
    if seen.returncode != 0:
        raise _failed("cuda.h of the toolkit cannot be read", seen)
    names = sorted(set(_DECLARED.findall(seen.stdout)))
    source, library = work / "stub.c", work / "libcuda.so"
    source.write_text("".join(f"int {name}(void) {{ return {_STUB_ERROR}; }}\n" for name in names))
    command = [compiler, "-x", "c", "-shared", "-fPIC", "-w", "-fno-builtin", "-Wl,-soname,libcuda.so.1"]
    done = _as_user(user, [*command, "-o", str(library), str(source)], work)
    if done.returncode != 0:
        raise _failed("the stand-in for the driver's library cannot be made", done)
    stubs.mkdir(mode=0o755, exist_ok=True)
    with (stubs / "libcuda.so").open("xb") as file:
        file.write(library.read_bytes())
        os.fchmod(file.fileno(), 0o644)


def probe(prefix: Path, compiler: str, architectures: list[str], user: str) -> str:
    """Compile and link :data:`SOURCE` for the architectures, and look at its machine code; the version of nvcc.

    Raises :class:`RefusedError` with nvcc's own words.
    """
    with tempfile.TemporaryDirectory(prefix="llamarig-probe-") as name:
        work = Path(name)
        if os.geteuid() == 0:
            shutil.chown(work, user, user)
        make_stub(prefix, compiler, user, work)
        nvcc = str(prefix / "bin/nvcc")
        version = _as_user(user, [nvcc, "--version"], work)
        if version.returncode != 0:
            raise _failed("nvcc does not start", version)
        (work / "probe.cu").write_text(SOURCE)
        codes = [word for each in architectures for word in _gencode(each)]
        command = [nvcc, "-ccbin", compiler, *codes, "-shared", "-Xcompiler", "-fPIC", "-cudart", "shared"]
        done = _as_user(user, [*command, "-o", "probe.so", "probe.cu", "-lcublas", "-lcuda"], work)
        if done.returncode != 0:
            raise _failed(f"nvcc cannot compile a small source with {compiler}", done)
        with (work / "probe.so").open("rb") as library:
            found = set(rig_fatbin.images(library))
        problems = rig_fatbin.wrong(found, set(architectures), set())
        if problems:
            raise RefusedError(f"what nvcc made of a small source is not what was asked for: {'; '.join(problems)}")
        return next((line.strip() for line in version.stdout.splitlines() if "release" in line), "")
