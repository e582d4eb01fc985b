"""What this version plans with but does not carry out yet: apply refuses it by name."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.errors import RigError
from llamarig.spec.hardware import Driver
from llamarig.spec.host import HostSpec
from llamarig.spec.tree import Loc, dotted
from llamarig.spec.unlocked import unlocked_places

_INSTALLED_ON = ("debian 12", "debian 13")
"""Systems on which the tests install a driver: real apt and dpkg, on Debian 13 a real DKMS as well."""


def planned_only(spec: HostSpec) -> Iterator[tuple[Loc, RigError]]:
    """Each key that is planned with only, and what to say of it."""
    if spec.driver is not None and spec.engine.backend == "cuda":
        yield from _driver(spec, spec.driver)
    for name, service in spec.services.items():
        if service.router is not None:
            what = f"the router of `{name}` is planned and rendered, but this version does not prove one yet"
            yield ("services", name, "router"), _error(spec, what, "serve each model in a service of its own")
    if spec.engine.backend != "cuda":
        return
    if spec.cuda is not None and spec.cuda.source == "apt":
        what = "`cuda.source: apt` is planned with, but this version does not install a toolkit from packages"
        instead = "take another source: packages go to /usr/local/cuda and into PATH, and are not pinned by content"
        yield ("cuda", "source"), _error(spec, what, instead)
    elif spec.cuda is None:
        what = "`backend: cuda` without a toolkit: nothing says which one builds the engine"
        yield ("engine", "backend"), _error(spec, what, "add a `cuda` section")


def _driver(spec: HostSpec, driver: Driver) -> Iterator[tuple[Loc, RigError]]:
    """A repository whose key is not pinned, and systems on which nobody has seen the installation succeed."""
    system = f"{spec.os.distribution} {spec.os.release}"
    if system not in _INSTALLED_ON:
        what = f"`driver` on {system} is planned and rendered, but its installation is proven on Debian 12 and 13 alone"
        yield ("driver",), _error(spec, what, "install the driver by hand and leave `driver` out")
    if driver.source != "debian" and (driver.key is None or driver.key_fingerprint in (None, "unlocked")):
        what = "`driver` names no key that its repository must be signed with"
        where = "its whole fingerprint, as the issuer tells it, into `key-fingerprint`"
        fix = f"plan and render work; to apply, write the path of the public key into `key`, and {where}"
        yield ("driver", "key-fingerprint"), RigError(what, spec.host, fix=fix)


def _error(spec: HostSpec, what: str, instead: str = "use a host of the cpu backend") -> RigError:
    return RigError(
        what=what,
        where=spec.host,
        fix=f"plan and render work; to apply, {instead}, or a later version",
    )


def refused_by_apply(spec: HostSpec) -> list[RigError]:
    """Everything in a valid spec that apply cannot do: features to come, and what is not pinned yet."""
    errors = [error for _, error in planned_only(spec)]
    for loc in unlocked_places(spec):
        place = dotted(loc)
        errors.append(
            RigError(
                what=f"`{place}` is still `unlocked`",
                where=spec.host,
                why="apply installs nothing that is not pinned by its content",
                fix=f"run `llamarig lock {spec.host}`",
            )
        )
    return errors
