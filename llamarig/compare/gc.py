"""What may leave a host: all that llamarig has put there and that nothing names and nobody uses.

Pure: the same documents give the same answer. The rule is one: what the spec, the link, the record, a kept state or a
running process names stays, with that as its reason; what is left goes, with what it is as the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from llamarig.compare.kept import interrupted
from llamarig.compare.machine import refuse_another
from llamarig.compare.text import printable
from llamarig.compare.view import View, as_int, as_map, as_text, as_texts
from llamarig.errors import ExitCode, RigError
from llamarig.render.wanted import RELEASES, TOOLKITS, Wanted

SCHEMA = 1
KINDS = ("release", "toolkit", "model", "link", "part", "build", "job", "packages", "leftover", "build-cache", "user")
"""In the order in which they are told."""
UNDER_WORK = {"part", "build", "job", "packages", "leftover", "build-cache"}
"""Kinds that a run may be at work on."""
_SAYERS = {
    "wanted": "the wanted state that was applied names it",
    "proven": "it belongs to the state that was proven last",
    "former": "rollback goes back to it",
    "held": "an apply holds it to go back to",
}
_WHAT = {
    "release": "no spec, record or way back names it",
    "toolkit": "no spec, record or way back names it",
    "model": "no spec, record or way back names it",
    "link": "what it leads to goes or is gone",
    "part": "half a file that nobody waits for",
    "build": "what a build that is over has left",
    "job": "what a download that is over has left",
    "packages": "packages of an apply that broke off",
    "leftover": "what was begun and never finished",
    "build-cache": "asked for with --build-cache",
    "user": "its service is gone, and it has no process and no file",
}


@dataclass(frozen=True, slots=True)
class Thing:
    """Something of ours on the host, and why it goes or stays."""

    kind: str
    path: str
    """For a user its name."""
    bytes: int
    """On the disk, given back when it goes."""
    reason: str
    id: tuple[int, ...] = ()
    """Device and inode, of a user its number: what goes must still be the same."""

    @property
    def key(self) -> tuple[str, str]:
        """What names it in a listing."""
        return self.kind, self.path

    def to_json(self) -> dict[str, Any]:
        """As the module takes it and ``gc --json`` prints it."""
        told = {"kind": self.kind, "path": self.path, "bytes": self.bytes, "reason": self.reason}
        return told | {"id": list(self.id)}


@dataclass(frozen=True)
class Sweep:
    """What goes, what stays, and what lies there that is none of ours."""

    gone: tuple[Thing, ...]
    kept: tuple[Thing, ...]
    unknown: tuple[tuple[str, str], ...] = ()
    """Path, and what is there."""

    def to_json(self) -> dict[str, Any]:
        """As the playbook and ``gc --json`` have it."""
        return {
            "gone": [thing.to_json() for thing in self.gone],
            "kept": [thing.to_json() for thing in self.kept],
            "unknown": [{"path": path, "what": what} for path, what in self.unknown],
        }


@dataclass
class Named:
    """Path or name -> who says that it stays; the first one that says so is told."""

    reasons: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, kind: str, names: list[str], reason: str) -> None:
        """Let things of a kind stay."""
        for name in names:
            self.reasons.setdefault((kind, name), reason)


def refuse(view: View, listing: Mapping[str, Any]) -> None:
    """Raise :class:`RigError` where it cannot be said what must stay: nothing is removed then."""
    refuse_another(view)
    host = view.wanted.host
    fix = f"run `llamarig apply {host}` first; then run gc again"
    state = view.observed.get("record-state")
    if view.observed.get("unfinished") is not None:
        raise _refused("an apply of this host is not finished", host, interrupted(view), fix)
    if state != "ok" or as_map(as_map(listing.get("names")).get("record")).get("state") not in ("ok", None):
        why = {
            "absent": "there is none: llamarig was never applied to this host, or its record was removed",
            "edited": "it was edited: its digest does not hold",
        }.get(str(state), "it cannot be read")
        raise _refused("the record does not tell what must stay", host, why, fix)
    if listing.get("schema") != SCHEMA or not isinstance(listing.get("things"), list):
        raise _refused("the list of what lies on the host is malformed", host, fix="run the command again")
    if unreadable := as_text(listing.get("unreadable")):
        fix = (
            f"look at that file; `llamarig apply {host}` mends the link and the record, and where it is a kept state, "
        )
        raise _refused("what must stay cannot be read", host, printable(unreadable, 600), fix + "remove that file")
    if blind := listing.get("blind"):
        first = [_process(each) for each in blind[:3]] if isinstance(blind, list) else ["one of them"]
        more = f" and {len(blind) - 3} more" if len(blind) > 3 else ""  # noqa: PLR2004 - those that are named
        fix = "let llamarig be root on the host, with the right to look into processes (CAP_SYS_PTRACE)"
        why = f"what would go might be used by {', '.join(first)}{more}"
        raise _refused("not every process can be looked into", host, why, fix)


def _refused(what: str, host: str, why: str = "", fix: str = "") -> RigError:
    return RigError(what=what, where=host, why=why, fix=fix, code=ExitCode.HOST_FAILED)


def named(wanted: Wanted, listing: Mapping[str, Any]) -> Named:
    """Everything that must stay because somebody names it."""
    found = Named()
    said = as_map(listing.get("names"))
    found.add("release", [f"{RELEASES}/{said.get('current')}"], "`current` leads to it")
    found.add("release", [f"{RELEASES}/{wanted.release.id}"], "the spec wants it")
    found.add("model", [model.path for model in wanted.models], "the spec wants it")
    found.add("link", [link for model in wanted.models for link in model.links], "the spec wants it")
    found.add("user", [user.name for user in wanted.users], "the spec wants it")
    version = as_text(wanted.release.inputs.get("toolkit"))
    prefixes = [wanted.toolkit.prefix] if wanted.toolkit is not None else []
    found.add("toolkit", [*prefixes, *([f"{TOOLKITS}/{version}"] if version else [])], "the spec wants it")
    _said(found, as_map(said.get("record")), "the record names it")
    for sayer, reason in _SAYERS.items():
        _said(found, as_map(said.get(sayer)), reason)
    return found


def _said(found: Named, part: Mapping[str, Any], reason: str) -> None:
    found.add("release", [f"{RELEASES}/{name}" for name in as_texts(part.get("releases"))], reason)
    for kind, key in (("model", "models"), ("link", "links"), ("user", "users"), ("toolkit", "toolkits")):
        found.add(kind, as_texts(part.get(key)), reason)


def sweep(wanted: Wanted, listing: Mapping[str, Any], *, busy: str = "", build_cache: bool = False) -> Sweep:
    """Decide. ``busy`` is who holds the host's lock: what a run may be at work on stays then."""
    things = sorted(_things(listing), key=lambda each: (KINDS.index(each["kind"]), each["path"]))
    reasons = _reasons(wanted, listing, things, busy, build_cache)
    kept = {key for key, reason in reasons.items() if reason}
    # A bind mount, or a second name, may show a thing that stays at another path as well.
    same = {each["id"]: each["path"] for each in things if (each["kind"], each["path"]) in kept}
    called = {each["target"]: "/".join(each["path"].split("/")[-2:]) for each in things if each["kind"] == "link"}
    gone: list[Thing] = []
    stays: list[Thing] = []
    for each in things:
        key = (each["kind"], each["path"])
        reason = reasons[key]
        if not reason and each["kind"] not in ("user", "link") and each["id"] in same:
            reason = f"it is the same as {same[each['id']]}"
        name = f" (it was {printable(called[each['path']])})" if each["path"] in called else ""
        thing = Thing(*key, each["bytes"], reason or _WHAT[each["kind"]] + name, each["id"])
        (stays if reason else gone).append(thing)
    unknown = [as_map(each) for each in listing.get("unknown") or []]
    told = tuple((str(each.get("path")), str(each.get("what"))) for each in unknown)
    return Sweep(tuple(gone), tuple(stays), told)


