"""Release ids: one build of the engine is named by what goes into it, and by nothing else."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(inputs: dict[str, Any]) -> bytes:
    """JSON with sorted keys, no white space and plain ASCII: the same inputs give the same bytes."""
    return json.dumps(inputs, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def release_id(inputs: dict[str, Any]) -> str:
    """``<first 9 of the commit>-<first 12 hex digits of the sha256 over the canonical inputs>``."""
    return f"{inputs['commit'][:9]}-{hashlib.sha256(canonical(inputs)).hexdigest()[:12]}"
