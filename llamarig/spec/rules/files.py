"""Model files: names that do not collide, addresses without passwords, one size for one content."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from llamarig.catalog.known_files import UNLOCKED, Table, table
from llamarig.errors import RigError
from llamarig.spec.models import Model, ModelFile
from llamarig.spec.rules.base import Broken, View
from llamarig.spec.tree import Loc

_SHARD = re.compile(r"(?P<stem>.+)-(?P<index>[0-9]{5})-of-(?P<count>[0-9]{5})\.gguf")
_URL = re.compile(r"https?://[^/@\s]+/\S+")


def file_name(file: ModelFile) -> str:
    """The name that a file has where it comes from."""
    text = file.file or file.member or file.host_path or file.controller_path or (file.url or "").split("?")[0]
    return PurePosixPath(text).name


def _files(model: Model, at: Loc) -> list[tuple[Loc, ModelFile]]:
    found: list[tuple[Loc, ModelFile]] = [(at, model)]
    found += [((*at, "shards", index), shard) for index, shard in enumerate(model.shards)]
    if model.projector is not None:
        found.append(((*at, "projector"), model.projector))
    return found


def names(view: View) -> Iterator[Broken]:
    """A model's files lie in one directory under their own names; `sha256` is the store's."""
    for name, model in view.spec.models.items():
        at: Loc = ("models", name)
        if name == "sha256":
            yield Broken(at, "`sha256` is the directory of the store itself", "give the model another name")
        seen: dict[str, Loc] = {}
        for loc, file in _files(model, at):
            own = file_name(file)
            if not own.endswith(".gguf"):
                yield Broken(loc, f"`{own}` is no GGUF file by its name", "name the .gguf file itself")
            elif seen.setdefault(own, loc) != loc:
                yield Broken(loc, f"two files of `{name}` are called {own}", "take files with different names")


def shards(view: View) -> Iterator[Broken]:
    """Shards are numbered from 1, all of the same set."""
    for name, model in view.spec.models.items():
        at: Loc = ("models", name)
        first = _SHARD.fullmatch(file_name(model))
        if first is None:
            if model.shards:
                yield Broken(
                    (*at, "shards"), f"{file_name(model)} is not the first of several shards", "remove `shards`"
                )
            continue
        count = int(first["count"])
        wanted = [f"{first['stem']}-{index:05d}-of-{first['count']}.gguf" for index in range(1, min(count, 9999) + 1)]
        given = [file_name(model), *(file_name(shard) for shard in model.shards)]
        if given != wanted:
            missing = next((each for each in wanted if each not in given), wanted[0])
            yield Broken(
                (*at, "shards"),
                f"{file_name(model)} is one of {count} shards, and {len(given)} are listed in this order",
                f"name shard 1 in the model itself, the others under `shards` in order; {missing} comes first",
            )


def addresses(view: View) -> Iterator[Broken]:
    """A URL is http and holds no password."""
    for name, model in view.spec.models.items():
        for loc, file in _files(model, ("models", name)):
            if file.url is None:
                continue
            if "@" in file.url.split("://")[-1].split("/")[0]:
                yield Broken((*loc, "url"), "the address holds a user or password", "take it out of the address")
            elif not _URL.fullmatch(file.url):
                yield Broken((*loc, "url"), f"`{file.url}` is no http address of a file", "write https://host/path")


def contents(view: View) -> Iterator[Broken]:
    """The same sha256 has the same size everywhere."""
    sizes: dict[str, tuple[object, Loc]] = {}
    for name, model in view.spec.models.items():
        for loc, file in _files(model, ("models", name)):
            if file.sha256 == "unlocked" or file.size == "unlocked":
                continue
            size, other = sizes.setdefault(file.sha256, (file.size, loc))
            if size != file.size:
                yield Broken(
                    (*loc, "size"),
                    f"the same sha256 has {size} bytes at {'.'.join(map(str, other))}",
                    "correct the size or the hash",
                    rests_on=(other,),
                )


def known_names(view: View) -> Iterator[Broken]:
    """A file of a repository that the catalog lists is one of those, or its name is looked at twice.

    The catalog need not list all files, so this is said of a name that resembles a listed one, and not of a file whose
    hash is pinned: that one is there.
    """
    for name, model in view.spec.models.items():
        for loc, file in _files(model, ("models", name)):
            if file.repo is None or file.file is None or file.sha256 != UNLOCKED:
                continue
            listed = _listed(table(), file.repo)
            near = difflib.get_close_matches(file.file, listed, n=2, cutoff=_ALIKE)
            if not near or file.file in listed or file.file in _listed(_of_project(view), file.repo):
                continue
            yield Broken(
                (*loc, "file"),
                f"`{file.file}` is none of the {len(listed)} files that are known of {file.repo}",
                f"did you mean {' or '.join(f'`{each}`' for each in near)}? A newer file is found by `llamarig lock`",
                warning=True,
            )


_ALIKE = 0.6


def _listed(known: Table, repo: str) -> list[str]:
    return [each.file for each in known.files if each.repo == repo]


def _of_project(view: View) -> Table:
    """The project's own table; the package's where that one cannot be read, which a plan says."""
    try:
        return table(view.root)
    except RigError:
        return table()


RULES = (names, shards, addresses, contents, known_names)
