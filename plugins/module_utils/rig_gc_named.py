"""What a host itself names: the link, the record, and the states that were kept. Nothing of it may go."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible.module_utils import rig_store
from ansible.module_utils.rig_files import UnusualFileError, lstat, read_json
from ansible.module_utils.rig_state import MAX_STATE, read_state

STATES = ("proven", "former", "held")


class UnreadableError(Exception):
    """Something that names what must stay cannot be read; the text says what."""


def named(root: str, state: str) -> dict[str, Any]:
    """Releases, models, links, users and toolkits by who names them.

    Raises :class:`UnreadableError` where one of the documents is there and cannot be read.
    """
    return {
        "current": _current(root),
        "record": _record(f"{state}/record.json"),
        "wanted": _wanted_file(f"{state}/wanted.json"),
        **{name: _state(f"{state}/{name}.json", f"{state}/wanted.json") for name in STATES},
    }


def _current(root: str) -> str:
    path = f"{root}/current"
    target = rig_store.link(path)
    if target is None:
        if os.path.lexists(path):
            raise UnreadableError(f"{path} is no link")
        return ""
    folder, name = os.path.split(target)
    if os.path.normpath(Path(root) / folder) != f"{root}/releases" or not rig_store.RELEASE_ID.fullmatch(name):
        raise UnreadableError(f"{path} leads to {target[:200]}, which is no release")
    return name


def _record(path: str) -> dict[str, Any]:
    record, state = rig_store.record(path)
    if state == "absent":
        return {"state": state}
    if state != "ok":
        return {"state": state}
    files = rig_store.files_of(record)
    releases = [record.get(key) for key in ("release", "former-release")]
    return {
        "state": state,
        "releases": [name for name in releases if isinstance(name, str)],
        "models": [name for name in files if "/sha256/" in name],
        "toolkits": [str(Path(name).parent) for name in files if name.endswith("/manifest.json")],
    }


def _wanted_file(path: str) -> dict[str, Any] | None:
    try:
        if lstat(path) is None:
            return None
        return of_wanted(read_json(path, MAX_STATE), path)
    except (UnusualFileError, RecursionError) as error:
        raise UnreadableError(f"{path} {error}") from error


def _state(path: str, wanted: str) -> dict[str, Any] | None:
    """What a kept state names, by its links and by the wanted state that lies in it."""
    if not os.path.lexists(path):
        return None
    content = read_state(Path(path))
    if content is None:
        raise UnreadableError(f"{path} is not a state that llamarig wrote")
    found: dict[str, Any] = {"releases": [content["release"]], "models": [], "links": [], "users": [], "toolkits": []}
    for entry in content["files"]:
        if isinstance(entry.get("link"), str):
            found["links"].append(entry["path"])
            found["models"].append(os.path.normpath(f"{Path(entry['path']).parent}/{entry['link']}"))
        elif entry["path"] == wanted and not entry.get("absent"):
            try:
                told = of_wanted(json.loads(entry["content"]), path)
            except (ValueError, RecursionError) as error:
                raise UnreadableError(f"{path} holds a wanted state that cannot be read: {error}") from error
            for key, names in told.items():
                found[key] += names
    return found


def of_wanted(document: Any, path: str) -> dict[str, list[str]]:
    """What a wanted state (llamarig/render/wanted.py) names."""
    try:
        toolkit = document.get("toolkit")
        return {
            "releases": [str(document["release"]["id"])],
            "models": [str(model["path"]) for model in document["models"]],
            "links": [str(link) for model in document["models"] for link in model["links"]],
            "users": [str(user["name"]) for user in document["users"]],
            "toolkits": [str(toolkit["prefix"])] if toolkit else [],
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise UnreadableError(f"{path} holds a wanted state of another form: {error}") from error
