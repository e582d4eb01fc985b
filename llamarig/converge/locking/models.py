"""Locking the models of a host: revision, size and sha256 of every file, and the header of every model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from llamarig.converge.locking.document import Value, dotted
from llamarig.converge.locking.files import UNLOCKED, Finder
from llamarig.converge.locking.result import HostWork, Locked, digest, digest_of
from llamarig.gguf import Header, dump_sidecar, merge, read_header
from llamarig.spec.models import Model, ModelFile
from llamarig.spec.tree import Loc

LOCKABLE = ("revision", "sha256", "size")


@dataclass
class ModelLocker:
    """Looks up the models of any host of one project."""

    root: Path
    finder: Finder
    result: Locked

    def lock(self, work: HostWork) -> None:
        """Look up what the host's models leave open."""
        for name, model in work.spec.models.items():
            loc = ("models", name)
            work.attempt(loc, partial(self._model, work, loc, model))

    def _model(self, work: HostWork, loc: Loc, model: Model) -> None:
        parts: list[tuple[Loc, ModelFile]] = [(loc, model)]
        parts += [((*loc, "shards", at), shard) for at, shard in enumerate(model.shards)]
        self._header(work, loc, parts)
        if model.projector is not None:
            place = (*loc, "projector")
            self._header(work, place, [(place, model.projector)])

    def _file(self, work: HostWork, file: ModelFile) -> dict[str, Value]:
        """A file's open values."""
        open_ = [key for key in LOCKABLE if getattr(file, key) == UNLOCKED]
        if not open_:
            return {}
        found = self.finder.find(file, work.host)
        pinned, newest = str(file.revision), found.newest
        if newest is not None and "revision" not in open_ and not newest.startswith(pinned):
            work.notes.append(f"{file.repo} moved: {pinned[:12]} -> {newest[:12]}; the spec keeps {pinned[:12]}")
        return {key: getattr(found, key) for key in open_}

    def _header(self, work: HostWork, loc: Loc, parts: list[tuple[Loc, ModelFile]]) -> None:
        """Look up the parts of one model, and store its sidecar when the project does not have it yet.

        What turns out to be no model is not pinned: its values are noted last.
        """
        values = {(*place, key): value for place, part in parts for key, value in self._file(work, part).items()}
        first = parts[0][1]
        sha256 = str(values.get((*loc, "sha256"), first.sha256))
        pinned = first.header if isinstance(first, Model) else None
        path = self.root / "headers" / f"{sha256}.json"
        if pinned != "none" and not (path.is_file() and pinned in (None, digest(path))):
            text = self._sidecar(work, loc, parts, sha256)
            if text is not None and pinned is not None:
                values[*loc, "header"] = digest_of(text)
        work.values |= values

    def _sidecar(self, work: HostWork, loc: Loc, parts: list[tuple[Loc, ModelFile]], sha256: str) -> bytes | None:
        """The text of a model's sidecar, which is noted as a new file; None where its header cannot be had."""
        path = self.root / "headers" / f"{sha256}.json"
        if path not in self.result.new_files:
            headers = [header for _, part in parts if (header := self._read(part, work.host)) is not None]
            if len(headers) != len(parts):
                work.notes.append(f"{dotted(loc)}: its header cannot be read from here; plans will say header-unknown")
                return None
            whole = headers[0] if len(headers) == 1 else merge(headers, dotted(loc))
            self.result.new_files[path] = dump_sidecar(whole, sha256).encode()
        return self.result.new_files[path]

    def _read(self, part: ModelFile, host: str) -> Header | None:
        content = self.finder.find(part, host)
        if content.beginning is None:
            return None
        with content.beginning() as stream:
            header = read_header(stream, file_size=content.size)
        header.require_size(content.size, str(part.file or part.url or part.member or part.controller_path))
        return header
