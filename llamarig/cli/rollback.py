"""``llamarig rollback``: switch hosts back to their former release, or to the last good kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from llamarig.cli.ask import AskBecomePass
from llamarig.errors import ExitCode

if TYPE_CHECKING:
    from llamarig.converge.rollback import RolledBack


def rollback(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts, by the `host:` of their specs.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    kernel: Annotated[
        bool, typer.Option("--kernel", help="Only let the kernel before this one boot; restart nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before services are restarted.")] = False,
    break_lock: Annotated[bool, typer.Option("--break-lock", help="Take the lock from whoever holds it.")] = False,
    ask_become_pass: AskBecomePass = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Switch hosts back to their former release, and prove it; its kernel boots from the next boot on."""
    from llamarig.cli.apply_view import Progress
    from llamarig.cli.ask import ask_or_refuse, asked_password, interrupted_by_hand
    from llamarig.cli.choose import choose
    from llamarig.cli.context import emit_json, project_root
    from llamarig.cli.whole_fleet import hold_fleet
    from llamarig.converge.rollback import Options, RolledBack, rollback_hosts, ways_back
    from llamarig.errors import RigError

    if all_:
        hold_fleet("rollback --all")
    loaded = choose(hosts or [], all_, "rollback")
    with asked_password(ask_become_pass) as password:
        options = Options(break_lock, kernel, password)
        ways = ways_back(project_root(), loaded, options)
        done = [RolledBack(host, error=way) for host, way in ways.items() if isinstance(way, RigError)]
        ready = [each for each in loaded if not isinstance(ways[each.host], RigError)]
        if ready and not yes:
            targets = "; ".join(f"{each.host} to the {ways[each.host]}" for each in ready)
            restarts = "nothing is restarted, and another kernel boots" if kernel else "all services would be restarted"
            ask_or_refuse(f"{restarts}; back go: {targets}")
        if ready:
            with interrupted_by_hand([each.host for each in ready], "rollback"), Progress() as progress:
                done += rollback_hosts(project_root(), ready, options, progress)
    if as_json:
        emit_json({"hosts": [each.to_json() for each in done]})
    else:
        for each in done:
            _say(each)
    raise typer.Exit(int(max((each.error.code for each in done if each.error), default=ExitCode.OK)))


def _say(done: RolledBack) -> None:
    """A line for what became of a host, and one for its kernel."""
    from rich.markup import escape

    from llamarig.cli.context import out
    from llamarig.cli.host_error import complain
    from llamarig.compare.text import printable

    host = escape(done.host)
    if done.error is not None:
        complain(done.host, done.error)
        return
    if done.release:
        out().print(f"{host}: [green]runs {escape(done.release)} again[/], {done.checks} checks passed")
    if done.kernel is None:
        return
    kernel = escape(printable(done.kernel.kernel))
    if done.kernel.why:
        said = f"[yellow]kernel {kernel} was not chosen[/]: {escape(done.kernel.why)}"
    elif not done.chooses:
        said = f"[yellow]choose kernel {kernel} in this host's boot loader[/]: GRUB does not decide here"
    else:
        said = f"[green]kernel {kernel} boots from now on[/]; reboot the host when it is idle"
    out().print(f"{host}: {said}", soft_wrap=True)
