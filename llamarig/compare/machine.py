"""Whether the machine that answered can be the one of the spec at all; otherwise nothing is compared or done."""

from __future__ import annotations

from llamarig.compare.text import printable
from llamarig.compare.view import View
from llamarig.errors import RigError

ARCHITECTURE = "x86_64"


def refuse_another(view: View) -> None:
    """Raise :class:`RigError` for another system or architecture than llamarig or the spec can mean, or no systemd."""
    seen = view.part("os")
    system = f"{printable(seen.get('id'))} {printable(seen.get('version'))}"
    architecture = view.observed.get("arch")
    fix = "name the right machine in `connection`"
    if view.wanted.system and system != view.wanted.system:
        what = f"The host runs {system}, its spec says {view.wanted.system}."
        fix = f"correct `os` in the spec, or {fix}"
    elif architecture != ARCHITECTURE:
        what = f"The host is a {printable(architecture)} machine; llamarig knows {ARCHITECTURE} alone."
    elif view.observed.get("systemd") is False:
        what = "The host is not run by systemd, which llamarig needs."
        fix = f"boot it with systemd, or {fix}"
    else:
        return
    raise RigError(what=what, where=view.wanted.host, fix=fix)
