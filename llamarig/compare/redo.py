"""What changed, and what is done again because of it: the table of ``llamarig rebuild``.

Built on the comparison, which decides; here it is only told by cause. What an engine is built from is in its release
id, and neither kernel nor driver is: their change builds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llamarig.compare.action import Action
from llamarig.compare.driver import REBOOT, upstream_version, without_module
from llamarig.compare.reboot import newest
from llamarig.compare.text import printable
from llamarig.compare.view import View, as_map, as_text

_INPUTS = {
    "commit": "commit",
    "source": "source",
    "patches": "patches",
    "toolkit": "CUDA toolkit",
    "architectures": "architectures",
    "backend": "backend",
    "cmake": "build options",
    "targets": "targets",
    "compiler": "compiler",
    "distribution": "distribution",
    "openssl": "openssl",
    "build-number": "build number",
}
"""Key of a release's inputs -> what users call it."""
_TOLD = {"driver", "toolkit", "release", "switch", "record"}
"""Kinds of actions that the rows of this table tell already."""
_REDONE = {
    "package": "it is installed",
    "user": "it is made",
    "directory": "it is made",
    "model": "it is fetched",
    "credential": "the key file is written",
    "file": "it is written",
    "service": "it is started",
    "port": "somebody frees it",
    "power": "it is set",
}


@dataclass(frozen=True, slots=True)
class Change:
    """A row: what changed, from what to what, what is done again, and why that and no more."""

    what: str
    before: str
    after: str
    redone: str
    why: str

    def to_json(self) -> dict[str, str]:
        """The documented form."""
        return {"what": self.what, "from": self.before, "to": self.after, "redone": self.redone, "why": self.why}


def changes(view: View, actions: Sequence[Action]) -> list[Change]:
    """Every row, causes of a build first. Empty when nothing changed."""
    found = [*_kernel(view), *_driver(view, actions), *_engine(view, actions)]
    for action in actions:
        if action.kind in _TOLD:
            continue
        redone = _REDONE.get(action.kind, "it is mended")
        restarts = f"; {', '.join(action.restarts)} restarts" if action.restarts else ""
        found.append(
            Change(
                f"{action.kind} {action.subject}",
                action.observed or "-",
                action.expected or "-",
                redone + restarts,
                action.reason,
            )
        )
    return found


def _kernel(view: View) -> Iterator[Change]:
    wanted, seen = view.wanted.driver, view.part("driver")
    kernel, running = newest(as_map(seen.get("kernels"))), as_text(view.observed.get("kernel")) or ""
    if wanted is None or not kernel or kernel == running:
        return
    lacks = kernel in without_module(wanted, seen)
    yield Change(
        "kernel",
        printable(running),
        printable(kernel),
        ("the driver's module for it, then " if lacks else "") + "a reboot",
        "a module is built for one kernel; the engine is built for none",
    )


def _driver(view: View, actions: Sequence[Action]) -> Iterator[Change]:
    wanted, seen = view.wanted.driver, view.part("driver")
    mine = [action for action in actions if action.kind == "driver"]
    if not mine:
        return
    if wanted is None:
        yield Change("driver", "held and pinned", "none", "holds, pin and lists go, its packages stay", mine[0].reason)
        return
    versions = {
        upstream_version(as_text(as_map(entry).get("version")) or "")
        for name, entry in as_map(seen.get("packages")).items()
        if name.partition(":")[0] in wanted.packages
    }
    only_reboot = all(action.subject == REBOOT for action in mine)
    before = as_text(seen.get("loaded")) if only_reboot else ", ".join(sorted(versions))
    yield Change(
        "driver",
        printable(before) or "none",
        wanted.version,
        "a reboot" if only_reboot else "its packages and modules, then a reboot where another one runs",
        f"{mine[0].reason}; no release is built from a driver, so 0 compile jobs",
    )


def _engine(view: View, actions: Sequence[Action]) -> Iterator[Change]:
    """What of a release's inputs differs from those of the one that runs."""
    release = view.wanted.release
    built = not any(action.kind == "release" for action in actions)
    current = (as_text(view.observed.get("current")) or "").removeprefix("releases/")
    if current == release.id and built:
        return
    redone = f"nothing is built: release {release.id} is there and is switched to" if built else "the engine is built"
    if not built and release.artifact is not None:
        redone = "nothing is built: the engine is copied from the controller"
    elif not built and release.elsewhere:
        redone = f"the engine is built {release.elsewhere}, then copied"
    inputs = as_map(as_map(view.release(current).get("provenance")).get("inputs"))
    if current == release.id or not inputs:
        why = next((action.reason for action in actions if action.kind in ("release", "switch")), "")
        yield Change("engine", printable(current) or "none", release.id, redone, why)
        return
    for key, name in _INPUTS.items():
        if inputs.get(key) != release.inputs.get(key):
            before, after = _words(inputs.get(key), release.inputs.get(key))
            yield Change(name, before, after, redone, "it is part of the release id")


def _words(before: object, after: object) -> tuple[str, str]:
    """Both values, of mappings and lists only what differs."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [key for key in sorted({*before, *after}, key=str) if before.get(key) != after.get(key)]
        return _joined(before, keys), _joined(after, keys)
    if isinstance(before, list) and isinstance(after, list):
        return _listed([each for each in before if each not in after]), _listed(
            [each for each in after if each not in before]
        )
    return _one(before), _one(after)


def _joined(values: Mapping[str, Any], keys: Sequence[str]) -> str:
    return ", ".join(f"{printable(key)}={_one(values[key])}" for key in keys if key in values) or "-"


def _listed(values: Sequence[object]) -> str:
    return ", ".join(_one(value) for value in values) or "-"


def _one(value: object) -> str:
    text = printable(str(value)) if value not in (None, "") else "-"
    return text if len(text) <= _LONGEST else text[:_HASH]


_LONGEST, _HASH = 60, 12
