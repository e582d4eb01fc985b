"""What a rollout does to hosts, in the words of the layer below; the machine of waves knows only these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from llamarig.errors import RigError

Gate = Callable[[Sequence[str]], Mapping[str, str]]
"""Asked of hosts whose turn it is: by host why it must not be changed now. Those that may be are left out."""


@dataclass(frozen=True)
class Pin:
    """What a host is to become, as loaded now."""

    spec: str
    """Digest of the spec (:mod:`llamarig.fleet.rollout.pin`)."""
    wanted: str
    release: str
    """Release id."""
    whole: str = ""
    """Digest of the spec as older journals have it."""


@dataclass(frozen=True)
class Seen:
    """A look at a host: what counts for a rollout."""

    error: RigError | None = None
    reached: bool = True
    """Whether it answered at all."""
    release: str | None = None
    """The one that the host's link names."""
    run: str | None = None
    """The run that its record names."""
    former_run: str | None = None
    """The run whose state it would go back to."""
    actions: int = 0
    restarts: int = 0
    """Running services that would be restarted."""
    up: frozenset[str] = frozenset()
    """Services that run."""
    unfinished: bool = False
    """Whether it holds the state of an apply that never ended."""
    locked: str = ""
    """Who works on it now; empty when nobody does."""
    builds: str = ""
    """The release that it would compile by itself; empty when it has it, or gets it."""
    waits: str = ""
    """Why only a reboot can bring its driver about; empty where anything else of the driver is missing, or nothing."""
    seconds: float = 0.0
    observed: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Result:
    """How a change of a host ended."""

    error: RigError | None = None
    reached: bool = True
    """False when it was lost on the way."""
    untouched: bool = False
    """Whether it was left alone, since somebody else works on it."""
    at_driver: bool = False
    """Whether it was ended by the driver's own check of what came true."""
    checks: dict[str, Any] = field(default_factory=dict)
    changed: int = 0
    seconds: float = 0.0
    run: str | None = None
    release: str | None = None


@dataclass(frozen=True)
class Reboot:
    """What a reboot of a host would mean, or what came of it."""

    verdict: str = ""
    """As :mod:`llamarig.compare.reboot` decides; empty where nobody knows."""
    needed: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    """Why it is refused or waits; with ``ask``, who would notice."""
    made: bool = False
    """Whether it came up again, with kernel, module and library that agree."""
    result: Result = field(default_factory=Result)
    """How asking, or the reboot, ended."""


class Hands(Protocol):
    """The layer below: :class:`llamarig.fleet.rollout.ansible.AnsibleHands`, or a stand-in in tests."""

    def load(self, hosts: Sequence[str]) -> dict[str, Pin | RigError]:
        """Read the specs again and plan them; a host that cannot be planned or must not be applied gives its error."""

    def load_pinned(self, host: str) -> RigError | None:
        """Take the wanted state that :meth:`keep` kept instead of what the spec says now; why that cannot be."""

    def build(self, hosts: Sequence[str]) -> dict[str, RigError]:
        """Have the releases of those hosts that do not build their own; by host why one cannot be had."""

    def share(self, host: str) -> RigError | None:
        """Fetch the release that a host has built, so that others get it; why that was not to be."""

    def look(self, hosts: Sequence[str]) -> dict[str, Seen]:
        """Look at hosts, all at once."""

    def keep(self, hosts: Sequence[str]) -> None:
        """Keep what each host is to become, before it is touched."""

    def apply(self, hosts: Sequence[str], *, prove: bool) -> dict[str, Result]:
        """Change hosts, all at once; ``prove`` also those on which nothing is to be done."""

    def may_reboot(self, hosts: Sequence[str]) -> dict[str, Reboot]:
        """What a reboot of each host would mean now, asked all at once; nothing is touched."""

    def reboot(self, hosts: Sequence[str]) -> dict[str, Reboot]:
        """Reboot hosts, all at once, unless one is found not to be able to after all, and judge what comes up."""

    def back(self, hosts: Sequence[str]) -> dict[str, Result]:
        """Take hosts back to the state before their last change, all at once."""
