"""Since when a thing differs, as far as the host can tell, and whether the host moved or the spec.

Two times bound the moment. Nothing differed when the host's record was written: ``after``. And the thing has not
changed since its ctime, or that of what holds it: ``before``. A ctime is not what an editor writes into a file, so
``touch`` does not move it; whoever is root and turns the clock can.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from llamarig.compare import Action
from llamarig.compare.state import moment
from llamarig.compare.view import View, as_int, as_map, as_text
from llamarig.render.wanted import CURRENT, RECORD

Cause = Literal["host", "spec", "unknown"]

_PACKAGES = "/var/lib/dpkg/status"
_ACCOUNTS = ("/etc/passwd", "/etc/shadow", "/etc/group")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_BY_HASH = ("file", "model", "release", "switch")
"""Kinds of which the record tells what was there."""
_CTIME = 4
"""Place of the ctime in a stat tuple, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Since:
    """When a difference began: later than ``after``, and not later than ``before``; equal where the moment is known."""

    after: str | None = None
    """When the record was written (UTC); None where there is none that can be believed."""
    before: str | None = None
    by: str = ""
    """What tells ``before``."""
    cause: Cause = "unknown"

    def to_json(self) -> dict[str, str | None]:
        """The documented form."""
        return {"after": self.after, "before": self.before, "by": self.by, "cause": self.cause}


def since(view: View, action: Action) -> Since:
    """Since when what ``action`` would mend is so."""
    after = _time(view.record.get("applied-at"))
    if action.kind == "record" and (left := view.part("unfinished")):
        return Since(_time(left.get("at")), None, "", "host")
    if (exact := _exact(view, action)) is not None:
        return exact
    before, by = _last_change(view, action)
    cause = _cause(view, action)
    if after and before and before < after:
        # What is there is older than the record. Where its content is the recorded one, or none was recorded, it was
        # right when the record was written, and the spec has changed since.
        if cause == "host" and action.kind in _BY_HASH:
            return Since(None, before, by, cause)
        return Since(after, None, "", "spec")
    if cause == "spec":
        return Since(after, None, "", cause)
    return Since(after, before, by if before else "", cause)


def _time(value: object) -> str | None:
    text = as_text(value) or ""
    return text if _TIME.fullmatch(text) else None


def _exact(view: View, action: Action) -> Since | None:
    """The very moment, where systemd or the watch over power has noted it."""
    at: str | None = None
    by = ""
    if action.kind == "service":
        service = next((each for each in view.wanted.services if each.name == action.subject), None)
        unit = view.unit(service) if service else {}
        if unit.get("load") == "loaded" and unit.get("active") != "active":
            at, by = moment(unit.get("stopped")), "systemd: the service stopped"
        elif action.reason.startswith("runs "):
            at, by = moment(unit.get("started")), "systemd: the service started"
    elif action.kind == "power" and action.subject.startswith("card "):
        for card in as_map(view.part("power", "state").get("cards")).values():
            if action.subject == f"card {as_map(card).get('name')}":
                at, by = _time(as_map(as_map(card).get("changed-by-others")).get("at")), "the watch over power"
    return Since(at, at, by, "host") if at else None


def _last_change(view: View, action: Action) -> tuple[str | None, str]:
    """When the thing, or what holds it, changed last, and what tells so."""
    kind, subject = action.kind, action.subject
    driver = view.wanted.driver.packages if view.wanted.driver else ()
    if kind == "package" or (kind == "driver" and subject in {*driver, *view.part("driver", "packages")}):
        return moment(view.part("changed").get(_PACKAGES)), "the last change of any package"
    if kind == "user":
        times = [moment(view.part("changed").get(path)) for path in _ACCOUNTS]
        return max(filter(None, times), default=None), "the last change of any account"
    if kind == "release":
        return _of_release(view, subject), "the last change of its files"
    path = {"switch": CURRENT, "record": RECORD}.get(kind, subject)
    gone = action.observed == "absent" or action.reason.startswith("is not there")
    return moment(view.part("changed").get(path)), f"the last change {'in its directory' if gone else 'of it'}"


def _of_release(view: View, release: str) -> str | None:
    """The last change of a file that is not the one that was recorded."""
    times = []
    for path, entry in as_map(view.release(release).get("files")).items():
        stat = as_map(entry).get("stat")
        recorded = view.recorded(f"/opt/llamarig/releases/{release}/{path}").get("stat")
        if isinstance(stat, list) and len(stat) > _CTIME and stat != recorded:
            times.append(as_int(stat[_CTIME]) or 0)
    return moment(max(times) / 1e9) if any(times) else None


def _cause(view: View, action: Action) -> Cause:
    """Whether the host was changed or the spec, where what was recorded tells."""
    if not view.record:
        return "spec" if view.observed.get("record-state") == "absent" else "unknown"
    if view.observed.get("unfinished") is not None:
        return "unknown"
    if action.kind in ("file", "model"):
        return _cause_of_file(view, action.subject)
    if action.kind == "release":
        return "host" if view.record.get("release") == action.subject else "spec"
    if action.kind == "switch":
        return "spec" if view.observed.get("current") == f"releases/{view.record.get('release')}" else "host"
    return "host" if action.kind in ("service", "port", "credential", "directory", "record") else "unknown"


def _cause_of_file(view: View, path: str) -> Cause:
    recorded = as_text(view.recorded(path).get("sha256"))
    seen: Mapping[str, Any] = view.part("files", path) or view.part("models", path)
    wanted = {file.path: file.sha256 for file in view.wanted.files}
    wanted |= {model.path: model.sha256 for model in view.wanted.models}
    if recorded is None or path not in wanted:
        return "spec"
    return "spec" if seen.get("sha256") == recorded != wanted[path] else "host"
