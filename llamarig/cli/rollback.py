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
    from llamarig.cli.ask import ask_or_refuse, interrupted_by_hand
    from llamarig.cli.context import emit_json, err, out, project_root, select
    from llamarig.converge.rollback import RolledBack, rollback_hosts, ways_back
    from llamarig.errors import RigError

    loaded = select(hosts or [], all_)
    ways = ways_back(project_root(), loaded, break_lock=break_lock)
    done = [RolledBack(host, error=way) for host, way in ways.items() if isinstance(way, RigError)]
    ready = [each for each in loaded if not isinstance(ways[each.host], RigError)]
    if ready and not yes:
        targets = "; ".join(f"{each.host} to the {ways[each.host]}" for each in ready)
        ask_or_refuse(f"all services would be restarted, and go back: {targets}")
    if ready:
        with interrupted_by_hand([each.host for each in ready], "rollback"), Progress() as progress:
            done += rollback_hosts(project_root(), ready, progress, break_lock=break_lock)
    if as_json:
        emit_json({"hosts": [each.to_json() for each in done]})
    else:
        for each in done:
            if each.error is not None:
                err().print(f"[bold red]error:[/] {escape(str(each.error))}", soft_wrap=True)
                continue
            out().print(f"{each.host}: [green]runs {escape(each.release)} again[/], {each.checks} checks passed")
    raise typer.Exit(int(max((each.error.code for each in done if each.error), default=ExitCode.OK)))
