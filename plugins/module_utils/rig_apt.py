"""Calling apt and dpkg, and reading what they say: an index, a simulation, a refused key."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    # Restarting services is ours to decide, not a hook's.
    "NEEDRESTART_SUSPEND": "1",
}
TRANSACTION_S = 7200
TAIL_LINES = 25
_TELLING = re.compile(
    r"^(E:|Err:|Error:|dpkg: error|make.*Error|\s.*:Depends:|\s*[a-z0-9.+-]+ : )"
    r"|Sub-process|because|not signed|SHA1|NO_PUBKEY"
)
_KEY_REFUSED = re.compile(r"SHA1|not bound|NO_PUBKEY|Policy rejected|is not signed|Missing key|EXPKEYSIG|BADSIG")
_ACTION = re.compile(r"^(?P<what>Inst|Remv) (?P<name>\S+)(?: \[(?P<old>[^\]]*)\])?(?: \((?P<new>\S+))?")
_DEPENDENCY = re.compile(r"([a-z0-9][a-z0-9+.-]+)")


class FailedError(Exception):
    """A tool failed or must not go on; the text says it to the user."""


def call(command: list[str], timeout: int = TRANSACTION_S) -> tuple[int, str]:
    """Exit status and everything said, in order."""
    try:
        done = subprocess.run(  # noqa: S603 - apt, dpkg and dkms, with names and versions that were checked
            command,
            env={**ENVIRONMENT, **{key: value for key, value in os.environ.items() if key.endswith("_proxy")}},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError:
        return 127, f"{command[0]}: not installed"
    return done.returncode, done.stdout.decode("utf-8", "replace")


def words(text: str) -> str:
    """The lines that say what is wrong; the end of it all when there are none."""
    lines = text.strip().splitlines()
    # A warning only says again what the error behind it says.
    telling = list(dict.fromkeys(line.strip() for line in lines if _TELLING.search(line) and line[:2] != "W:"))
    return "\n".join(telling[-TAIL_LINES:] or lines[-TAIL_LINES:])


def key_refused(text: str) -> bool:
    """Whether apt's verifier did not take the repository's signature or key."""
    return _KEY_REFUSED.search(text) is not None


@dataclass(frozen=True)
class Offer:
    """One version of a package in an index."""

    version: str
    depends: frozenset[str]
    """Every name in Depends and Pre-Depends, alternatives included."""


Index = dict[str, list[Offer]]


def read_index(texts: Iterable[str], wanted: Iterable[str] | None = None) -> Index:
    """Packages indexes as data; only the names for which ``wanted`` has a place, all when it is None."""
    index: Index = {}
    keep = None if wanted is None else set(wanted)
    for text in texts:
        for stanza in text.split("\n\n"):
            fields = dict(_fields(stanza))
            name, version = fields.get("Package", ""), fields.get("Version", "")
            if not name or not version or (keep is not None and name not in keep):
                continue
            asked = f"{fields.get('Depends', '')},{fields.get('Pre-Depends', '')}"
            names = {match[1] for part in re.split(r"[,|]", asked) if (match := _DEPENDENCY.match(part.strip()))}
            index.setdefault(name, []).append(Offer(version, frozenset(names)))
    return index


def _fields(stanza: str) -> Iterator[tuple[str, str]]:
    for line in stanza.splitlines():
        key, sign, value = line.partition(": ")
        if sign and line[:1] not in " \t":
            yield key, value.strip()


@dataclass(frozen=True)
class Simulation:
    """What apt-get -s says that it would do."""

    installs: dict[str, str] = field(default_factory=dict)
    """Name -> new version."""
    removes: tuple[str, ...] = ()


def read_simulation(text: str) -> Simulation:
    """The lines that apt-get -s prints for dpkg's steps."""
    installs: dict[str, str] = {}
    removes: list[str] = []
    for line in text.splitlines():
        match = _ACTION.match(line)
        if match is None:
            continue
        if match["what"] == "Inst":
            installs[match["name"]] = match["new"] or ""
        else:
            removes.append(match["name"])
    return Simulation(installs, tuple(name for name in removes if name not in installs))


def options(state: Path, sources: Path, preferences: Path | None = None) -> list[str]:
    """apt's options for a state of its own below ``state``, which reads only the lists in ``sources``.

    dpkg's own status stays the host's, so that a simulation knows what is installed.
    """
    private = {
        "Dir::State": state / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": state / "cache",
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": sources,
        "Acquire::GzipIndexes": "false",
        "Acquire::Languages": "none",
        "Acquire::PDiffs": "false",
        "APT::Update::Error-Mode": "any",
    }
    if preferences is not None:
        private["Dir::Etc::preferencesparts"] = preferences
    return [part for key, value in private.items() for part in ("-o", f"{key}={value}")]
