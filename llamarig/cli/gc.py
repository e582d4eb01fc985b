"""``llamarig gc``: remove from hosts what nobody needs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from llamarig.cli.ask import AskBecomePass
from llamarig.errors import ExitCode

if TYPE_CHECKING:
    from llamarig.converge.gc import HostGc


def gc(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts, by the `host:` of their specs.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Say what would go; touch nothing.")] = False,
    build_cache: Annotated[bool, typer.Option("--build-cache", help="Empty the compiler cache too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before something is removed.")] = False,
    break_lock: Annotated[bool, typer.Option("--break-lock", help="Take the lock from whoever holds it.")] = False,
    ask_become_pass: AskBecomePass = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Remove from hosts what no spec, record, way back or process needs any more, and prove that the rest is there."""
    from llamarig.cli.apply_view import Progress
    from llamarig.cli.ask import ask_or_refuse, asked_password, interrupted_by_hand
    from llamarig.cli.choose import choose
    from llamarig.cli.context import emit_json, project_root
    from llamarig.cli.gc_view import describe, say_outcome, size
    from llamarig.cli.whole_fleet import hold_fleet
    from llamarig.converge import gc as work
    from llamarig.converge.private import private_directory

    if all_ and not check:
        hold_fleet("gc --all")
    loaded = choose(hosts or [], all_, "gc")
    with private_directory() as private, asked_password(ask_become_pass) as password:
        options = work.Options(build_cache=build_cache, break_lock=break_lock, become_password_file=password)
        found = work.look(project_root(), loaded, private, options)
        if not check:
            work.refuse_busy(found)
        if not as_json:
            for host in found:
                describe(host)
        todo = [host for host in found if host.error is None and host.gone and not check]
        if todo and not yes:
            ask_or_refuse("; ".join(f"{_things(host)}, {size(host.bytes)}, would go from {host.host}" for host in todo))
        if todo:
            with interrupted_by_hand([host.host for host in todo], "gc"), Progress() as progress:
                work.remove(todo, private, options, progress)
    if as_json:
        emit_json({"hosts": [host.to_json() for host in found]})
    else:
        say_outcome(found, check=check)
    raise typer.Exit(int(max((host.error.code for host in found if host.error), default=ExitCode.OK)))


def _things(host: HostGc) -> str:
    from llamarig.compare.text import counted

    return counted(len(host.gone), "thing")
