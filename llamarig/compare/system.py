"""Packages, users, directories, text files and credentials: what lies on the host beside releases and models."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from llamarig.compare.act import absence, ownership
from llamarig.compare.action import Action
from llamarig.compare.flags import argument_changes, variable_changes
from llamarig.compare.text import printable, short_hash
from llamarig.compare.view import View, as_int, as_map, as_text, as_texts
from llamarig.render.site import SOURCE
from llamarig.render.wanted import CONFIG, UNITS, WantedCredential, WantedFile, WantedUser

PREFIXES = ("LLAMA_", "GGML_", "MTMD_", "CUDA_")
"""Of variables that steer the engine; the unit clears every one that is not planned."""


def packages(view: View) -> Iterator[Action]:
    """A package that is not installed, or whose version is another than the one asked for."""
    for name, version in view.wanted.packages.items():
        seen = as_text(view.part("packages").get(name))
        if seen is None:
            yield Action("package", name, "is not installed", expected=version or "installed", observed="absent")
        elif version is not None and seen != version:
            yield Action(
                "package", name, f"has version {printable(seen)} instead of {version}", expected=version, observed=seen
            )


def users(view: View) -> Iterator[Action]:
    """A user that is missing or is not as wanted."""
    for user in view.wanted.users:
        seen = view.part("users").get(user.name)
        services = tuple(service.name for service in view.wanted.services if service.user == user.name)
        if not isinstance(seen, Mapping):
            yield Action(
                "user",
                user.name,
                "there is no such user",
                expected="a system user",
                observed="absent",
                restarts=services,
            )
            continue
        wrong, restart = _user_wrong(user, seen)
        if wrong:
            yield Action(
                "user",
                user.name,
                "; ".join(wrong),
                expected=f"{user.shell}, {user.home}, no password",
                observed="; ".join(wrong),
                restarts=services if restart else (),
            )


def _user_wrong(user: WantedUser, seen: Mapping[str, Any]) -> tuple[list[str], bool]:
    """What is wrong, and whether a running process carries it until it is restarted."""
    wrong: list[str] = []
    if not as_int(seen.get("uid")):
        wrong.append(f"user id {printable(seen.get('uid'))}")
    extra = set(as_texts(seen.get("groups"))) - {user.name}
    if extra != set(user.groups):
        wrong.append(
            f"groups {printable(', '.join(sorted(extra)) or 'none')} instead of "
            f"{', '.join(sorted(user.groups)) or 'none'}"
        )
    carried = bool(wrong)
    for key, value in (("group", user.name), ("home", user.home), ("shell", user.shell)):
        if seen.get(key) != value:
            wrong.append(f"{key} {printable(seen.get(key))} instead of {value}")
    if seen.get("locked") is not True:
        wrong.append("a password opens the account")
    return wrong, carried


def directories(view: View) -> Iterator[Action]:
    """A directory that is missing, something else, or open to the wrong people."""
    for path, mode, owner, group in view.wanted.directories:
        seen = view.part("directories", path)
        missing = absence(seen, "dir")
        wrong = [missing] if missing else ownership(seen, mode, owner, group)
        if wrong:
            yield Action("directory", path, "; ".join(wrong), expected=f"{mode} {owner}:{group}", observed=_place(seen))


def _place(seen: Mapping[str, Any]) -> str:
    if seen.get("type") in (None, "absent", "unreadable"):
        return printable(seen.get("type", "unknown"))
    return f"{printable(seen.get('mode'))} {printable(seen.get('owner'))}:{printable(seen.get('group'))}"


def files(view: View) -> Iterator[Action]:
    """A text file of ours that differs, and what an earlier apply left and nobody wants any more."""
    for file in view.wanted.files:
        seen = view.part("files", file.path)
        missing = absence(seen, "file")
        if missing or seen.get("sha256") != file.sha256:
            why = missing or _why_other_content(view, file, seen)
            yield Action(
                "file",
                file.path,
                why,
                expected=short_hash(file.sha256),
                observed=short_hash(seen.get("sha256")) if not missing else _place(seen),
                restarts=file.restarts,
            )
        elif wrong := ownership(seen, file.mode, file.owner, file.group):
            yield Action(
                "file",
                file.path,
                "; ".join(wrong),
                expected=f"{file.mode} {file.owner}:{file.group}",
                observed=_place(seen),
            )
    yield from _left_over(view)


def _why_other_content(view: View, file: WantedFile, seen: Mapping[str, Any]) -> str:
    recorded = as_text(view.recorded(file.path).get("sha256"))
    changes = ", ".join(changed_flags(view, file.path))
    if recorded is not None and recorded != seen.get("sha256"):
        if view.observed.get("unfinished") is not None:
            return "was left like that by an interrupted apply, or edited on the host"
        return "was edited on the host" + (f" and runs like that: {changes}" if changes else "")
    if changes:
        return f"the spec changed: {changes}"
    return (
        "differs from what the spec renders" if recorded is None else "the spec or llamarig itself changed its content"
    )


def changed_flags(view: View, unit_path: str) -> list[str]:
    """Arguments and variables that a unit file's new content changes for the service that runs by it."""
    for service in view.wanted.services:
        process = view.process(service)
        if unit_path == f"{UNITS}/{service.unit}" and process:
            changes = argument_changes(process.get("argv"), service.argv)
            return changes + variable_changes(process.get("environment"), service.environment, PREFIXES)
    return []


