"""Locking the engine of a host: the hash of its source, its patches, the toolkit that builds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from llamarig.converge.locking.files import UNLOCKED, Finder
from llamarig.converge.locking.patch_text import read_patch
from llamarig.converge.locking.pulls import Pull, Pulls
from llamarig.converge.locking.result import HostWork, Locked, digest, digest_of
from llamarig.converge.locking.toolkit import toolkit_sha256
from llamarig.errors import RigError
from llamarig.spec.controller_path import below
from llamarig.spec.engine import Patch
from llamarig.spec.tree import Loc


@dataclass
class EngineLocker:
    """Looks up the engine of any host of one project; each pull request is fetched once."""

    root: Path
    finder: Finder
    pulls: Pulls
    result: Locked
    _known: dict[tuple[int, str], Pull] = field(default_factory=dict)

    def lock(self, work: HostWork) -> None:
        """Look up what the host's engine and toolkit leave open."""
        work.attempt(("engine", "source"), partial(self._source, work))
        for at, patch in enumerate(work.spec.engine.patches):
            loc = ("engine", "patches", at)
            work.attempt(loc, partial(self._patch, work, loc, patch))
        work.attempt(("cuda", "sha256"), partial(self._toolkit, work))
        for requirement, pin in (work.spec.cuda.wheels if work.spec.cuda is not None else {}).items():
            if pin == UNLOCKED:
                work.attempt(("cuda", "wheels", requirement), partial(self._wheel, work, requirement))

    def _source(self, work: HostWork) -> None:
        source = work.spec.engine.source
        if source.sha256 == UNLOCKED:
            work.values["engine", "source", "sha256"] = (
                self.finder.distribution_sha256(source.sdist)
                if source.sdist is not None
                else self.finder.archive_sha256(str(source.archive))
            )

    def _toolkit(self, work: HostWork) -> None:
        cuda = work.spec.cuda
        if cuda is not None and cuda.sha256 == UNLOCKED:
            work.values["cuda", "sha256"] = toolkit_sha256(self.finder, cuda)

    def _wheel(self, work: HostWork, requirement: str) -> None:
        cuda = work.spec.cuda
        if cuda is not None:
            folder = below(self.root, str(cuda.location)) if cuda.source == "directory" else None
            work.values["cuda", "wheels", requirement] = self.finder.wheel_sha256(requirement, folder)

    # --- patches --------------------------------------------------------------

    def _patch(self, work: HostWork, loc: Loc, patch: Patch) -> None:
        if patch.pr is not None:
            self._pull_request(work, loc, patch, patch.pr)
        elif patch.sha256 == UNLOCKED:
            name = str(patch.file)
            data = self._project_patch(name)
            _review(work, patch, data, name)
            work.values[*loc, "sha256"] = digest_of(data)

    def _pull_request(self, work: HostWork, loc: Loc, patch: Patch, number: int) -> None:
        """Pin the head and the patch's content; a head that is pinned stays, and a moved one is told."""
        head = str(patch.head)
        stored = self._place(number, head)
        if UNLOCKED not in (head, patch.sha256) and stored.is_file() and digest(stored) == patch.sha256:
            return
        self.finder.http()
        now = self.pulls.head(number)
        if head == UNLOCKED:
            head = now
        elif not now.startswith(head):
            work.notes.append(f"pull request {number} moved: {head[:12]} -> {now[:12]}; the spec keeps {head[:12]}")
        pull = self._pull(number, head)
        found = digest_of(pull.patch)
        if patch.sha256 not in (UNLOCKED, found):
            raise RigError(
                f"the patch of pull request {number} is not the one that the spec pins",
                why=f"sha256 {found}, pinned {patch.sha256}",
                fix="review it, and write `sha256: unlocked` to take it",
            )
        _review(work, patch, pull.patch, f"pull request {number} at {pull.head[:12]}")
        self.result.new_files[self._place(number, head)] = pull.patch
        for key, value in (("head", pull.head), ("sha256", found)):
            if getattr(patch, key) == UNLOCKED:
                work.values[*loc, key] = value

    def _pull(self, number: int, head: str) -> Pull:
        if (number, head) not in self._known:
            self._known[number, head] = self.pulls.patch(number, head)
        return self._known[number, head]

    def _place(self, number: int, head: str) -> Path:
        """Where the controller looks for it (render/build.py names patches so)."""
        return self.root / "patches" / f"pr-{number}-{head[:12]}.patch"

    def _project_patch(self, name: str) -> bytes:
        for place in (self.root / name, self.root / "patches" / name):
            if place.is_file():
                return place.read_bytes()
        raise RigError("the patch is not in the project", str(self.root / name), fix="put the file there")


def _review(work: HostWork, patch: Patch, data: bytes, name: str) -> None:
    """Show what a patch changes; refuse what nobody may acknowledge, or nobody did."""
    summary = read_patch(data, name)
    work.notes.append(f"{name} changes\n{summary.diffstat()}")
    refusals = summary.refusals()
    if refusals:
        raise RigError("the patch reaches beyond the sources", name, "; ".join(refusals), "leave it out")
    build = summary.build_changes()
    if build and patch.build_system != "acknowledged":
        raise RigError(
            "the patch changes how the build runs",
            name,
            ", ".join(build),
            "read these files; if they are right, add `build-system: acknowledged` to the patch",
        )