def _things(listing: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The things of a listing that are well formed; another one is not ours to judge, and stays."""
    for each in listing["things"]:
        entry = as_map(each)
        kind, path = as_text(entry.get("kind")), as_text(entry.get("path"))
        identity = entry.get("id")
        numbers = [as_int(number) for number in identity] if isinstance(identity, list) else [None]
        if kind in KINDS and path and None not in numbers:
            yield {
                "kind": kind,
                "path": path,
                "bytes": as_int(entry.get("bytes")) or 0,
                "id": tuple(numbers),
                "odd": as_text(entry.get("odd")) or "",
                "used": entry.get("used"),
                "target": as_text(entry.get("target")) or "",
            }


def _reasons(
    wanted: Wanted, listing: Mapping[str, Any], things: list[dict[str, Any]], busy: str, build_cache: bool
) -> dict[tuple[str, str], str]:
    """Why each thing stays; empty for what goes."""
    names = named(wanted, listing).reasons
    there = {each["path"] for each in things}
    # Whoever uses a model by its name uses the model.
    used = {each["target"]: each["used"] for each in things if each["kind"] == "link" and each["used"] is not None}
    found: dict[tuple[str, str], str] = {}
    for each in things:
        kind, path = each["kind"], each["path"]
        reason = names.get((kind, path), "")
        reason = reason or _user(each["used"]) or _user(used.get(path) if kind == "model" else None)
        reason = reason or _waits(wanted, each, there, build_cache)
        reason = reason or (f"{busy} holds the host's lock" if busy and kind in UNDER_WORK else "")
        found[kind, path] = reason or printable(each["odd"], 300) * bool(each["odd"])
    for each in things:
        if each["kind"] == "link" and found.get(("model", each["target"])):
            found["link", each["path"]] = found["link", each["path"]] or "it leads to a model that stays"
    return found


def _user(used: object) -> str:
    return "" if used is None else f"{_process(used)} uses it"


def _process(user: object) -> str:
    process = as_map(user)
    return f"process {as_int(process.get('pid')) or '?'} ({printable(process.get('command'))})"


def _waits(wanted: Wanted, each: Mapping[str, Any], there: set[str], build_cache: bool) -> str:
    """Why something half done stays: the next apply goes on from it."""
    kind, path = each["kind"], each["path"]
    name = path.rpartition("/")[2]
    release = f"{RELEASES}/{wanted.release.id}" in there
    if kind == "build-cache" and not build_cache:
        return "it makes builds quick; --build-cache removes it"
    if kind == "build" and name == wanted.release.id and not release:
        return "the spec wants this release, and it is not built yet"
    if kind == "part" and name.partition(".")[0] in _awaited(wanted, there, release):
        return "the spec wants it: apply goes on from here"
    if kind == "job" and any(name == f"llamarig-fetch-{sha256[:16]}" for sha256 in _awaited(wanted, there, release)):
        return "the spec wants what it fetches: apply goes on from here"
    return ""


def _awaited(wanted: Wanted, there: set[str], release: bool) -> set[str]:
    """sha256 of everything that the spec wants and that has not arrived."""
    found = {model.sha256 for model in wanted.models if model.path not in there}
    if not release:
        found |= {wanted.release.source.get("sha256", ""), *(patch.sha256 for patch in wanted.release.patches)}
        found |= {wanted.release.artifact.sha256} if wanted.release.artifact is not None else set()
    if wanted.toolkit is not None and wanted.toolkit.prefix not in there:
        found |= {wanted.toolkit.sha256, *wanted.toolkit.wheels.values()}
    return found - {""}


def agreed(plan: Sweep, yes: list[str] | None) -> Sweep:
    """The same where only what somebody has said yes to goes (``KIND PATH``); None: no question was asked."""
    if yes is None:
        return plan
    said = set(yes)
    late = [thing for thing in plan.gone if " ".join(thing.key) not in said]
    kept = [Thing(*thing.key, thing.bytes, "it came after the question", thing.id) for thing in late]
    return Sweep(tuple(thing for thing in plan.gone if thing not in late), (*plan.kept, *kept), plan.unknown)


def differs(
    before: Mapping[str, Any], after: Mapping[str, Any], removed: list[tuple[str, str]], was: View, now: View
) -> list[str]:
    """What is not as it should be after a removal: the rest must be there, what went must not, services must run on.

    ``before`` and ``after`` are listings, ``was`` and ``now`` observations.
    """
    old = {(each["kind"], each["path"]): each["id"] for each in _things(before)}
    new = {(each["kind"], each["path"]): each["id"] for each in _things(after)}
    wrong = [f"{path} is still there" for kind, path in removed if (kind, path) in new]
    wrong += [
        f"{path} is gone, though it was to stay"
        for (kind, path), identity in old.items()
        if (kind, path) not in removed and new.get((kind, path)) != identity and kind not in UNDER_WORK
    ]
    for unit, seen in was.part("units").items():
        first, second = as_map(seen), now.part("units", unit)
        if first.get("active") == "active" and (
            second.get("active") != "active" or second.get("main-pid") != first.get("main-pid")
        ):
            wrong.append(f"{printable(unit)} does not run on as it did")
    return wrong
