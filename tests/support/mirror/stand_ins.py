"""A mirror that holds nothing but packages of the tests' own, indexed and signed as ``llamarig mirror`` does it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

from llamarig.converge.mirror import apt_index
from llamarig.converge.mirror.openpgp import sign
from llamarig.converge.mirror.place import Place
from tests.support.driver_repository import StandIn, deb

SYSTEM = "debian-13-amd64"


def mirror_of(packages: Sequence[StandIn], root: Path) -> str:
    """Make the mirror in ``root``; the fingerprint of the key of its index."""
    directory = f"debian/{SYSTEM}"
    stanzas: dict[str, str] = {}
    with Place.opened(root) as place:
        for package in packages:
            content = deb(package)
            sha256 = hashlib.sha256(content).hexdigest()
            stanza = f"{package.control()}Size: {len(content)}\nSHA256: {sha256}"
            name = apt_index.file_name(stanza)
            stanzas[name] = stanza
            place.file(f"{directory}/{name}", "package", name, content)
        text = apt_index.packages_text(stanzas)
        index = {"Packages": text.encode(), "Packages.gz": apt_index.compressed(text)}
        at = int(time.time())
        signed = sign(apt_index.release_text(SYSTEM, index, at), "llamarig mirror", at)
        index |= {"InRelease": signed.text.encode(), "key.asc": ("\n".join(signed.key) + "\n").encode()}
        for name, content in index.items():
            place.file(f"{directory}/{name}", "index", name, content)
        place.manifest.debian[SYSTEM] = {
            "directory": directory,
            "key": list(signed.key),
            "fingerprint": signed.fingerprint,
            "packages": [package.name for package in packages],
        }
        place.save()
    return signed.fingerprint
