"""What a verb of a rollout must not do: told before anybody is asked, and again under the fleet's lock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from llamarig.errors import RigError
from llamarig.fleet.rollout import journal, places, state
from llamarig.fleet.rollout.back import changed
from llamarig.fleet.rollout.pin import overlay_digest
from llamarig.fleet.rollout.state import State
from llamarig.spec.overlay import Overlay

_UNFINISHED = (state.RUNNING, state.PAUSED, state.ROLLING_BACK)
_NAMED = 5
"""Hosts that a message names."""


def may(root: Path, verb: str, name: str | None, overlay: Overlay | None = None) -> State:
    """The rollout that ``resume``, ``abort`` or ``rollback`` would work on; :class:`RigError` when it must not."""
    place = places.find(root, name)
    told = State.read(place)
    refuse_unbegun(told, place)
    between = [host for host, known in told.hosts.items() if known.between]
    if verb == "rollback":
        halfway = [host for host in between if told.hosts[host].halfway]
        if told.status == state.BACK and not changed(told):
            raise over(told)
        if told.status != state.ROLLING_BACK and not changed(told) and not halfway:
            raise _nothing_to_take_back(told)
        _refuse_since(root, place, {*changed(told), *between})
    elif told.status in state.OVER and (verb == "abort" or not between):
        raise over(told)
    elif told.status != state.ROLLING_BACK:
        _refuse_newer(root, place, verb)
    _refuse_other_overlay(told, verb, overlay)
    return told


def _refuse_other_overlay(told: State, verb: str, overlay: Overlay | None) -> None:
    """What was laid on a spec at the start says where that host is and what it becomes: it stays so to the end."""
    begun = told.options.get("overlay") or {}
    if begun.get("digest") == (None if overlay is None else overlay_digest(overlay)):
        return
    if not begun:
        fix = f"llamarig rollout {verb} {told.id}, without --overlay"
        raise RigError("this rollout was begun without an overlay", told.id, fix=fix)
    raise RigError(
        what="this rollout was begun with another overlay" if overlay else "this rollout was begun with an overlay",
        where=told.id,
        why=f"the values of {begun.get('path')} stood in for those of a spec",
        fix=f"llamarig --overlay {begun.get('path')} rollout {verb} {told.id}, with that file as it was",
    )


def _refuse_newer(root: Path, place: Path, verb: str) -> None:
    newest = places.find(root, None)
    if place != newest:
        raise RigError(
            what="a newer rollout has come since",
            where=place.name,
            why="only the newest goes on forwards: what it was begun with came later",
            fix=f"llamarig rollout {verb} {newest.name}",
        )


def _refuse_since(root: Path, place: Path, ours: set[str]) -> None:
    """Refuse a way back where a newer rollout has changed one of the hosts, or is about to."""
    for newer in places.known(root):
        if newer.name <= place.name or not (told := State.read(newer)).records:
            continue
        if theirs := sorted(ours & set(_touched(told))):
            words = "is not over, and changes" if told.status in _UNFINISHED else "has changed"
            raise RigError(
                what=f"a newer rollout {words} {_some(theirs)}",
                where=place.name,
                why=f"{newer.name} came after it: going back would undo that one instead",
                fix=f"see llamarig rollout status {newer.name}; to have what ran before both, put the specs back as "
                "they were and begin a new rollout",
            )


def _touched(told: State) -> Iterator[str]:
    """Hosts that a rollout has changed, even when they are back, and those that it still will."""
    going = told.status in _UNFINISHED
    for name, host in told.hosts.items():
        began = host.done_at is not None or host.between or host.phase == state.FAILED
        if began or (going and host.phase not in state.SETTLED):
            yield name


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def to_take_back(told: State) -> str:
    """What a way back is about to do, in words: which rollout, how many hosts, and their names."""
    begun = told.status in (state.ROLLING_BACK, state.BACK)
    halfway = [name for name, host in told.hosts.items() if host.halfway and host.done_at is None and not begun]
    hosts = [*halfway, *changed(told)]
    count = "1 host goes" if len(hosts) == 1 else f"{len(hosts)} hosts go"
    return f"the rollout {told.id} is taken back: {count} back ({_some(hosts)}), and services are restarted"


def reboots_none(told: State) -> list[tuple[str, str]]:
    """What to say where reboots were asked for and this rollout makes none any more, each with its fix."""
    if told.status not in (*state.OVER, state.ROLLING_BACK):
        return []
    words = "is on its way back" if told.status == state.ROLLING_BACK else f"is over ({told.status})"
    return [
        (
            f"--reboot does nothing here: the rollout {told.id} {words}, and reboots nobody any more",
            "llamarig rebuild HOST, for each host that needs one",
        )
    ]


def _nothing_to_take_back(told: State) -> RigError:
    waits = any(host.between for host in told.hosts.values())
    but = ", and one that waits for a reboot runs what it ran" if waits else ""
    return RigError(
        what="nothing to take back",
        where=told.id,
        why="this rollout has changed no host" + but,
        fix="`llamarig rollout status` shows the newest; name the one that changed hosts, as the directories in "
        f"{places.DIRECTORY}/ are named",
    )


def refuse_unfinished(root: Path) -> None:
    """Refuse to begin while another rollout is not over."""
    found = places.known(root)
    if not found:
        return
    # An older one may be on its way back; what was written last is that one then.
    for place in dict.fromkeys((found[-1], max(found, key=_written))):
        told = State.read(place)
        if told.records and told.status in _UNFINISHED:
            words = {state.PAUSED: "is paused", state.ROLLING_BACK: "is on its way back"}
            raise RigError(
                what=f"the rollout {told.id} {words.get(told.status, 'was cut off')}",
                where=str(root),
                fix=f"go on with it: llamarig rollout resume {told.id}"
                + ("" if told.status == state.ROLLING_BACK else f"; or end it: llamarig rollout abort {told.id}"),
            )


def _written(place: Path) -> int:
    return (place / journal.FILE).lstat().st_mtime_ns


def refuse_unbegun(told: State, place: Path) -> None:
    """Refuse one that has no record yet."""
    if not told.records:
        raise RigError(
            "this rollout was cut off before it began", place.name, fix="begin a new one; no host was touched"
        )


def had_its_turn(told: State) -> RigError:
    """Why one that has left hosts for later is not paused."""
    return RigError(
        what="nothing of this rollout runs, so there is nothing to pause",
        where=told.id,
        why=told.reason or f"every host had its turn, and some were left for later: {_some(told.open())}",
        fix=f"llamarig rollout resume {told.id} takes them up again; or begin a new one",
    )


def over(told: State) -> RigError:
    """Why nothing goes on with a rollout that is over."""
    why = f"it is {told.status}" + (f": {told.reason}" if told.reason else "")
    return RigError(
        what="this rollout is over",
        where=told.id,
        why=why,
        fix="begin a new one: hosts that are done cost one look",
    )
