"""Release ids, for whoever compares releases; they are computed where the wanted state is rendered."""

from __future__ import annotations

from llamarig.render.release import canonical, release_id

__all__ = ["canonical", "release_id"]
