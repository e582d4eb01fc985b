"""Checks of the model file: its content, its link, and that the process holds that very file."""

from __future__ import annotations

import posixpath
from typing import Any

from llamarig.prove.check import Outcome, Rule
from llamarig.prove.hostile import count, integer, mapping, sequence, show, text
from llamarig.prove.services import View


def _wanted_files(view: View) -> list[dict[str, Any]]:
    """The files that this service reads: those that restart it, and its model."""
    name, sha = view.service["name"], view.service["model_sha256"]
    return [file for file in view.wanted["models"] if name in file["restarts"] or file["sha256"] == sha]


def _content(view: View, file: dict[str, Any]) -> list[str]:
    seen = mapping(view.observed, "models", file["path"])
    if text(seen, "type") != "file":
        return [f"{file['path']} is not there"]
    wrong = []
    if seen.get("size") != file["size"]:
        wrong.append(f"{file['path']} has {show(seen.get('size'))} bytes, planned {file['size']}")
    if seen.get("sha256") != file["sha256"]:
        wrong.append(f"{file['path']} has the sha256 {show(seen.get('sha256'))}")
    return wrong


def _links(view: View, file: dict[str, Any]) -> list[str]:
    wrong = []
    for link in file["links"]:
        target = text(view.observed, "links", link)
        whole = posixpath.normpath(posixpath.join(posixpath.dirname(link), target)) if target else ""
        if whole != file["path"]:
            wrong.append(f"{link} points to {show(target) or 'nothing'}, planned {file['path']}")
    return wrong


def model(view: View) -> Outcome:
    """Each model file has the planned size and sha256, its links point to it, and the process maps that inode."""
    files = _wanted_files(view)
    if not any(file["sha256"] == view.service["model_sha256"] for file in files):
        return False, "the wanted state names no file for this service's model"
    wrong = [problem for file in files for problem in (*_content(view, file), *_links(view, file))]
    inodes = set()
    for file in files:
        stat = sequence(view.observed, "models", file["path"], "stat")
        inodes |= {stat[1]} if len(stat) > 1 and isinstance(stat[1], int) else set()
    for entry in sequence(view.probe, "mapped", "models"):
        if mapping(entry).get("deleted") is not False or integer(entry, "inode") not in inodes:
            wrong.append(f"the process holds another file than the one on disk: {show(text(entry, 'path'))}")
    size = sum(file["size"] for file in files)
    return not wrong, "; ".join(wrong[:5]) or f"{count(len(files), 'file')}, {size} bytes, sha256 as planned"


RULES: tuple[Rule[View], ...] = (Rule("model", model),)
