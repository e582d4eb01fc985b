"""The journal of a rollout and the state that it gives, kept together while somebody writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llamarig.errors import RigError
from llamarig.fleet.rollout.journal import Journal, Record
from llamarig.fleet.rollout.state import State

Watch = Callable[[State], None]


class Log:
    """``watch`` sees every new state."""

    def __init__(self, journal: Journal, watch: Watch) -> None:
        self.journal = journal
        self.state = State.fold(journal.records)
        self._watch = watch

    def tell(self, *records: Record) -> None:
        """Write records, then show what they change."""
        if not records:
            return
        before = len(self.journal.records)
        self.journal.append_all(records)
        for record in self.journal.records[before:]:
            self.state.add(record)
        self._watch(self.state)

    def host(self, name: str, phase: str, **words: Any) -> Record:
        """A record of one host, to be told."""
        given = {key.replace("_", "-"): value for key, value in words.items() if value is not None}
        return {"event": "host", "host": name, "phase": phase, **given}


def words(error: RigError | None) -> str:
    """An error in one text: what, and why; what to do is said where it is shown."""
    if error is None:
        return ""
    return f"{error.what}: {error.why}" if error.why else error.what
