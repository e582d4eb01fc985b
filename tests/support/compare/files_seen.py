"""What the observer says of files that are as they are wanted. Composed after docs/contracts.md, not recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llamarig.render.wanted import WantedFile


def files_seen(files: Iterable[WantedFile]) -> dict[str, dict[str, Any]]:
    return {
        file.path: {
            "type": "file",
            "sha256": file.sha256,
            "mode": file.mode,
            "owner": file.owner,
            "group": file.group,
            "size": len(file.content),
        }
        for file in files
    }
