"""What drift, diff and status share: look at the chosen hosts and compare each with its spec."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from llamarig.cli import host_error
from llamarig.compare import Action, compare, learn
from llamarig.errors import ExitCode, RigError
from llamarig.render.wanted import Wanted


@dataclass(frozen=True)
class Looked:
    """One host: what is wanted, what was seen and what differs, or why that is not known."""

    host: str
    wanted: Wanted | None = None
    observed: dict[str, Any] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()
    error: RigError | None = None

    @property
    def code(self) -> ExitCode:
        """Of a command that complains about every difference."""
        if self.error is not None:
            return self.error.code
        return ExitCode.FINDING if self.actions else ExitCode.OK

    def error_json(self) -> dict[str, str]:
        """The error as JSON; only where there is one."""
        return host_error.error_json(self.error or RigError(what=""))


def look(
    hosts: list[str], all_: bool, verb: str, *, deep: bool = False, become_password_file: str | None = None
) -> list[Looked]:
    """The chosen hosts in their order; one that cannot be planned, reached or understood carries its error.

    ``become_password_file`` is that of hosts whose spec names none.
    """
    from llamarig.cli.choose import choose
    from llamarig.cli.context import project_root
    from llamarig.converge.observe import observe_hosts
    from llamarig.converge.wanted import wanted_for

    chosen = choose(hosts, all_, verb)
    wanted: dict[str, Wanted] = {}
    errors: dict[str, RigError] = {}
    for loaded in chosen:
        try:
            wanted[loaded.host] = wanted_for(project_root(), loaded)
        except RigError as error:
            errors[loaded.host] = error
    ready = [loaded for loaded in chosen if loaded.host in wanted]
    password = become_password_file
    seen = observe_hosts(project_root(), ready, wanted, deep=deep, become_password_file=password) if ready else {}
    return [
        Looked(loaded.host, error=errors[loaded.host])
        if loaded.host in errors
        else judged(wanted[loaded.host], seen[loaded.host])
        for loaded in chosen
    ]


def judged(wanted: Wanted, seen: dict[str, Any] | RigError) -> Looked:
    """The comparison of one host, or the error that stands in its place."""
    if isinstance(seen, RigError):
        return Looked(wanted.host, wanted, error=seen)
    try:
        known = learn(wanted, seen)
        return Looked(wanted.host, known, seen, tuple(compare(known, seen)))
    except RigError as error:
        return Looked(wanted.host, wanted, error=error)


def emit(documents: list[dict[str, Any]]) -> None:
    """One host's document as it is, those of several under ``hosts``."""
    from llamarig.cli.context import emit_json

    emit_json(documents[0] if len(documents) == 1 else {"hosts": documents})


def complain(looked: Looked) -> None:
    """The host's error on standard error."""
    if looked.error is not None:
        host_error.complain(looked.host, looked.error)
