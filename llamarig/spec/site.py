"""Where a host's site keeps what hosts need, and how much of the line a host may take."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from llamarig.spec.base import OneLine, SpecModel, SpecValueError


class Mirror(SpecModel):
    """What ``llamarig mirror`` collected, as the controller and the hosts of a site reach it."""

    path: OneLine | None = None
    """The directory on the controller; a relative one is below the project. What hosts need is looked for there
    first."""
    url: OneLine | None = None
    """The http or https address of the same directory, as the host reaches it: any static web server will do."""

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.path is None and self.url is None:
            raise SpecValueError(
                "names no place", "give `path` on the controller, `url` for the host, or both", ("path", "url")
            )
        return self


class Transfer(SpecModel):
    """How files come to the host."""

    limit_mib_s: Annotated[float, Field(ge=0.1, le=100_000.0)] | None = None
    """MiB (2^20 bytes) a second at most, for what the host downloads and for what the controller copies to it; each
    host has a limit of its own."""


__all__ = ["Mirror", "Transfer"]
