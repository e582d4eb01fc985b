"""A flat apt repository of packages that were chosen elsewhere: its index, signed."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

_FIRST = ("Package", "Version", "Architecture")
_REPLACED = re.compile(r"^(Filename|MD5sum|SHA1|SHA512|Description-md5): .*\n?", re.MULTILINE)


def packages_text(stanzas: Mapping[str, str]) -> str:
    """``Packages``: the stanza of each file by its name here; of the archive's own hashes only SHA256 stays."""
    told = (
        f"{_REPLACED.sub('', stanza.strip() + chr(10)).rstrip(chr(10))}\nFilename: ./{name}\n"
        for name, stanza in sorted(stanzas.items())
    )
    return "\n".join(told)


def release_text(system: str, files: Mapping[str, bytes], at: int) -> str:
    """``Release``: the hashes of the index' files, and when it was made (seconds since 1970).

    It has no end of validity: a site may stay without a new one for years.
    """
    date = datetime.fromtimestamp(at, UTC).strftime("%a, %d %b %Y %H:%M:%S UTC")
    lines = [
        "Origin: llamarig",
        "Label: llamarig mirror",
        f"Description: what {system} hosts need, collected by llamarig",
        f"Date: {date}",
        "SHA256:",
        *(f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}" for name, content in sorted(files.items())),
    ]
    return "\n".join(lines) + "\n"


def compressed(text: str) -> bytes:
    """The same bytes for the same text."""
    return gzip.compress(text.encode(), mtime=0)


def field(stanza: str, name: str) -> str:
    """A one-line field of a stanza; empty where it is not there."""
    found = re.search(rf"^{name}: (.+)$", stanza, re.MULTILINE)
    return found[1].strip() if found else ""


def file_name(stanza: str) -> str:
    """What a package is called in a flat repository, ``name_version_architecture.deb``; an epoch is left out.

    Raises ValueError for a stanza that names no package.
    """
    name, version, architecture = (field(stanza, key) for key in _FIRST)
    short = version.rpartition(":")[2]
    if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+_[0-9A-Za-z.+~-]+_[a-z0-9]+", found := f"{name}_{short}_{architecture}"):
        raise ValueError(f"{found[:200]!r} is no package")
    return f"{found}.deb"


def same_packages(before: str | None, stanzas: Iterable[str]) -> bool:
    """Whether an index that is there names exactly these packages, so that it may stay, and with it its key."""
    if before is None:
        return False
    there = {field(stanza, "SHA256") for stanza in before.split("\n\n")}
    return there == {field(stanza, "SHA256") for stanza in stanzas}
