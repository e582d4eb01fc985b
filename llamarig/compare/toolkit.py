"""The CUDA toolkit: whether the one that is wanted lies in its place, and is still what was put there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llamarig.compare.act import absence, ownership
from llamarig.compare.action import Action
from llamarig.compare.text import printable
from llamarig.compare.view import View, as_int, as_map, as_text, as_texts
from llamarig.render.wanted import WantedToolkit

_NAMED = 3
"""Differences that a reason names; the rest are counted."""


def toolkit(view: View) -> Iterator[Action]:
    """The toolkit that is missing, made of other parts, or changed since.

    Nothing runs with it: a release brings along what it links of it. So nothing is started again either.
    """
    wanted = view.wanted.toolkit
    if wanted is None:
        return
    seen = view.part("toolkits", wanted.version)
    kind = as_text(seen.get("type"))
    if kind in (None, "absent"):
        yield Action("toolkit", wanted.prefix, "is not installed", expected=wanted.version, observed="absent")
        return
    wrong = _wrong(view, wanted, seen)
    if wrong:
        left = max((as_int(seen.get("wrong-count")) or 0), len(wrong)) - _NAMED
        yield Action(
            "toolkit",
            wanted.prefix,
            "; ".join(wrong[:_NAMED]) + (f" and {left} more" if left > 0 else ""),
            expected=f"{wanted.version} as installed",
            observed=wrong[0],
        )


def _wrong(view: View, wanted: WantedToolkit, seen: Mapping[str, Any]) -> list[str]:
    missing = absence(seen, "dir")
    told = [printable(text) for text in as_texts(seen.get("wrong"))]
    manifest = as_map(seen.get("manifest"))
    recorded = view.recorded(f"{wanted.prefix}/manifest.json").get("sha256")
    if missing:
        return [missing]
    if not manifest:
        return told or ["manifest.json is missing"]
    if manifest.get("id") != wanted.id:
        return ["was made of other parts than the spec pins"]
    if recorded not in (None, seen.get("manifest-sha256")):
        return ["manifest.json was changed after the toolkit was recorded"]
    if not told and seen.get("wrong-count") != 0:
        return ["was not looked at"]
    return ownership(seen, "0755", "root", "root") + told
