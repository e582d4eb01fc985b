"""How a rollout goes over the fleet: the section ``rollout`` of a fleet.yml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from llamarig.spec.base import Name, OneLine, SpecModel, SpecValueError

Percent = Annotated[str, StringConstraints(pattern=r"^(100|[1-9][0-9]?)%$")]
"""A share of the hosts beyond the canary, ``25%``."""

WaveSize = Annotated[int, Field(ge=1, le=10000)] | Percent


def _some(sizes: list[WaveSize]) -> list[WaveSize]:
    if not sizes:
        raise SpecValueError("names no wave", 'write at least one, or leave the key out: ["25%"]')
    return sizes


class Busy(SpecModel):
    """When a host is in use, so that it is left for later."""

    requests: Literal["drain", "defer", "ignore"] = "drain"
    """``drain``: running requests are waited for. ``defer``: a host that answers one, or had one of late, is left for
    later. ``ignore``: the servers are not asked."""
    requests_within_min: Annotated[int, Field(ge=0, le=1440)] = 10
    """With ``defer``: minutes back in which a request counts, 0 for running ones alone. A host's own
    ``maintenance.idle-minutes`` comes first."""
    drain_s: Annotated[int, Field(ge=0, le=3600)] = 300
    """With ``drain``: seconds that are waited at most; a host that still answers requests then is deferred. Servers
    take new requests meanwhile: they have no way to refuse those alone."""
    users: Literal["defer", "ignore"] = "defer"
    """Whether somebody who is logged in keeps the host from being changed."""


class Rollout(SpecModel):
    """How a rollout goes over the hosts of a fleet.yml. One rollout has one policy: hosts for which two directories say
    different things are rolled out one after the other."""

    canary: Annotated[int, Field(ge=0, le=1000)] = 1
    """Hosts that go first, alone."""
    canary_labels: dict[Name, OneLine] = Field(default_factory=dict)
    """Labels of the hosts that are to be the canary; where too few carry all of them, others join them by name."""
    waves: Annotated[list[WaveSize], AfterValidator(_some)] = Field(default=["25%"])
    """Hosts of each wave behind the canary: a number, or a share of all hosts beyond the canary, rounded up. The last
    one repeats until no host is left."""
    by: Name | None = None
    """A label, such as ``room``: of the hosts that share a value of it, a wave takes half at most, the canary too, so
    that the others go on serving; a host that is alone with its value, or has none, goes when its turn comes."""
    failures: Annotated[int, Field(ge=0, le=10000)] = 0
    """Failed hosts that the whole rollout may have; one more stops it."""
    unreachable: Literal["defer", "fail"] = "defer"
    """Whether a host that does not answer is reported and left for later, or counts as a failure. It is never done."""
    wake: bool = True
    """Whether hosts with a ``wake`` section are woken before they are looked at."""
    busy: Busy = Busy()
    """When a host is in use."""


__all__ = ["Busy", "Percent", "Rollout", "WaveSize"]
