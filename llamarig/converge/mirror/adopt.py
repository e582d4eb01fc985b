"""Take a finished release from a site's mirror into the controller's own store, where every other part looks for it."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from llamarig.converge.store.releases import Held, Releases
from llamarig.converge.store.shelf import BY_CONTENT, Shelf
from llamarig.errors import RigError
from llamarig.render.build import release
from llamarig.render.site import mirror_of

if TYPE_CHECKING:
    from llamarig.spec.host import HostSpec


def held_release(spec: HostSpec, project_root: Path) -> Held | None:
    """The finished release of a host, from the controller's store or taken in from the spec's mirror; None without.

    The copy's hash and provenance are checked as if a host had handed it over. Raises :class:`RigError` when they are
    not right.
    """
    wanted = release(spec, ())
    ours = Releases.default()
    held = ours.get(wanted.id)
    mirror = mirror_of(spec, project_root)["path"]
    if held is not None or not mirror:
        return held
    theirs = Releases(Shelf(Path(mirror) / BY_CONTENT))
    found = theirs.get(wanted.id)
    if found is None:
        return None
    temporary = ours.shelf.partial(f"adopted {found.sha256} {os.getpid()}")
    source = theirs.shelf.path(found.sha256)
    try:
        shutil.copyfile(source, temporary)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RigError("the mirror's release cannot be copied", str(source), str(error)) from error
    return ours.add(temporary, found.sha256, asdict(wanted), found.origin, found.at)
