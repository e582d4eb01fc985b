"""One commit of a git repository as an archive on the shelf.

The commit names the content: git checks every object that it fetches against its
own id, so an archive of the pinned commit needs no hash in the spec.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

from llamarig.converge.store.download import shown
from llamarig.converge.store.shelf import Progress, Shelf, sha256_of
from llamarig.errors import ExitCode, RigError, naming

FULL = 40


def _git(repository: Path, *words: str) -> str:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key == "GIT_SSL_CAINFO"},
        "GIT_DIR": str(repository),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    hardening = ["-c", "transfer.fsckObjects=true", "-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never"]
    try:
        done = subprocess.run(  # noqa: S603 - no shell; the URL stands behind `--`
            ["git", *hardening, *words],  # noqa: S607 - the user's git
            capture_output=True, text=True, errors="replace", check=False, env=environment,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise RigError(what="git is not installed on this machine", fix="install git") from error
    if done.returncode != 0:
        raise RigError(what="git failed", why=done.stderr.strip()[-2000:], code=ExitCode.HOST_FAILED)
    return done.stdout.strip()


def note_path(commit: str) -> str:
    """Where a mirror says which of its files is the archive of a commit, below its directory."""
    return f"git/{commit}.json"


def archive(shelf: Shelf, url: str, commit: str, progress: Progress) -> tuple[str, Path]:
    """The sha256 and path of a .tar of ``commit``, fetched from ``url`` when it is not there yet.

    Raises :class:`RigError` when the commit is not written in full or cannot be fetched.
    """
    where = f"{shown(url)} {commit}"
    if len(commit) != FULL:
        raise RigError(
            what="a commit that is fetched from git must be written in full",
            where=where,
            why=f"it has {len(commit)} of {FULL} digits",
            fix="write all 40 digits in engine.commit; `git rev-parse` in a clone of it prints them",
        )
    note = shelf.partial(f"git archive {commit}").with_suffix(".json")
    for place in shelf.beside:
        held = _held(shelf, place.parent / note_path(commit))
        if held is not None:
            return held
    with shelf.busy(f"git {url}"):
        held = _held(shelf, note)
        if held is not None:
            return held
        progress(f"git fetch {commit[:9]}", 0, 0)
        repository = shelf.root / "git" / hashlib.sha256(url.encode()).hexdigest()[:16]
        try:
            if not (repository / "HEAD").exists():
                repository.mkdir(parents=True, exist_ok=True)
                _git(repository, "init", "--bare", "--quiet", str(repository))
            _git(repository, "fetch", "--quiet", "--depth=1", "--no-tags", "--", url, commit)
            got = _git(repository, "rev-parse", "--verify", f"{commit}^{{commit}}")
            # Attributes of the tree may not leave files out of the archive or rewrite them.
            info = repository / "info"
            info.mkdir(exist_ok=True)
            with naming(info / "attributes"):
                (info / "attributes").write_text("* -export-ignore -export-subst -text -ident\n")
            temporary = shelf.partial(f"git archive {commit}")
            _git(repository, "archive", "--format=tar", f"--prefix={commit}/", f"--output={temporary}", got)
        except RigError as error:
            raise RigError(what="the commit cannot be had from git", where=where, why=error.why or error.what,
                           fix="check engine.source.git and engine.commit", code=error.code) from error  # fmt: skip
        sha256 = sha256_of(temporary)
        path = shelf.put(temporary, sha256, where)
        with naming(note):
            note.write_text(json.dumps({"sha256": sha256}))
        return sha256, path


def _held(shelf: Shelf, note: Path) -> tuple[str, Path] | None:
    try:
        sha256 = str(json.loads(note.read_text())["sha256"])
    except (OSError, ValueError, KeyError):
        return None
    path = shelf.get(sha256)
    return (sha256, path) if path else None
