"""Releases and models: big files that are known by their hash."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from llamarig.compare.act import absence
from llamarig.compare.action import Action
from llamarig.compare.text import printable, short_hash
from llamarig.compare.view import View, as_int, as_map, as_text
from llamarig.render.wanted import CURRENT, RELEASES, WantedModelFile, WantedRelease

_WRITABLE_BY_OTHERS = 0o022
_OCTAL = re.compile(r"[0-7]{3,5}")
_NAMED = 3
"""Files of a damaged release that a reason names; the rest are counted."""


def release(view: View) -> Iterator[Action]:
    """The wanted build: missing, or with a file that is not as it was built.

    Building or copying it where it was missing restarts nothing, the switch
    does; mending the one that runs restarts all services.
    """
    wanted = view.wanted.release
    seen = view.release(wanted.id)
    if not seen:
        how = _how(wanted)
        why = f"is not there, and {how}" if how else "is not built"
        yield Action("release", wanted.id, why, expected=wanted.id, observed="absent")
        return
    wrong = _release_wrong(view)
    if wrong:
        runs = view.observed.get("current") == f"releases/{wanted.id}"
        more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        yield Action(
            "release",
            wanted.id,
            "; ".join(wrong[:_NAMED]) + more + (f"; it {how}" if (how := _how(wanted)) else ""),
            expected="as built",
            observed=wrong[0],
            restarts=tuple(service.name for service in view.wanted.services) if runs else (),
        )


def _how(wanted: WantedRelease) -> str:
    """How a release comes to a host that does not build it; empty where it does."""
    if wanted.artifact is not None:
        return "is copied from the controller"
    return f"is built {wanted.elsewhere}, then copied" if wanted.elsewhere else ""


def _release_wrong(view: View) -> list[str]:
    wanted = view.wanted.release
    seen = view.release(wanted.id)
    provenance = as_map(seen.get("provenance"))
    built = view.built(wanted.id)
    if provenance.get("release") != wanted.id or not built:
        return ["provenance.json is missing or is not that of this release"]
    recorded = view.recorded(f"{RELEASES}/{wanted.id}/provenance.json").get("sha256")
    if recorded is not None and recorded != seen.get("provenance-sha256"):
        return ["provenance.json was changed after the release was recorded"]
    present = as_map(seen.get("files"))
    wrong = _directories_wrong(as_map(seen.get("directories")))
    wrong += [f"{path} {why}" for path in sorted(built) if (why := _file_wrong(path, built[path], present))]
    wrong += [
        f"{printable(path)} was added"
        for path in sorted(present, key=str)
        if path not in built and not _harmless_link(path, present)
    ]
    return wrong


def _resolve(path: str, present: Mapping[str, Any]) -> Mapping[str, Any]:
    """The file that ``path`` is or leads to by links within its own directory."""
    for _ in range(4):
        entry = as_map(present.get(path))
        target = as_text(entry.get("target"))
        if entry.get("type") != "link" or target is None or "/" in target:
            return entry
        path = posixpath.join(posixpath.dirname(path), target)
    return {}


def _harmless_link(path: str, present: Mapping[str, Any]) -> bool:
    return as_map(present.get(path)).get("type") == "link" and _resolve(path, present).get("type") == "file"


def _file_wrong(path: str, sha256: object, present: Mapping[str, Any]) -> str | None:
    entry = _resolve(path, present) if path in present else {"type": "absent"}
    missing = absence(entry, "file")
    if missing:
        return missing
    if entry.get("sha256") != sha256:
        return f"was replaced: {short_hash(entry.get('sha256'))} instead of {short_hash(sha256)}"
    if (access := _open_to_others(entry)) is not None:
        return access
    if path.startswith("bin/") and not int(str(entry["mode"]), 8) & 1:
        return f"has mode {printable(entry['mode'])}, services may not execute it"
    return None


def _open_to_others(entry: Mapping[str, Any]) -> str | None:
    if entry.get("owner") != "root":
        return f"belongs to {printable(entry.get('owner'))} instead of root"
    mode = as_text(entry.get("mode")) or ""
    if not _OCTAL.fullmatch(mode) or int(mode, 8) & _WRITABLE_BY_OTHERS:
        return f"has mode {printable(mode)}, others may write it"
    return None


def _directories_wrong(directories: Mapping[str, Any]) -> list[str]:
    """Directories of a release in which somebody else could replace a file."""
    return [
        f"its directory {printable(name) or 'itself'} {why}"
        for name in sorted(directories, key=str)
        if as_map(directories[name]).get("type") != "absent" and (why := _open_to_others(as_map(directories[name])))
    ]


def switch(view: View) -> Iterator[Action]:
    """The link ``current`` leads elsewhere; restarts the services that do not run the wanted release already."""
    wanted, seen = f"releases/{view.wanted.release.id}", view.observed.get("current")
    if seen == wanted:
        return
    reason = f"leads to {printable(seen)} instead of {wanted}" if isinstance(seen, str) else "is not there"
    yield Action(
        "switch",
        CURRENT,
        reason,
        expected=wanted,
        observed=seen if isinstance(seen, str) else "absent",
        restarts=tuple(each.name for each in view.wanted.services if not view.runs_wanted_release(each)),
    )


def models(view: View) -> Iterator[Action]:
    """A model file that is missing or another, and a name that does not lead to it."""
    for model in view.wanted.models:
        seen = view.part("models", model.path)
        content = _model_wrong(model, seen) + _links_wrong(model, view.part("links"))
        access = _access_wrong(seen)
        if content or access:
            yield Action(
                "model",
                model.path,
                "; ".join([*content, *access]),
                expected=short_hash(model.sha256),
                observed=short_hash(seen.get("sha256")) if seen.get("sha256") else printable(seen.get("type")),
                restarts=model.restarts if content else (),
            )


def _model_wrong(model: WantedModelFile, seen: Mapping[str, Any]) -> list[str]:
    missing = absence(seen, "file")
    if missing:
        return [missing]
    if as_int(seen.get("size")) != model.size:
        return [f"has {printable(seen.get('size'))} bytes instead of {model.size}"]
    if seen.get("sha256") != model.sha256:
        return [f"has other content: {short_hash(seen.get('sha256'))} instead of {short_hash(model.sha256)}"]
    return []


def _links_wrong(model: WantedModelFile, links: Mapping[str, Any]) -> list[str]:
    wrong: list[str] = []
    for link in model.links:
        wanted, seen = posixpath.relpath(model.path, posixpath.dirname(link)), as_text(links.get(link))
        if seen != wanted:
            wrong.append(f"{link} leads to {printable(seen)} instead of {wanted}" if seen else f"{link} is not there")
    return wrong


def _access_wrong(seen: Mapping[str, Any]) -> list[str]:
    if seen.get("type") != "file":
        return []
    wrong = [] if seen.get("mode") == "0444" else [f"mode {printable(seen.get('mode'))} instead of 0444"]
    return wrong + ([] if seen.get("owner") == "root" else [f"owner {printable(seen.get('owner'))} instead of root"])
