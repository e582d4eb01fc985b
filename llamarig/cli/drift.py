"""``llamarig drift``: what differs between hosts and their specs, since when, and from which record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llamarig.cli.ask import AskBecomePass

if TYPE_CHECKING:
    from llamarig.cli.drift_fix import Fixed
    from llamarig.cli.looked import Looked
    from llamarig.fleet.drift.host import HostDrift


def drift(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts to look at.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Hash releases and models again.")] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Apply to the hosts that differ, and look again.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: do not ask before anything is done.")] = False,
    ask_become_pass: AskBecomePass = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write the fleet as one page into this file.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the differences as JSON.")] = False,
) -> None:
    """Exit 1 when something differs, 3 when a host cannot be looked at."""
    from functools import partial

    from llamarig.cli import looked
    from llamarig.cli.ask import asked_password
    from llamarig.cli.drift_view import complain_of, show
    from llamarig.cli.whole_fleet import hold_fleet
    from llamarig.errors import ExitCode, RigError

    if yes and not fix:
        raise RigError(what="--yes is given without --fix", fix="add --fix, or leave --yes away")
    if all_ and fix:
        hold_fleet("drift --all --fix")
    with asked_password(ask_become_pass) as password:
        look = partial(looked.look, deep=deep, become_password_file=password)
        seen = look(hosts or [], all_, "drift")
        found = [of_host(each) for each in seen]
        code = max(each.code for each in seen)
        fixed: Fixed | None = None
        if fix and any(host.differences for host in found):
            from llamarig.cli.drift_fix import mend

            if not json_:
                show(found)
            differ = [host.host for host in found if host.differences]
            fixed = mend(differ, deep=deep, yes=yes, quiet=json_, become_password_file=password)
            again = {each.host: each for each in look(fixed.hosts, False, "drift")} if fixed.hosts else {}
            seen = [again.get(each.host, each) for each in seen]
            found = [of_host(each) for each in seen]
            code = max(fixed.code, *(each.code for each in seen))
    if html is not None:
        from llamarig.cli.drift_page import write

        write(found, html, quiet=json_)
    if json_:
        _emit(found, fixed)
    elif html is None or fix:
        show(found)
    complain_of(found)
    raise typer.Exit(int(code if found else ExitCode.OK))


def of_host(looked: Looked) -> HostDrift:
    """What was seen of a host, as its drift."""
    from llamarig.fleet.drift.host import HostDrift, host_drift

    if looked.wanted is None or looked.error is not None:
        return HostDrift(looked.host, error=looked.error)
    return host_drift(looked.wanted, looked.observed, looked.actions)


def _emit(found: list[HostDrift], fixed: Fixed | None) -> None:
    """One host's document as it is; those of several under ``hosts``, with their sums."""
    from llamarig.cli.context import emit_json
    from llamarig.fleet.drift.fleet import counts

    documents = [each.to_json() for each in found]
    if fixed is not None:
        for document in documents:
            if document["host"] in fixed.documents:
                document["fix"] = fixed.documents[document["host"]]
    keys: dict[str, Any] = {"new-keys": fixed.keys} if fixed and fixed.keys else {}
    if len(documents) == 1:
        emit_json(documents[0] | keys)
    else:
        emit_json({"hosts": documents, "summary": counts(found).to_json()} | keys)
