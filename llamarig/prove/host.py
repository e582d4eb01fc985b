"""Checks of the host as a whole: the release that is switched to, and its files on disk."""

from __future__ import annotations

from llamarig.prove.check import Outcome, Rule
from llamarig.prove.hostile import count, mapping, show, text
from llamarig.prove.services import View

NO_RELEASE = "no release was ever switched to"


def current(view: View) -> Outcome:
    """The link ``current`` points to the wanted release."""
    planned = f"releases/{view.wanted['release']['id']}"
    seen = text(view.observed, "current")
    if not seen:
        return False, NO_RELEASE
    return seen == planned, f"{show(seen)}, planned {planned}"


def release(view: View) -> Outcome:
    """The release has a provenance of its own id, and its files on disk have the sha256 it states."""
    planned = view.wanted["release"]["id"]
    if text(view.release, "provenance", "release") != planned:
        return False, f"{view.release_dir} has no provenance of {planned}"
    seen = mapping(view.release, "files")
    wrong = [
        f"{show(name)} {'differs' if name in seen else 'is missing'}"
        for name, digest in view.provenance.items()
        if not digest or text(seen, name, "sha256") != digest
    ]
    if not view.provenance:
        wrong.append("the provenance lists no file")
    return not wrong, "; ".join(wrong[:5]) or f"{count(len(view.provenance), 'file')} as in the provenance"


RULES: tuple[Rule[View], ...] = (Rule("current", current), Rule("release", release))
