"""What a rollout was started with, as digests: a spec that changes while it rolls is noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llamarig.spec.host import HostSpec
    from llamarig.spec.overlay import Overlay

_PROVEN = ("host", "system", "files", "models", "services", "cards", "power", "driver")
"""Parts of a wanted state that say what runs. How a release gets onto the host is left out: one that was built
meanwhile is copied, and that takes other packages."""


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def spec_digest(spec: HostSpec) -> str:
    """sha256 over a loaded spec, defaults of the fleet included; comments and order do not count.

    ``maintenance`` does not count either: it says when a host may be changed or rebooted, is read anew each time that
    is asked, and makes nothing of what the host becomes.
    """
    return _digest(spec.model_dump(mode="json", exclude={"maintenance"}))


def whole_digest(spec: HostSpec) -> str:
    """The same with ``maintenance``: what journals have that were begun before it was left out."""
    return _digest(spec.model_dump(mode="json"))


def overlay_digest(overlay: Overlay) -> str:
    """sha256 over the host of an overlay and what stands in there; reasons do not count."""
    return _digest([overlay.host, [[list(each.key), each.value.data()] for each in overlay.replaced]])


def wanted_digest(wanted: Mapping[str, Any]) -> str:
    """sha256 over what shall run (of ``Wanted.to_json()``); templates, headers and llamarig itself have their say."""
    return _digest({name: wanted.get(name) for name in _PROVEN} | {"release": wanted["release"]["id"]})
