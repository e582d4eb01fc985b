"""The record: whether the host still knows what was applied to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llamarig.compare.action import Action
from llamarig.compare.learn import pinned
from llamarig.compare.text import printable
from llamarig.compare.view import View, as_map
from llamarig.render.wanted import RECORD, RELEASES

_BROKEN = {
    "absent": "is not there",
    "edited": "was edited: its digest does not hold",
    "unreadable": "cannot be read",
}


def record(view: View, others: Sequence[Action]) -> Iterator[Action]:
    """An apply that was interrupted, a record that is missing or broken, or, beside no other action, an outdated one.

    Every apply that does something writes the record anew, so what the record
    says is an action of its own only when there is no other.
    """
    state = view.observed.get("record-state")
    left = view.observed.get("unfinished")
    if left is not None:
        yield Action(
            "record", RECORD, interrupted(view), expected="an apply that was proven", observed="an unfinished one"
        )
        return
    if state != "ok":
        word = state if isinstance(state, str) else "unknown"
        yield Action("record", RECORD, _BROKEN.get(word, "was not looked at"), expected="ok", observed=word)
        return
    wrong = [] if others else _outdated(view)
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        yield Action("record", RECORD, wrong[0] + more, expected="what is on the host", observed=wrong[0])


def interrupted(view: View) -> str:
    """What is known of an apply that has held a state to go back to and has not finished."""
    left, lock = view.part("unfinished"), view.part("lock")
    when, who = printable(left.get("at")), printable(left.get("from"))
    if left.get("run") and lock.get("run") == left.get("run"):
        return f"an apply of {when} from {who} has not been proven: it is under way, or was interrupted"
    return f"an apply of {when} from {who} was interrupted before it was proven"


def _outdated(view: View) -> list[str]:
    wrong: list[str] = []
    for key, wanted in (("host", view.wanted.host), ("release", view.wanted.release.id)):
        if view.record.get(key) != wanted:
            wrong.append(f"names {key} {printable(view.record.get(key))} instead of {wanted}")
    for card in view.wanted.cards:
        if card.uuid is not None and pinned(view, card) != card.uuid:
            wrong.append(f"does not name {card.uuid} as card {card.name}")
    base = f"{RELEASES}/{view.wanted.release.id}"
    files = as_map(view.release(view.wanted.release.id).get("files"))
    seen = {f"{base}/{path}": entry for path, entry in files.items()}
    seen |= {model.path: view.part("models", model.path) for model in view.wanted.models}
    for path, entry in sorted(seen.items()):
        if as_map(entry).get("type") == "file" and view.recorded(path).get("stat") != as_map(entry).get("stat"):
            wrong.append(f"{printable(path)} has other time stamps than recorded, so it is hashed at every look")
    return wrong
