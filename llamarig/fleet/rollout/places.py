"""Where a project keeps its rollouts: ``rollouts/<id>/``, private, the newest last by name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from llamarig.converge.controller import new_run
from llamarig.errors import RigError
from llamarig.fleet.rollout import journal

DIRECTORY = "rollouts"
_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")


def home(root: Path) -> Path:
    """The directory of all rollouts of a project; made when it is not there."""
    place = root / DIRECTORY
    place.mkdir(mode=0o700, exist_ok=True)
    return place


def new(root: Path) -> Path:
    """The directory of a new rollout, not made yet; its name is the rollout's id."""
    return home(root) / new_run()


def make(place: Path) -> None:
    """Make a rollout's directory, and put its name on the disk."""
    place.mkdir(mode=0o700)
    journal.sync_directory(place.parent)


def known(root: Path) -> list[Path]:
    """The rollouts of a project, oldest first; those that have not even begun a journal are left out."""
    try:
        entries = sorted(os.scandir(root / DIRECTORY), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    found = [Path(entry.path) for entry in entries if _ID.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)]
    return [path for path in found if os.path.lexists(path / journal.FILE)]


def find(root: Path, name: str | None) -> Path:
    """The rollout of that id, or the newest one. Raises :class:`RigError` when there is none."""
    found = known(root)
    if name is None and found:
        return found[-1]
    for path in found:
        if path.name == name:
            return path
    if not found:
        raise RigError("this project has no rollout", str(root), fix="begin one: llamarig rollout start --all")
    raise RigError(
        what=f"there is no rollout {name!r}",
        where=str(root / DIRECTORY),
        fix=f"the newest ones: {', '.join(path.name for path in found[-5:])}",
    )
