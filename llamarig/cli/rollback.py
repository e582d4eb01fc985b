"""``llamarig rollback``: switch hosts back to their former release."""

from __future__ import annotations

from typing import Annotated

import typer

from llamarig.errors import ExitCode


def rollback(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts, by the `host:` of their specs.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before services are restarted.")] = False,
    break_lock: Annotated[bool, typer.Option("--break-lock", help="Take the lock from whoever holds it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Switch hosts back to their former release, and prove it."""
    from rich.markup import escape

    from llamarig.cli.apply_view import Progress
    from llamarig.cli.ask import ask_or_refuse
    from llamarig.cli.context import emit_json, err, out, project_root, select
    from llamarig.converge.rollback import rollback_hosts

    loaded = select(hosts or [], all_)
    if not yes:
        ask_or_refuse("all services would be restarted from the former release: " + ", ".join(h.host for h in loaded))
    with Progress() as progress:
        done = rollback_hosts(project_root(), loaded, progress, break_lock=break_lock)
    if as_json:
        emit_json({"hosts": [each.to_json() for each in done]})
    else:
        for each in done:
            if each.error is not None:
                err().print(f"[bold red]error:[/] {escape(str(each.error))}", soft_wrap=True)
                continue
            out().print(f"{each.host}: [green]runs {escape(each.release)} again[/], {each.checks} checks passed")
    raise typer.Exit(int(max((each.error.code for each in done if each.error), default=ExitCode.OK)))
