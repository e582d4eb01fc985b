# SPDX-License-Identifier: Apache-2.0
"""What a unit's journal says of a failed start, for templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llamarig.converge.journal import why_it_failed


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"llamarig_why_it_failed": why_it_failed}
