"""From actions to what the roles walk over: subjects by kind, and the services that restart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llamarig.compare import compare, driver, learn, running
from llamarig.compare.action import ORDER, Action
from llamarig.compare.load import wanted_from_json
from llamarig.compare.view import view_of


@dataclass(frozen=True)
class Decision:
    """What is to be done to one host."""

    actions: tuple[Action, ...]
    todo: dict[str, list[str]]
    """Kind -> subjects; with ``full`` every kind is there with ``*``, which means all of its subjects."""
    restarts: tuple[str, ...]
    """Services that are started or restarted, in the order of the wanted state."""
    stuck: tuple[str, ...] = ()
    """What no apply can mend: an apply that has something to do fails with it before anything is touched."""
    learned: dict[str, Any] | None = None
    """The wanted state with the UUIDs of cards that the look has told, where the spec leaves them open."""

    def to_json(self) -> dict[str, Any]:
        """As the playbooks see it."""
        return {
            "actions": [action.to_json() for action in self.actions],
            "todo": self.todo,
            "restarts": list(self.restarts),
            "stuck": list(self.stuck),
            "learned": self.learned,
        }


def restarts_of(wanted: dict[str, Any], actions: list[Action]) -> tuple[str, ...]:
    """The wanted services that the actions start or restart; each is named once."""
    named = {service for action in actions for service in action.restarts}
    return tuple(service["name"] for service in wanted["services"] if service["name"] in named)


def decide(wanted: dict[str, Any], observed: dict[str, Any], *, full: bool = False) -> Decision:
    """Compare and sort. ``full`` walks every role over everything; it restarts no more than the actions do."""
    given = wanted_from_json(wanted)
    known = learn(given, observed)
    actions = list(compare(known, observed))
    todo: dict[str, list[str]] = {}
    for kind in ORDER:
        subjects = [action.subject for action in actions if action.kind == kind]
        if full and kind != "port":
            subjects.append("*")
        if subjects:
            todo[kind] = subjects
    view = view_of(known, observed)
    stuck = (*driver.stuck(view), *running.stuck(view))
    learned = None if known == given else known.to_json()
    return Decision(tuple(actions), todo, restarts_of(wanted, actions), stuck, learned)
