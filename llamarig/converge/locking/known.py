"""Asking the hub again for the files of the repositories that the table of known files and the specs name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from llamarig.catalog.known_files import PROJECT_FILE, UNLOCKED, KnownFile, Table, normalised, table
from llamarig.converge.locking.document import unified, write_atomically
from llamarig.converge.locking.hub import Hub, TreeFile
from llamarig.errors import RigError
from llamarig.spec.host import HostSpec

_HEAD = """\
# What the hub said when `llamarig lock --known-files` asked it: the files that `plan --solve quant`, the alternatives
# of a plan and `advise` choose from, beside those that llamarig brings along. Written by the command; edits are lost.
"""
_QUANT = re.compile(r"(?:^|[-._])((?:UD-)?(?:I?Q\d\w*|NVFP4|MXFP4|BF16|F16|F32))(?=[-.]|$)", re.IGNORECASE)
_SHARD = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*\.gguf")
_SOURCE = "the hub's tree listing"


@dataclass
class Refreshed:
    """The project's table as it is and as it shall be."""

    path: Path
    before: str
    after: str = ""
    asked: list[str] = field(default_factory=list)
    """Repositories that answered."""
    problems: list[RigError] = field(default_factory=list)

    @property
    def pending(self) -> bool:
        """Whether there is anything to write."""
        return self.after != self.before

    def diff(self) -> str:
        """The change as a unified diff."""
        return unified(self.path.name, self.before, self.after) if self.pending else ""

    def write(self) -> None:
        """Replace the table in one step."""
        write_atomically(self.path, self.after.encode())


def refresh(root: Path, specs: Iterable[HostSpec], hub: Hub) -> Refreshed:
    """Ask the hub for every known repository and those that ``specs`` name. Writes nothing.

    A repository that cannot be asked keeps what is known of it, and its problem is told.
    """
    path = root / PROJECT_FILE
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    known = table(root)
    result = Refreshed(path, before)
    models: dict[str, list[dict[str, Any]]] = {}
    for model, repo in _repositories(known, specs):
        try:
            revision = hub.commit(repo)
            entries = _files(known, repo, hub.tree(repo, revision))
            result.asked.append(repo)
            if entries:
                place = {"repo": repo, "revision": revision, "source": _SOURCE, "files": entries}
                models.setdefault(model, []).append(place)
        except RigError as error:
            result.problems.append(error)
            kept = _kept(before, model, repo)
            if kept is not None:
                models.setdefault(model, []).append(kept)
    document = {"schema-version": 1, "models": models}
    result.after = _HEAD + yaml.safe_dump(document, sort_keys=False, width=120, allow_unicode=True)
    return result


def _repositories(known: Table, specs: Iterable[HostSpec]) -> Iterator[tuple[str, str]]:
    """Model and repository of every place to ask, each once."""
    seen = dict.fromkeys((each.model, each.repo) for each in known.files)
    repos = {repo for _, repo in seen}
    for spec in specs:
        for model in spec.models.values():
            if model.repo is not None and model.repo not in repos:
                size = model.size if isinstance(model.size, int) else None
                own = known.identify(sha256=model.sha256, repo=model.repo, file=model.file, size=size)
                seen.setdefault((own.model if own else _named(model.repo), model.repo))
                repos.add(model.repo)
    yield from seen


def _named(repo: str) -> str:
    """A name for the model of a repository that the table does not know."""
    name = re.sub(r"-gguf$", "", normalised(repo.rpartition("/")[2]))
    return re.sub(r"[^a-z0-9._-]", "-", name)[:63]


def _files(known: Table, repo: str, listed: list[TreeFile]) -> list[dict[str, Any]]:
    """Whole models and projectors of a listing, as the table writes them down; drafters and shards are left out."""
    flags = _heads(known, repo)
    entries: list[dict[str, Any]] = []
    for each in sorted(listed, key=lambda file: file.size):
        if not _NAME.fullmatch(each.path) or _SHARD.search(each.path) or each.sha256 is None or each.size <= 0:
            continue
        projector = each.path.lower().startswith("mmproj")
        label = _QUANT.search(each.path.removesuffix(".gguf"))
        if each.path.lower().startswith(("mtp-", "dflash", "eagle")) or (label is None and not projector):
            continue
        entry: dict[str, Any] = {"file": each.path, "size": each.size, "sha256": each.sha256}
        if label is not None and not projector:
            entry |= {"quant": label[1], "mtp": flags.get(each.sha256, flags.get("", False))}
        entries.append(entry)
    return entries


def _heads(known: Table, repo: str) -> dict[str, bool]:
    """Which contents hold an MTP head; "" stands for all others of the repository, where they agree.

    A listing does not say. What is not known is taken to have none, so that no service that drafts is offered it.
    """
    own: list[KnownFile] = [each for each in known.files if each.repo == repo and each.quant is not None]
    flags = {each.sha256: each.mtp for each in known.files if each.sha256 != UNLOCKED}
    if len({each.mtp for each in own}) == 1:
        flags[""] = own[0].mtp
    return flags


def _kept(text: str, model: str, repo: str) -> dict[str, Any] | None:
    """What the project's table says of a repository now."""
    document = yaml.safe_load(text) or {}
    places: list[dict[str, Any]] = document.get("models", {}).get(model, [])
    return next((place for place in places if place.get("repo") == repo), None)