def _left_over(view: View) -> Iterator[Action]:
    known = {file.path for file in view.wanted.files} | {entry.path for entry in view.wanted.credentials}
    former = as_texts(as_map(view.record.get("former")).get("files"))
    applied = {*as_map(view.record.get("files")), *former}
    # What the observer lists beside the files that it was asked for was found in our own places (docs/contracts.md).
    for path in sorted(({*applied, *view.part("files")} - known), key=str):
        below_ours = path.startswith((f"{UNITS}/llama", f"{CONFIG}/")) and posixpath.normpath(path) == path
        ours = below_ours or path == SOURCE
        if ours and view.part("files", path).get("type") not in (None, "absent"):
            yield Action(
                "file",
                path,
                "was written by an earlier apply and is not wanted any more"
                if path in applied
                else "was left by an apply that did not end, and is not wanted",
                expected="absent",
                observed=_place(view.part("files", path)),
            )


def credentials(view: View) -> Iterator[Action]:
    """A key file that is missing, empty, readable to others, or made for other clients."""
    for entry in view.wanted.credentials:
        seen = view.part("credentials", entry.path)
        missing = absence(seen, "file")
        content = [missing] if missing else _keys_wrong(entry, seen)
        wrong = content + ([] if missing else ownership(seen, entry.mode, "root", "root"))
        if wrong:
            yield Action(
                "credential",
                entry.path,
                "; ".join(wrong),
                expected=f"a key file, {entry.mode} root:root",
                observed=_place(seen),
                restarts=(entry.service,) if content else (),
            )


def _keys_wrong(entry: WantedCredential, seen: Mapping[str, Any]) -> list[str]:
    if not (as_int(seen.get("keys")) or 0) > 0:
        return ["holds no key"]
    if entry.kind == "file":
        return ["holds other keys than the file on the controller"] if seen.get("agrees") is False else []
    clients = set(as_texts(seen.get("clients")))
    gone, more = sorted(set(entry.clients) - clients), sorted(clients - set(entry.clients))
    wrong = [f"has no key for {printable(', '.join(gone))}"] if gone else []
    wrong += [f"has a key for {printable(', '.join(more))}, who is not in the spec"] if more else []
    if not wrong and as_int(seen.get("keys")) != len(entry.clients):
        wrong.append(f"holds {printable(seen.get('keys'))} keys for {len(entry.clients)} clients")
    return wrong
