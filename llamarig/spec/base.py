"""What every part of a spec is made of: the strict base model and the shared field types."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints


class SpecValueError(ValueError):
    """A value that a model refuses by itself, in the user's words, with what to do about it.

    ``keys`` are those of a section that the refusal rests on.
    """

    def __init__(self, message: str, fix: str, keys: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.fix = fix
        self.keys = keys


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class SpecModel(BaseModel):
    """A strict, frozen mapping with kebab-case keys; an unknown key is an error."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        alias_generator=_kebab,
        populate_by_name=False,
        validate_default=False,
        loc_by_alias=True,
    )


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
"""A host's own name for a GPU, model or service: lower case, digits and dashes."""

HostName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""A host's name: one DNS label."""

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""The sha256 of a content, 64 lower-case hex digits."""

Unlocked = Literal["unlocked"]
"""Written where a hash or head is not known yet: planned with, never applied."""

Lockable = Sha256 | Unlocked

Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{9,40}$")]
"""A git commit, 9 to 40 hex digits; 40 where it is fetched from git."""

Port = Annotated[int, Field(ge=1, le=65535)]
MiB = Annotated[int, Field(ge=0, le=1 << 24)]
"""A size in MiB (2^20 bytes)."""


_CONTROL = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories that could end or forge a line of a unit, an argument file or a terminal."""


def _one_line(text: str) -> str:
    if not text.isprintable() and any(unicodedata.category(ch) in _CONTROL for ch in text):
        raise SpecValueError(
            "holds a control character (a line break, a tab, NUL)", "write it on one line, with spaces"
        )
    return text


def _absolute(path: str) -> str:
    parts = path.split("/")
    if not path.startswith("/") or ".." in parts or "." in parts or "" in parts[1:]:
        raise SpecValueError(
            "must be an absolute path without `.`, `..`, doubled or trailing slashes",
            "write the path as it is on the host, from `/` on",
        )
    return _one_line(path)


AbsolutePath = Annotated[str, AfterValidator(_absolute)]
"""A normalised absolute path on the host."""


def _relative(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or "" in parts:
        raise SpecValueError(
            "must be a relative path without `..` or doubled slashes",
            "write the path below the directory that the key is about",
        )
    return _one_line(path)


RelativePath = Annotated[str, AfterValidator(_relative)]
"""A path below the project or repository that the key is about."""


OneLine = Annotated[str, AfterValidator(_one_line)]
"""Text without control characters; spaces, quotes, % and $ are fine."""


def _shown_name(text: str) -> str:
    if not text.strip() or text.startswith("-") or any(unicodedata.category(ch) == "Cf" for ch in text):
        raise SpecValueError(
            "begins with a dash, shows nothing, or holds characters that hide or turn text",
            "write a plain name, for example qwen-27b",
        )
    return text


ShownName = Annotated[OneLine, AfterValidator(_shown_name)]
"""A name that people read and programs compare; it stands on the server's command line."""


_REASON = 8


def _reason(text: str) -> str:
    if len(text) >= _REASON > len(text.strip()) or any(unicodedata.category(ch) == "Cf" for ch in text):
        raise SpecValueError(
            "says nothing, or holds characters that hide or turn text", "say in a few words why that is right here"
        )
    return text


Reason = Annotated[OneLine, Field(min_length=_REASON), AfterValidator(_reason)]
"""Why the user asks for something against the rule; every check shows it."""
