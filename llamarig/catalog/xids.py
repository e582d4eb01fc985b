"""What the codes mean that NVIDIA's driver logs as Xid."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from llamarig.catalog.data import Entry, read


class Xid(Entry):
    """One code."""

    cause: str
    fix: str
    gentle: bool = False
    """Whether the card still works after it."""


UNKNOWN = Xid(cause="see the vendor's list of XID codes", fix="look for what ran at that moment; update the driver")
"""Of a code that the catalog does not have."""


class _Xids(Entry):
    codes: dict[int, Xid]


@cache
def xids() -> Mapping[int, Xid]:
    """All known codes."""
    return _Xids.model_validate({"codes": read("xids.yml")}).codes
