"""The files of a release: what differs from its provenance.json, and how a build's files come into it."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from ansible.module_utils.rig_disk import open_plain, sha256_of
from ansible.module_utils.rig_unpack import RefusedError

PROVENANCE = "provenance.json"
FOLDERS = ("bin", "lib")
LIBRARY = re.compile(r"^lib[\w.+-]+\.so(\.\d+)*$")


def problems_of(release: Path) -> list[str]:
    """What differs between a release and its provenance.json; empty when it is intact."""
    try:
        with os.fdopen(open_plain(release / PROVENANCE), "rb") as file:
            files = dict(json.load(file)["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        return [f"provenance.json cannot be read: {error}"]
    found = []
    for name, digest in sorted(files.items()):
        path = release / name
        if not name.isprintable() or name.startswith("/") or ".." in path.parts:
            found.append(f"{name[:200]!r}: is no file of a release")
            continue
        try:
            owner = path.stat(follow_symlinks=False)
            if sha256_of(path) != digest:
                found.append(f"{name}: the content differs")
            elif owner.st_uid != os.geteuid() or owner.st_mode & 0o022:
                found.append(f"{name}: others than root may write it")
        except OSError as error:
            found.append(f"{name}: {error.strerror}")
    return [*found, *_extra(release, set(files) | {PROVENANCE})]


def _extra(release: Path, known: set[str]) -> Iterator[str]:
    """What lies in a release beside its files, and links in it that lead anywhere but to one of them."""
    for path in sorted(release.rglob("*")):
        name = str(path.relative_to(release))
        if path.is_symlink() and name not in known:
            target = Path(os.path.realpath(path))  # which ends at a loop too, on every Python
            if not target.is_relative_to(release.resolve()):
                yield f"{name}: leads out of the release"
            elif not target.is_file():
                yield f"{name}: leads nowhere"
        elif not path.is_dir() and name not in known:
            yield f"{name}: does not belong to the release"


def copy(source: Path, target: Path, mode: int) -> None:
    """Copy a regular file to a place where nothing is; OSError when the source is a link."""
    with os.fdopen(open_plain(source), "rb") as reader, target.open("xb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)
        os.fchmod(writer.fileno(), mode)
        writer.flush()
        os.fsync(writer.fileno())


def copy_build(build: Path, programs: list[str], target: Path) -> list[str]:
    """Copy programs, libraries and their soname links; returns the names of the real files."""
    if (build / "bin").is_symlink() or not (build / "bin").is_dir():
        raise RefusedError(f"{build / 'bin'} is no directory of its own")
    for folder in FOLDERS:
        (target / folder).mkdir(mode=0o755)
    names = []
    for program in programs:
        copy(build / "bin" / program, target / "bin" / program, 0o755)
        names.append(f"bin/{program}")
    for entry in sorted((build / "bin").iterdir()):
        if not LIBRARY.match(entry.name):
            continue
        if entry.is_symlink():
            leads_to = os.readlink(entry)  # noqa: PTH115 - the text as it stands
            if not LIBRARY.match(leads_to):
                raise RefusedError(f"the link {entry.name} leads to {leads_to[:200]!r}, not to a library beside it")
            (target / "lib" / entry.name).symlink_to(leads_to)
        elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            copy(entry, target / "lib" / entry.name, 0o755)
            names.append(f"lib/{entry.name}")
    return names


def copy_toolkit(linked: dict[str, str], prefix: Path, target: Path) -> list[str]:
    """Copy what the programs link of the toolkit, each under the name that they ask for.

    ``linked`` is name -> path as the loader finds it; what does not lie below ``prefix`` is the system's or the
    driver's, and stays there. Returns the names of the files.
    """
    inside, names = prefix.resolve(), []
    for name, path in sorted(linked.items()):
        source = Path(path).resolve()
        if not source.is_relative_to(inside):
            continue
        if not LIBRARY.match(name):
            raise RefusedError(f"the toolkit's library {name[:200]!r} has a name that is none of a library")
        copy(source, target / "lib" / name, 0o755)
        names.append(f"lib/{name}")
    return names
