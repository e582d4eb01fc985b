"""The engine for one card alone: found, or compiled here with what the specs pin."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from llamarig.converge.store.shelf import Shelf
from llamarig.render.wanted import WantedRelease
from scripts.gpu_check import files, project
from scripts.gpu_check.utilities import utility
from scripts.gpu_check.words import CannotAskError, say

PLACES = ("/usr/local/cuda/bin/nvcc",)
TOOLS = {"cmake": "cmake", "ninja": "ninja-build", "g++": "g++"}
JOB_MIB = 2048
"""What one nvcc takes, roughly; with less for each, fewer run at a time."""
CORE_SECONDS = {"cuda": 4000, "cpu": 1200}
"""What a whole build takes of one core, roughly: seen on 2 cores of a small machine."""
_VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class Compiler:
    """An nvcc, and the toolkit around it."""

    prefix: Path
    version: str


@dataclass(frozen=True, slots=True)
class Built:
    """A release: ``bin`` and ``lib`` below ``prefix``."""

    prefix: Path
    seconds: float | None


def compiler(asked: Path | None, shelf: Shelf, work: Path, architecture: str) -> Compiler:
    """The nvcc that is named, else one at hand, else the toolkit that is made of wheels."""
    named = [str(asked)] if asked is not None else [shutil.which("nvcc") or "", *PLACES]
    for place in named:
        if place and os.access(place, os.X_OK):
            return Compiler(Path(place).resolve().parent.parent, version_of(Path(place)))
    if asked is not None:
        raise CannotAskError(f"{asked} is no program", "name nvcc itself, /usr/local/cuda/bin/nvcc say")
    need_tools()
    prefix = files.toolkit(shelf, work / "cuda" / files.TOOLKIT, architecture)
    return Compiler(prefix, version_of(prefix / "bin/nvcc"))


def version_of(nvcc: Path) -> str:
    """``13.0.88``."""
    done = subprocess.run([str(nvcc), "--version"], capture_output=True, text=True, timeout=60, check=False)
    match = _VERSION.search(done.stdout)
    if match is None:
        raise CannotAskError(f"{nvcc} does not tell its version: {(done.stderr or done.stdout)[-300:]}", "name another")
    return match[1]


def jobs(kind: str) -> int:
    """How many compile jobs run at a time."""
    by_memory = int(project.ram_mib() // (JOB_MIB if kind == "cuda" else 1024))
    return max(1, min(project.cores(), by_memory))


def expected(kind: str) -> str:
    """How long a build will take here, in words."""
    minutes = CORE_SECONDS[kind] / jobs(kind) / 60
    return f"about {minutes:.0f} minutes with {jobs(kind)} jobs at a time"


def need_tools() -> None:
    """Raise :class:`CannotAskError` with what is to be installed."""
    missing = [package for command, package in TOOLS.items() if shutil.which(command) is None]
    if missing:
        raise CannotAskError(f"missing: {', '.join(missing)}", f"apt-get install {' '.join(missing)}")


def taken(prefix: Path) -> Built:
    """A finished one. Raises :class:`CannotAskError` when it is none."""
    if not os.access(prefix / "bin/llama-server", os.X_OK):
        raise CannotAskError(f"{prefix} holds no bin/llama-server", "name a directory with bin and lib of a release")
    return Built(prefix, None)


def build(release: WantedRelease, shelf: Shelf, work: Path, with_nvcc: Compiler | None) -> Built:
    """Compile it; what was compiled before is not compiled again."""
    need_tools()
    kind = "cpu" if with_nvcc is None else "cuda"
    tree = files.source(shelf, work)
    out, prefix = work / "build" / release.id, work / "opt" / "current"
    say(f"building release {release.id}: {expected(kind)}; {out} is kept, a second run goes on there")
    started = time.monotonic()
    _run(["cmake", "-G", "Ninja", "-S", str(tree), "-B", str(out), *options(release, with_nvcc)])
    _run(["ninja", "-C", str(out), f"-j{jobs(kind)}", *release.targets])
    _collect(out / "bin", prefix)
    return Built(prefix, time.monotonic() - started)


def options(release: WantedRelease, with_nvcc: Compiler | None) -> list[str]:
    """The planned options, with the toolkit where it really lies."""
    found = list(release.cmake)
    if shutil.which("ccache"):
        found += [f"-DCMAKE_{each}_COMPILER_LAUNCHER=ccache" for each in ("C", "CXX")]
    if with_nvcc is None:
        return found
    planned = next(each.partition("=")[2] for each in found if each.startswith("-DCUDAToolkit_ROOT="))
    kept = [each.replace(planned, str(with_nvcc.prefix)) for each in found]
    host = next((each.partition("=")[2] for each in kept if each.startswith("-DCMAKE_CUDA_HOST_COMPILER=")), "")
    if host and shutil.which(host) is None:
        kept = [each for each in kept if not each.startswith("-DCMAKE_CUDA_HOST_COMPILER=")]
    rpath = next((each for each in kept if each.startswith("-DCMAKE_INSTALL_RPATH=")), "-DCMAKE_INSTALL_RPATH=")
    libraries = next((each for each in ("lib64", "lib") if (with_nvcc.prefix / each).is_dir()), "lib64")
    place = [each for each in (rpath.partition("=")[2], str(with_nvcc.prefix / libraries)) if each]
    kept = [each for each in kept if each != rpath]
    return [*kept, f"-DCMAKE_INSTALL_RPATH={';'.join(place)}"]


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-30:])
        raise CannotAskError(
            f"`{command[0]}` ended with {done.returncode}:\n{tail}",
            "`llamarig doctor --error 'TEXT'` knows what many of them mean",
        )


def _collect(made: Path, prefix: Path) -> None:
    """``bin`` and ``lib`` of what was made."""
    for name in ("bin", "lib"):
        shutil.rmtree(prefix / name, ignore_errors=True)
        (prefix / name).mkdir(parents=True)
    for path in made.iterdir():
        folder = "lib" if ".so" in path.name else "bin"
        shutil.copy2(path, prefix / folder / path.name, follow_symlinks=False)


def machine_code(prefix: Path, architecture: str) -> list[str]:
    """What is wrong with the machine code of the CUDA library; none when it is for that architecture alone."""
    rig_fatbin = utility("rig_fatbin")
    try:
        with (prefix / "lib/libggml-cuda.so").open("rb") as stream:
            found = set(rig_fatbin.images(stream))
    except (OSError, rig_fatbin.NotElfError) as error:
        return [str(error)]
    problems: list[str] = rig_fatbin.wrong(found, {f"{architecture}-real"}, {architecture})
    return problems
