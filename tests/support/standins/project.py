"""A project on disk for tests of ``lock``: a spec that leaves open what a test wants, and a way to lock it."""

from __future__ import annotations

from pathlib import Path

from llamarig.converge.locking.files import Finder
from llamarig.converge.locking.lock import lock_hosts
from llamarig.converge.locking.pulls import Pulls
from llamarig.converge.locking.result import Locked
from llamarig.converge.store.shelf import Shelf, silent
from llamarig.spec.load import load_project
from tests.support.gguf_bytes import STRING, Composed

ENGINE = """\
engine:
  commit: 4df29be4f
  build-number: 10454
  source: {archive: engine.tar.gz, sha256: "%s"}   # pinned
  backend: cpu
""" % ("a" * 64)
SERVICES = """\
services:
  chat: {model: smol, context: 4096, listen: {port: 8080}}
"""


def model_bytes(name: str, rows: int = 64) -> bytes:
    """A small whole GGUF file with one tensor, composed byte by byte."""
    composed = Composed().add("general.architecture", STRING, "llama").add("general.name", STRING, name)
    return composed.tensor("token_embd.weight", "F32", 32, rows).bytes()


def spec(models: str, engine: str = ENGINE, head: str = "") -> str:
    """A host spec around the models of a test."""
    top = '# a comment\nschema-version: 1\nhost: box\nos: {distribution: debian, release: "13"}\n'
    return f"{top}{head}{engine}{models}{SERVICES}"


def write_project(root: Path, text: str, fleet: str | None = None) -> Path:
    """Write the spec (and a fleet.yml); the spec's path."""
    folder = root / "inventory"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "box.yml").write_text(text)
    if fleet is not None:
        (folder / "fleet.yml").write_text(fleet)
    return folder / "box.yml"


def lock_project(root: Path, forge_url: str | None = None, offline: bool = False) -> Locked:
    """Lock every host of a project; nothing is written."""
    project = load_project(root)
    finder = Finder(root, Shelf(root / "shelf"), silent, offline)
    try:
        return lock_hosts(root, project.valid(None), finder, Pulls(forge_url or "http://127.0.0.1:9/none"))
    finally:
        finder.close()
