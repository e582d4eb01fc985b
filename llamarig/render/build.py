"""The build of the engine as data: CMake options, targets, packages, and the release they make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from llamarig.render.release import release_id
from llamarig.render.toolkit import compiler_policy, host_compiler, prefix
from llamarig.render.wanted import TOOLKITS, Wanted, WantedArtifact, WantedPatch, WantedRelease
from llamarig.spec.engine import Engine, Patch
from llamarig.spec.host import HostSpec

TARGETS = ("llama-server", "llama-fit-params", "llama-bench")
_SDIST_SUBDIR = "vendor/llama.cpp"
_BUILDS = ("ccache", "cmake", "g++", "gcc", "libc6-dev", "ninja-build")
"""Packages that a host needs only to build. What the engine links of OpenSSL comes with ca-certificates."""


def packages(spec: HostSpec) -> dict[str, str | None]:
    """apt packages that the build and the running engine need, without recommendations; any version will do.

    Sources come from the controller, so the host needs no git. The engine's libraries are linked against
    ``libgomp.so.1``, which would otherwise be there only as long as the compiler is.
    """
    names = ["ca-certificates", "libgomp1", "python3", *_BUILDS]
    if spec.engine.build.openssl:
        names.append("libssl-dev")
    if spec.engine.patches:
        names.append("patch")
    return dict.fromkeys(sorted(names))


def copied(wanted: Wanted, sha256: str, size: int) -> Wanted:
    """The same host where its release is copied, not built; ``sha256`` and ``size`` (bytes) are of the packed one."""
    there = builds_nothing(wanted)
    return replace(there, release=replace(there.release, artifact=WantedArtifact(sha256, size)))


def builds_nothing(wanted: Wanted) -> Wanted:
    """The same host where nothing is built: no compiler is wanted there, and no toolkit. What is installed stays."""
    only_builds = {*_BUILDS, "libssl-dev", "patch"}
    return replace(
        wanted,
        packages={name: version for name, version in wanted.packages.items() if name not in only_builds},
        directories=tuple(entry for entry in wanted.directories if entry[0] != TOOLKITS),
        toolkit=None,
    )


def elsewhere(spec: HostSpec) -> str:
    """In words, where the release of a host is built when not on the host; empty when it is."""
    build = spec.engine.build
    if build.where == "host":
        return ""
    return f"on the builder {build.builder}" if build.where == "builder" else f"in a container of {build.image}"


def _switch(value: bool) -> str:
    return "ON" if value else "OFF"


def cmake_options(spec: HostSpec) -> dict[str, str]:
    """CMake options by name, all of them part of the release id; the user's own win.

    Nothing is fetched while building: the web interface would be, so it is left out.
    """
    engine = spec.engine
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_BUILD_WITH_INSTALL_RPATH": "ON",
        "CMAKE_INSTALL_RPATH": "$ORIGIN/../lib",
        "BUILD_SHARED_LIBS": "ON",
        "GGML_NATIVE": "OFF",
        "LLAMA_BUILD_NUMBER": str(engine.build_number),
        "LLAMA_BUILD_APP": "OFF",
        "LLAMA_BUILD_EXAMPLES": "OFF",
        "LLAMA_BUILD_TESTS": "OFF",
        "LLAMA_BUILD_UI": "OFF",
        "LLAMA_USE_PREBUILT_UI": "OFF",
        "LLAMA_OPENSSL": _switch(engine.build.openssl),
    }
    if engine.backend == "cuda":
        options |= {
            "GGML_CUDA": "ON",
            "GGML_CUDA_NCCL": "OFF",
            "CMAKE_CUDA_ARCHITECTURES": ";".join(engine.architectures),
            "CMAKE_CUDA_HOST_COMPILER": host_compiler(spec),
        }
        if spec.cuda is not None:
            place = prefix(spec.cuda.version)
            options |= {
                "CMAKE_CUDA_COMPILER": f"{place}/bin/nvcc",
                "CUDAToolkit_ROOT": place,
                # A release carries the toolkit's libraries that it needs beside its own (rig_release): it runs where
                # no toolkit is. The linker alone still finds them in the prefix.
                "CMAKE_EXE_LINKER_FLAGS": f"-Wl,-rpath-link,{place}/lib64",
            }
    for name, value in sorted(engine.build.options.items()):
        options[name] = _switch(value) if isinstance(value, bool) else value
    return options


def _source(engine: Engine) -> dict[str, str]:
    source = engine.source
    kind = "git" if source.git is not None else "archive" if source.archive is not None else "sdist"
    ref: str = getattr(source, kind)
    subdir = source.subdir or (_SDIST_SUBDIR if kind == "sdist" else "")
    return {"kind": kind, "ref": ref, "sha256": source.sha256 or "", "subdir": subdir}


def patch_name(patch: Patch) -> str:
    """How a patch is called in the controller's store."""
    return patch.file or f"pr-{patch.pr}-{(patch.head or 'unlocked')[:12]}.patch"


def _inputs(spec: HostSpec, options: dict[str, str], source: dict[str, str]) -> dict[str, Any]:
    engine = spec.engine
    return {
        "commit": engine.commit,
        "build-number": engine.build_number,
        "source": source,
        "patches": [patch.sha256 for patch in engine.patches],
        "cmake": options,
        "targets": list(TARGETS),
        "architectures": list(engine.architectures),
        "backend": engine.backend,
        "toolkit": spec.cuda.version if spec.cuda is not None and engine.backend == "cuda" else "",
        "distribution": f"{spec.os.distribution} {spec.os.release}",
        "compiler": compiler_policy(spec),
        "openssl": engine.build.openssl,
    }


def release(spec: HostSpec, flags: tuple[str, ...]) -> WantedRelease:
    """The build that the spec asks for. Its id is in the label that the binary itself shows."""
    engine = spec.engine
    options = cmake_options(spec)
    source = _source(engine)
    inputs = _inputs(spec, options, source)
    identity = release_id(inputs)
    labelled = options | {"LLAMA_BUILD_COMMIT": identity}
    default_job_mib = 4096 if engine.backend == "cuda" else 1024
    return WantedRelease(
        id=identity,
        label=identity,
        commit=engine.commit,
        build_number=engine.build_number,
        source=source,
        patches=tuple(
            WantedPatch(patch_name(patch), patch.sha256, patch.build_system == "acknowledged")
            for patch in engine.patches
        ),
        cmake=tuple(f"-D{name}={value}" for name, value in labelled.items()),
        targets=TARGETS,
        job_mib=engine.build.job_mib or default_job_mib,
        jobs=engine.build.jobs,
        backend=engine.backend,
        inputs=inputs,
        flags=flags,
        elsewhere=elsewhere(spec),
    )
