"""The wanted state of a machine that only builds: packages, the build user, toolkit and release."""

from __future__ import annotations

from dataclasses import replace

from llamarig.render import wanted as place
from llamarig.render.build import packages, release
from llamarig.render.toolkit import toolkit
from llamarig.render.wanted import Wanted, WantedUser
from llamarig.spec.host import HostSpec


def wanted_build(spec: HostSpec) -> Wanted:
    """What has to be on a machine for the release of ``spec`` to be built there."""
    root, builder = ("root", "root"), (place.BUILDER, place.BUILDER)
    used = toolkit(spec)
    return Wanted(
        host=spec.host,
        packages=packages(spec),
        users=(WantedUser(name=place.BUILDER, home=place.BUILD),),
        directories=(
            (place.ROOT, "0755", *root),
            (place.RELEASES, "0755", *root),
            *(((place.TOOLKITS, "0755", *root),) if used is not None else ()),
            (place.STATE, "0755", *root),
            (place.BUILD, "0755", *root),
            (place.INCOMING, "0700", *root),
            (place.CCACHE.rpartition("/")[0], "0755", *root),
            (place.CCACHE, "0750", *builder),
        ),
        files=(),
        release=replace(release(spec, ()), elsewhere=""),
        models=(),
        credentials=(),
        services=(),
        toolkit=used,
        system=f"{spec.os.distribution} {spec.os.release}",
    )
