"""A path of a spec on the controller."""

from __future__ import annotations

import os
from pathlib import Path


def below(root: Path, text: str) -> Path:
    """Where ``text`` leads: from /, from a home directory (``~``, ``~anna``), or else below the project ``root``.

    A ``~`` of somebody whom this machine does not know stays as it is, so that it is the file that is told as missing.
    """
    return root / os.path.expanduser(text)  # noqa: PTH111 - Path.expanduser raises RuntimeError for an unknown user
