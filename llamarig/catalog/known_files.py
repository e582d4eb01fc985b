"""GGUF files that the catalog knows: bytes and hashes of the quants of models that people serve.

The table of the package can be refreshed: ``llamarig lock --known-files`` writes what the hub says now into the
project's ``known-files.yml``, whose repositories stand before those of the package.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, StringConstraints, ValidationError

from llamarig.catalog.data import Entry, read
from llamarig.errors import RigError

PROJECT_FILE = "known-files.yml"
"""Where a project keeps what ``lock --known-files`` was told."""

UNLOCKED = "unlocked"
_GB = 1_000_000_000
_MOST = 1_000_000_000_000_000
"""Bytes of a file at most; the largest that are published are a thousandth of it."""
_HALF_A_DIGIT = 5_000_000
"""Bytes by which a figure in GB with two decimals may be too low."""

Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]
Repo = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w./+-]*\.gguf$", max_length=300)]
TensorType = Literal[
    "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS", "IQ4_NL", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4", "NVFP4", "BF16", "F16", "F32",
]  # fmt: skip
"""Types that quantisers give an embedding or an output matrix."""
Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]{0,40}$")]


class FileEntry(Entry):
    """One file of a repository, as it is written down."""

    file: FileName
    quant: Label | None = None
    """The publisher's label; None for a projector."""
    size: Annotated[int, Field(gt=0, le=_MOST)] | None = None
    size_gb: Annotated[float, Field(gt=0.0, le=_MOST / _GB)] | None = None
    revision: Commit | None = None
    """The repository's own when not given."""
    sha256: Sha256 | None = None
    mtp: bool | None = None
    """The repository's own when not given."""
    embedding_type: TensorType | None = None
    """Of the token embedding; None where nobody published it."""
    output_type: TensorType | None = None
    """Of the output matrix; None where nobody published it."""


class Repository(Entry):
    """Files of one publisher."""

    repo: Repo
    revision: Commit | None = None
    mtp: bool = False
    source: str
    files: list[FileEntry]


class KnownModel(Entry):
    """One model and who publishes files of it."""

    name: str
    parameters: Annotated[int, Field(gt=0)] | None = None
    vision: bool = False
    shape: dict[str, int | str] = Field(default_factory=dict)
    """Keys of its header without the architecture's prefix; empty when nobody wrote them down."""
    source: str
    repositories: list[Repository]


class _Known(Entry):
    models: dict[Name, KnownModel]


class _Refreshed(Entry):
    """The project's file: repositories by model."""

    schema_version: Literal[1]
    models: dict[Name, list[Repository]]


@dataclass(frozen=True)
class KnownFile:
    """One file: where it is published, what it weighs, what it hashes to."""

    model: str
    """The table's name of its model."""
    repo: str
    revision: str
    """40 digits, or ``unlocked``."""
    file: str
    size: int | None
    """Exact bytes; None when only a rounded figure was published."""
    size_gb: float | None
    sha256: str
    """Or ``unlocked``."""
    quant: str | None
    mtp: bool
    source: str
    embedding_type: str | None = None
    """The tensor type of the token embedding; None where nobody published it."""
    output_type: str | None = None
    """The tensor type of the output matrix; None where nobody published it."""

    @property
    def most_bytes(self) -> int:
        """The bytes, or as many as the rounded figure allows."""
        if self.size is not None:
            return self.size
        return round((self.size_gb or 0.0) * _GB) + _HALF_A_DIGIT

    @cached_property
    def quant_class(self) -> int:
        """The bits that the label claims: 4 for Q4_K_M, UD-IQ4_XS and NVFP4; 0 without a label that says."""
        return quant_class(self.quant or "")


