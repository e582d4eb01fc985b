"""Driver and toolkit against the cards' generations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llamarig.catalog.gpus import Card, Generation, generation
from llamarig.catalog.gpus import card as find_card
from llamarig.catalog.toolkits import older
from llamarig.spec.rules.base import Broken, View
from llamarig.spec.tree import Loc


def _generations(view: View) -> Iterator[tuple[str, Card, Generation]]:
    for name, card in view.spec.gpus.items():
        known = find_card(card.model)
        if known is not None:
            yield name, known, generation(known)


def flavour(view: View) -> Iterator[Broken]:
    """Blackwell runs with the open modules only, what is older than Turing with the proprietary ones only."""
    driver = view.spec.driver
    if driver is None:
        return
    wanted = {name: set(needs.flavours) for name, _, needs in _generations(view)}
    if wanted and not set.intersection(*wanted.values()):
        yield Broken(
            ("gpus",),
            "no driver serves all these cards: some need the open modules, others the proprietary ones",
            "put them into two hosts",
        )
        return
    for name, card, needs in _generations(view):
        if driver.flavour not in needs.flavours:
            yield Broken(
                ("driver", "flavour"),
                f"`{name}` ({card.name}) does not run with the {driver.flavour} kernel modules",
                f"write `flavour: {needs.flavours[0]}`",
                rests_on=(("gpus", name, "model"),),
            )


def versions(view: View) -> Iterator[Broken]:
    """Driver and toolkit are new enough, and not too new, for the cards."""
    driver, cuda = view.spec.driver, view.spec.cuda
    for name, card, needs in _generations(view):
        on: tuple[Loc, ...] = (("gpus", name, "model"),)
        if driver is not None and needs.first_driver and older(driver.version, needs.first_driver):
            yield Broken(
                ("driver", "version"),
                f"driver {driver.version} does not know `{name}` ({card.name})",
                f"take {needs.first_driver} or later"
                + (", which Debian's own packages do not have" if driver.source == "debian" else ""),
                rests_on=on,
            )
        if cuda is None:
            continue
        if needs.first_toolkit and older(cuda.version, needs.first_toolkit):
            yield Broken(
                ("cuda", "version"),
                f"CUDA {cuda.version} has no code for `{name}` ({card.name})",
                f"take {needs.first_toolkit} or later",
                rests_on=on,
            )
        if needs.last_toolkit and older(needs.last_toolkit, ".".join(cuda.version.split(".")[:2])):
            yield Broken(
                ("cuda", "version"),
                f"CUDA {cuda.version} no longer has code for `{name}` ({card.name})",
                f"take {needs.last_toolkit} or earlier",
                rests_on=on,
            )


def origins(view: View) -> Iterator[Broken]:
    """Mirror and directory need a location, archive and runfile may have one; archives need a hash."""
    spec = view.spec
    if spec.driver is not None:
        needs = spec.driver.source in ("mirror", "directory")
        yield from _location("driver", spec.driver.location, needs=needs, may=needs)
    if spec.cuda is not None:
        hashed = spec.cuda.source in ("archive", "runfile", "directory")
        needs = spec.cuda.source == "directory"
        yield from _location("cuda", spec.cuda.location, needs=needs, may=hashed)
        if hashed and spec.cuda.sha256 is None and not (spec.cuda.source == "directory" and spec.cuda.wheels):
            yield Broken(
                ("cuda", "sha256"),
                f"{'an' if spec.cuda.source == 'archive' else 'a'} {spec.cuda.source} needs its sha256",
                "add `sha256: unlocked`, and let `llamarig lock` fill it",
                rests_on=(("cuda", "source"),),
            )
    if spec.engine.backend == "cpu":
        for key in ("driver", "cuda"):
            if getattr(spec, key) is not None:
                yield Broken(
                    (key,),
                    f"the backend is cpu, so `{key}` is not used",
                    "remove it, or set `backend: cuda`",
                    rests_on=(("engine", "backend"),),
                    warning=True,
                )


def _location(section: str, location: str | None, *, needs: bool, may: bool) -> Iterator[Broken]:
    if needs and location is None:
        yield Broken((section, "location"), "this source needs a `location`", "add its address or path")
    if location is not None and "@" in location.partition("://")[2].partition("/")[0]:
        yield Broken((section, "location"), "the address holds a user or password", "take it out of the address")
    if not may and location is not None:
        yield Broken(
            (section, "location"), "this source has no `location`", "remove it", rests_on=((section, "source"),)
        )


_LEAST_SHARE = 0.2
"""Of the board's power. Over the cards whose range is known, the lowest limit is 0.25 to 0.86 of it; the rest is room
for those that nobody has looked at."""


def power(view: View) -> Iterator[Broken]:
    """A limit above the board's own power is not a limit, and the driver refuses one below its lowest.

    Where that is not known, one far below what any card takes is doubted.
    """
    for name, card in view.spec.gpus.items():
        known, limit = find_card(card.model), card.power_limit_w
        if limit is None or known is None:
            continue
        highest = known.power_max_w or known.power_w
        said = ""
        if highest is not None and limit > highest:
            said = f"{limit} W is above the {highest:.0f} W of a {known.name}"
        elif known.power_min_w is not None and limit < known.power_min_w:
            said = f"{limit} W is below the {known.power_min_w:.0f} W that the driver of a {known.name} takes at least"
        elif known.power_min_w is None and known.power_w is not None and limit < known.power_w * _LEAST_SHARE:
            said = (
                f"{limit} W is below {_LEAST_SHARE * 100:.0f} % of the {known.power_w:.0f} W of a {known.name}: "
                "no card whose range is known takes so little"
            )
        if said:
            yield Broken(
                ("gpus", name, "power-limit-w"),
                said,
                f"{'raise' if 'below' in said else 'lower'} it; nvidia-smi -q -d POWER shows the card's range",
                rests_on=(("gpus", name, "model"),),
                warning=True,
            )


def repository(view: View) -> Iterator[Broken]:
    """A mirror is an address, a directory a path on the host, and a key is used with its whole fingerprint only."""
    driver = view.spec.driver
    if driver is None:
        return
    place = driver.location or ""
    if driver.source == "mirror" and place and not re.fullmatch(r"https?://[^\s]+", place):
        yield Broken(
            ("driver", "location"),
            "a mirror is an http or https address",
            "write the address at which the file Packages lies",
        )
    if driver.source == "directory" and place and not re.fullmatch(r"(/[\w.+@-]+)+", place):
        yield Broken(
            ("driver", "location"),
            "a directory of packages is an absolute path on the host",
            "write the path of the signed repository, in which Packages and InRelease lie",
        )
    if driver.source == "debian" and (driver.key is not None or driver.key_fingerprint is not None):
        key = "key" if driver.key is not None else "key-fingerprint"
        yield Broken(
            ("driver", key),
            "Debian's own packages are signed with keys that the host has",
            "remove it",
            rests_on=(("driver", "source"),),
        )
    elif driver.key is not None and driver.key_fingerprint is None:
        yield Broken(
            ("driver", "key-fingerprint"),
            "a key is used with its whole fingerprint only",
            "add `key-fingerprint`, as the issuer of the key tells it",
            rests_on=(("driver", "key"),),
        )


RULES = (flavour, versions, origins, repository, power)
