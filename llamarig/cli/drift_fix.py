"""``llamarig drift --fix``: apply to the hosts that differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llamarig.errors import ExitCode


@dataclass(frozen=True)
class Fixed:
    """What the apply to the hosts that differed came to."""

    hosts: list[str]
    """Those on which something was done, or tried: they are to be looked at again."""
    documents: dict[str, dict[str, Any]]
    """Host -> its part of what ``apply --json`` prints."""
    keys: list[dict[str, str]]
    """Keys that were made, shown once."""
    code: ExitCode


def mend(hosts: list[str], *, deep: bool, yes: bool, quiet: bool, become_password_file: str | None = None) -> Fixed:
    """Show what apply would do to ``hosts``, ask unless ``yes``, and do it.

    ``become_password_file`` is that of hosts whose spec names none.
    Raises what apply raises: :class:`~llamarig.errors.RigErrors` when every host is refused,
    :class:`~llamarig.errors.RigError` when the answer is no.
    """
    from llamarig.cli.apply import ask_and_converge
    from llamarig.cli.apply_view import Progress, describe, say_outcome, say_refused
    from llamarig.cli.choose import choose
    from llamarig.cli.context import out, overlay, project_root
    from llamarig.converge import apply as work

    progress = Progress()
    with work.private_directory() as private:
        options = work.Options(deep=deep, become_password_file=become_password_file, overlay=overlay())
        prepared = work.prepare(project_root(), choose(hosts, False, "drift --fix"), private, options)
        say_refused(prepared)
        work.look(prepared, private)
        if not quiet:
            out().print()
            describe(prepared)
        todo = work.to_converge(prepared, options)
        if todo and not yes:
            _ask(todo)
        ask_and_converge(prepared, private, options, progress, yes=True)
    if not quiet:
        say_outcome(prepared, progress.keys, check=False)
        out().print()
    return Fixed(
        [host.host for host in prepared if host.converged],
        {host.host: host.to_json() for host in prepared},
        progress.keys,
        max((host.error.code for host in prepared if host.error), default=ExitCode.OK),
    )


def _ask(todo: list[Any]) -> None:
    """One question for all: how much is done where, and what restarts."""
    from llamarig.cli.ask import ask_or_refuse

    counts = ", ".join(f"{len(host.decision.actions)} on {host.host}" for host in todo)
    services = [f"{service} on {host.host}" for host in todo for service in host.running]
    restarted = f"; running services would be restarted: {', '.join(services)}" if services else ""
    ask_or_refuse(f"actions would be taken: {counts}{restarted}")
