"""``llamarig lock --known-files``: the table of known files, as the hub has it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from llamarig.cli.choose import choose
from llamarig.cli.context import emit_json, out, project_root
from llamarig.cli.host_error import complain, error_json
from llamarig.errors import ExitCode, RigError, RigErrors

if TYPE_CHECKING:
    from llamarig.converge.locking.known import Refreshed


def lock_known(hosts: list[str], *, all_: bool, check: bool, offline: bool, json_: bool) -> None:
    """Ask for all repositories of the table, and those of the named hosts; exit 1 when --check found a difference."""
    from llamarig.converge.locking.hub import Hub
    from llamarig.converge.locking.known import refresh
    from llamarig.converge.store.download import client
    from llamarig.converge.store.pip_config import pip_config
    from llamarig.spec.problem import combined

    if offline:
        raise RigError(what="the hub cannot be asked offline", fix="leave --offline or --known-files out")
    chosen = choose(hosts, all_, "lock --known-files") if hosts or all_ else []
    refused = {each.host: combined(each.errors, each.path) for each in chosen if each.spec is None}
    http = client(pip_config())
    try:
        found = refresh(project_root(), [loaded.spec for loaded in chosen if loaded.spec is not None], Hub(http))
    finally:
        http.close()
    if found.pending and not check:
        found.write()
    errors = [*refused.values(), *found.problems]
    _print(found, errors, check, json_)
    if errors and not json_:
        raise RigErrors(errors)
    for host, error in refused.items():
        complain(host, error)
    codes = [error.code for error in errors]
    codes.append(ExitCode.FINDING if check and found.pending else ExitCode.OK)
    raise typer.Exit(int(max(codes)))


def _print(found: Refreshed, problems: list[RigError], check: bool, json_: bool) -> None:
    from rich.markup import escape

    if json_:
        errors = [error_json(each) for each in problems]
        written = found.pending and not check
        emit_json({"asked": found.asked, "diff": found.diff(), "errors": errors, "written": written})
        return
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in found.diff().splitlines():
        colour = colours.get(line[:1])
        out().print(f"[{colour}]{escape(line)}[/]" if colour else escape(line), soft_wrap=True)
    verb = "would write" if check else "wrote"
    out().print(
        f"{verb} {escape(found.path.name)}" if found.pending else "the table of known files is as the hub has it"
    )