def quant_class(label: str) -> int:
    """The bits in a quant's label; 0 when it names none.

    It sorts files into the classes that people speak of and says nothing about a file's size.
    """
    found = re.search(r"(?:^|[-_])(?:I?Q|NVFP|MXFP|FP|BF|F)(\d+)", label.upper())
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class Table:
    """All known files."""

    models: Mapping[str, KnownModel]
    files: tuple[KnownFile, ...]

    def of(self, model: str) -> tuple[KnownFile, ...]:
        """The quants of one model, smallest first; projectors left out."""
        found = [each for each in self.files if each.model == model and each.quant is not None]
        return tuple(sorted(found, key=lambda each: each.most_bytes))

    def projectors(self, model: str) -> tuple[KnownFile, ...]:
        """The projectors of one model, smallest first."""
        found = [each for each in self.files if each.model == model and each.quant is None]
        return tuple(sorted(found, key=lambda each: each.most_bytes))

    def model(self, name: str) -> str:
        """The table's name of the model that a user calls ``name``, or that a repository or file of this name holds.

        Raises :class:`RigError` with near names.
        """
        wanted = normalised(name)
        if wanted in self.models:
            return wanted
        shown = {normalised(entry.name): key for key, entry in self.models.items()}
        if wanted in shown:
            return shown[wanted]
        asked = name.strip().lower()
        holding = {each.model for each in self.files if asked in _addresses(each)}
        if len(holding) == 1:
            return holding.pop()
        near = difflib.get_close_matches(wanted, [*self.models, *shown], n=3, cutoff=0.4)
        names = list(dict.fromkeys(shown.get(each, each) for each in near))
        meant = f"did you mean {' or '.join(names)}? " if names else ""
        raise RigError(
            what=f"no known files of a model {name!r}",
            why=f"the table has {', '.join(self.models)}",
            fix=f"{meant}For a file of another model: `llamarig model memory FILE`, or name it in a spec and run "
            f"`llamarig plan HOST`; its files can be added to the project's {PROJECT_FILE}",
        )

    def identify(self, *, sha256: str | None, repo: str | None, file: str | None, size: int | None) -> KnownFile | None:
        """The entry of a spec's model file: by hash, by place in the hub, or by bytes that only one file has."""
        if sha256 not in (None, UNLOCKED):
            for each in self.files:
                if each.sha256 == sha256:
                    return each
        for each in self.files:
            if repo is not None and (each.repo, each.file) == (repo, file) and size in (None, each.size):
                return each
        found = [each for each in self.files if size is not None and each.size == size]
        return found[0] if len({each.model for each in found}) == 1 else None


def _addresses(file: KnownFile) -> set[str]:
    """How a user may point at a file, in small letters."""
    return {words.lower() for words in (file.repo, file.file, file.file.rpartition("/")[2], f"{file.repo}/{file.file}")}


def normalised(name: str) -> str:
    """A name as people write it, as the table's keys are written."""
    return re.sub(r"[\s_]+", "-", name.strip().lower())


def table(project: Path | None = None) -> Table:
    """The package's table, under what the project's ``known-files.yml`` says.

    Raises :class:`RigError` when the project's file is not usable.
    """
    if project is None or not (project / PROJECT_FILE).is_file():
        return _own()
    path = project / PROJECT_FILE
    return _with(_own(), _refreshed(path))


@cache
def _own() -> Table:
    known = _Known.model_validate(read("known_files.yml"))
    files = (each for name, model in known.models.items() for each in _files(name, model.repositories))
    return Table(known.models, _once(files))


def _refreshed(path: Path) -> dict[str, list[Repository]]:
    try:
        data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        return _Refreshed.model_validate(data).models
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        # Beside what is no YAML: a date or a number that there is not, and brackets without end.
        why = _words(error)
        fix = "remove it, and let `llamarig lock --known-files` write it again"
        raise RigError("the project's table of known files is not usable", str(path), why, fix) from error


def _words(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)


def _with(own: Table, refreshed: Mapping[str, list[Repository]]) -> Table:
    """What was asked for again stands first; what the package knows of other revisions stays."""
    models = dict(own.models)
    for name in refreshed:
        if name not in models:
            models[name] = KnownModel.model_validate(
                {"name": name, "source": f"the project's {PROJECT_FILE}", "repositories": []}
            )
    listed = (each for name, entries in refreshed.items() for each in _files(name, entries))
    fresh = [_with_recipe(each, own.files) for each in listed]
    asked = {each.repo for each in fresh}
    # Without a revision nobody can say that the hub's newest file is not meant.
    kept = (each for each in own.files if each.repo not in asked or each.revision != UNLOCKED)
    return Table(models, _once((*fresh, *kept)))


def _with_recipe(listed: KnownFile, own: tuple[KnownFile, ...]) -> KnownFile:
    """A listing says nothing of tensors: what was published of the same file's, to the byte, holds on."""
    if listed.embedding_type or listed.output_type or listed.size is None:
        return listed
    place = (listed.repo, listed.file, listed.size)
    for each in own:
        if (each.repo, each.file, each.size) == place and each.sha256 in (listed.sha256, UNLOCKED):
            return replace(listed, embedding_type=each.embedding_type, output_type=each.output_type)
    return listed


def _files(model: str, repositories: list[Repository]) -> Iterator[KnownFile]:
    for place in repositories:
        for entry in place.files:
            yield KnownFile(
                model=model,
                repo=place.repo,
                revision=entry.revision or place.revision or UNLOCKED,
                file=entry.file,
                size=entry.size,
                size_gb=entry.size_gb,
                sha256=entry.sha256 or UNLOCKED,
                quant=entry.quant,
                mtp=(place.mtp if entry.mtp is None else entry.mtp) and entry.quant is not None,
                source=place.source,
                embedding_type=entry.embedding_type,
                output_type=entry.output_type,
            )


def _once(files: Iterator[KnownFile] | tuple[KnownFile, ...]) -> tuple[KnownFile, ...]:
    """Each content once, where its hash is known."""
    seen: dict[object, KnownFile] = {}
    for each in files:
        key = each.sha256 if each.sha256 != UNLOCKED else (each.repo, each.revision, each.file)
        seen.setdefault(key, each)
    return tuple(seen.values())
