"""Which releases are to be made for which hosts, and where each of them is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llamarig.converge.store.releases import Releases
from llamarig.converge.wanted import spec_of
from llamarig.render.build import elsewhere as in_words
from llamarig.render.build import release

if TYPE_CHECKING:
    from llamarig.spec.host import HostSpec
    from llamarig.spec.load import LoadedHost


@dataclass(frozen=True)
class Place:
    """A builder host by its name, or an image by its reference."""

    builder: str = ""
    image: str = ""
    words: str = ""
    """As in ``WantedRelease.elsewhere``."""


def place_of(spec: HostSpec) -> Place | None:
    """Where the host's release is made; None when on the host itself."""
    build = spec.engine.build
    if build.where == "host":
        return None
    words = in_words(spec)
    if build.where == "builder":
        return Place(builder=build.builder or "", words=words)
    return Place(image=build.image or "", words=words)


@dataclass(frozen=True)
class Task:
    """One release to make. ``hosts`` want it; it is built as the spec of the first of them says, which is ``spec``."""

    release: str
    place: Place
    spec: HostSpec
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Elsewhere:
    """What is to be said of one host whose release is made elsewhere."""

    release: str
    place: Place
    held: bool
    """Whether the controller has it already, so that nothing is built."""

    def to_json(self) -> dict[str, Any]:
        """As ``apply --json`` has it."""
        return {
            "release": self.release,
            "builder": self.place.builder or None,
            "image": self.place.image or None,
            "held": self.held,
        }


def elsewhere(loaded: LoadedHost) -> Elsewhere | None:
    """Where the release of a host is made, and whether it has to be; None when the host builds by itself."""
    spec = spec_of(loaded)
    place = place_of(spec)
    if place is None:
        return None
    identity = release(spec, ()).id
    return Elsewhere(identity, place, Releases.default().get(identity) is not None)


def tasks(hosts: Sequence[LoadedHost]) -> list[Task]:
    """Each release that has to be made once, in the order of the hosts; without those that the controller holds.

    Where hosts of one release name several places, the first host's counts.
    """
    groups: dict[str, list[LoadedHost]] = {}
    places: dict[str, Place] = {}
    for loaded in hosts:
        found = elsewhere(loaded)
        if found is not None and not found.held:
            groups.setdefault(found.release, []).append(loaded)
            places.setdefault(found.release, found.place)
    return [
        Task(name, places[name], spec_of(group[0]), tuple(loaded.host for loaded in group))
        for name, group in groups.items()
    ]
