"""The llama.cpp that is built: its source, patches, architectures and options."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from llamarig.spec.base import Commit, HostName, Lockable, Name, OneLine, RelativePath, SpecModel, SpecValueError

Requirement = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.+!-]*$")]
"""An exact Python distribution, ``name==version``."""

OptionName = Annotated[str, StringConstraints(pattern=r"^(GGML|LLAMA)_[A-Z0-9_]+$")]
"""A CMake option of the engine."""

Architecture = Annotated[str, StringConstraints(pattern=r"^[0-9]{2,3}[af]?(-real|-virtual)?$")]
"""A CUDA architecture in CMake's words, ``120a-real``."""

ImageRef = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][A-Za-z0-9._/:@-]{0,254}$")]
"""A container image as the engine of containers knows it: ``name:tag``, ``registry/name@sha256:…``, or an id."""

_LOCK_FIX = "add `sha256: unlocked`, and let `llamarig lock` fill it"


class Source(SpecModel):
    """Where the engine's tree comes from: exactly one of ``git``, ``archive`` and ``sdist``."""

    git: OneLine | None = None
    """URL of a git repository; ``engine.commit`` is checked out from it."""
    archive: OneLine | None = None
    """URL, or path on the controller, of a .tar.gz of the tree."""
    sdist: Requirement | None = None
    """A Python source distribution that vendors the tree, ``name==version``."""
    sha256: Lockable | None = None
    """Of the archive or source distribution; git needs none, the commit names the content."""
    subdir: RelativePath | None = None
    """Where the tree lies inside the archive, below its single top directory.
    For a source distribution it is ``vendor/llama.cpp`` when not given."""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        given = [key for key in ("git", "archive", "sdist") if getattr(self, key) is not None]
        if len(given) != 1:
            raise SpecValueError(
                f"names {len(given) or 'no'} origins, but exactly one is needed",
                "give one of `git`, `archive` and `sdist`",
                ("git", "archive", "sdist"),
            )
        if self.git is None and self.sha256 is None:
            raise SpecValueError("an archive or sdist needs its sha256", _LOCK_FIX, ("git", "sha256"))
        if self.git is not None and self.sha256 is not None:
            raise SpecValueError(
                "git takes no sha256: the commit names the content", "remove `sha256`", ("git", "sha256")
            )
        return self


class Patch(SpecModel):
    """One patch, applied in the order of the list, on a clean tree, with no fuzz."""

    pr: Annotated[int, Field(ge=1)] | None = None
    """Number of an upstream pull request; ``head`` pins the commit of it."""
    head: Commit | Literal["unlocked"] | None = None
    """The commit that the pull request is pinned to."""
    file: RelativePath | None = None
    """A patch file in the project, instead of a pull request."""
    sha256: Lockable
    """Of the patch itself."""
    build_system: Literal["acknowledged"] | None = None
    """Needed when the patch touches CMake files or scripts."""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.pr is None) == (self.file is None):
            raise SpecValueError(
                "a patch comes from a pull request or from a file", "give one of `pr` and `file`", ("pr", "file")
            )
        if self.pr is not None and self.head is None:
            raise SpecValueError(
                "a pull request moves, so its head commit is needed",
                "add `head: unlocked`, and let `llamarig lock` fill it",
                ("pr", "head"),
            )
        if self.pr is None and self.head is not None:
            raise SpecValueError(
                "`head` belongs to a pull request", "remove `head`, or give `pr` instead of `file`", ("pr", "head")
            )
        return self


class Build(SpecModel):
    """How and where the build runs."""

    where: Literal["host", "builder", "container"] = "host"
    """``host``: on the host itself. ``builder``: on another host of the project; ``container``: in a container on the
    controller. With these two the host gets the finished release, and needs no compiler. No part of the release id."""
    builder: HostName | None = None
    """The host of the project that builds, with ``where: builder``; it runs the same system as this one."""
    image: ImageRef | None = None
    """The image that a container is made of, with ``where: container``: a bare system, the same as this host runs,
    with apt set up. It is pulled when it is not there."""
    jobs: Annotated[int, Field(ge=1, le=256)] | None = None
    """Compiler processes at once; by default the lesser of cores and memory over ``job-mib``."""
    job_mib: Annotated[int, Field(ge=128, le=16384)] | None = None
    """Memory that one compiler process may take: 1,024 MiB for C++, 4,096 for nvcc when not given."""
    options: dict[OptionName, OneLine | bool] = Field(default_factory=dict)
    """Further CMake options of the engine; part of the release id."""
    openssl: bool = True
    """Whether the server is linked against OpenSSL (needed for TLS); part of the release id."""


class Engine(SpecModel):
    """One build of llama.cpp; everything here goes into the release id."""

    commit: Commit
    """The upstream commit; all 40 digits where git fetches it."""
    build_number: Annotated[int, Field(ge=1)]
    """Upstream's number of the commit; what is known of versions goes by it."""
    source: Source
    """Where the tree comes from."""
    patches: list[Patch] = Field(default_factory=list)
    """Applied in this order."""
    architectures: list[Architecture] = Field(default_factory=list)
    """CUDA architectures in CMake's words, ``120a-real``; empty for the CPU backend."""
    backend: Literal["cuda", "cpu"]
    """What the engine computes with."""
    build: Build = Build()
    """How it is built."""


__all__ = ["Build", "Engine", "Name", "Patch", "Requirement", "Source"]
