"""``llamarig rebuild``: after a kernel, driver or toolkit update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from llamarig.cli.ask import AskBecomePass
from llamarig.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from llamarig.cli.apply_view import Progress
    from llamarig.converge.apply import Options
    from llamarig.converge.rebuild import Rebuilt


def rebuild(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts, by the `host:` of their specs.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Say what would be redone; touch nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a restart or a reboot.")] = False,
    break_lock: Annotated[bool, typer.Option("--break-lock", help="Take the lock from whoever holds it.")] = False,
    ask_become_pass: AskBecomePass = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Say what changed, redo what follows from it, reboot where that is needed and allowed, and prove the rest."""
    from llamarig.cli.apply import become_password
    from llamarig.cli.apply_view import Progress, say_refused
    from llamarig.cli.ask import interrupted_by_hand
    from llamarig.cli.choose import choose
    from llamarig.cli.context import emit_json, overlay, project_root
    from llamarig.cli.whole_fleet import hold_fleet
    from llamarig.converge import apply as work
    from llamarig.converge import rebuild as job

    if all_ and not check:
        hold_fleet("rebuild --all")
    loaded = choose(hosts or [], all_, "rebuild")
    with work.private_directory() as private:
        password = become_password(private) if ask_become_pass else None
        options = work.Options(check=check, break_lock=break_lock, become_password_file=password, overlay=overlay())
        prepared = job.prepare(project_root(), loaded, private, options, say_refused)
        if not as_json:
            for host in prepared:
                _show(host)
        progress = Progress()
        if check:
            job.decide(prepared, private)
        else:
            if not yes:
                from llamarig.cli.apply import ask_restart

                refused = [host.host for host in prepared if host.apply.refused]
                ask_restart(work.to_converge([host.apply for host in prepared], options), refused)
            names = [host.host for host in prepared if not host.apply.refused]
            with interrupted_by_hand(names, "rebuild"):
                with progress:
                    job.converge(prepared, private, options, progress)
                _reboot(prepared, private, options, progress, yes=yes)
    if as_json:
        emit_json({"hosts": [host.to_json() for host in prepared]})
    else:
        from llamarig.cli.apply_view import say_outcome

        say_outcome([host.apply for host in prepared], progress.keys, check=check)
        for host in prepared:
            _say_reboot(host)
    raise typer.Exit(int(max((_code(host) for host in prepared), default=ExitCode.OK)))


def _reboot(hosts: list[Rebuilt], private: Path, options: Options, progress: Progress, *, yes: bool) -> None:
    """Reboot those that need it and may, one question for all that ask; then apply what had to wait for it."""
    from llamarig.converge import rebuild as job

    job.decide(hosts, private)
    ready = [host for host in hosts if host.error is None and host.reboot and _may(host, yes=yes)]
    if not ready:
        return
    with progress:
        job.reboot(ready, private, options, progress, allowed=True)
        back = [host for host in ready if host.error is None]
        from llamarig.converge import apply as work

        work.look([host.apply for host in back], private)
        job.converge(back, private, options, progress)
    job.decide(back, private)


def _may(host: Rebuilt, *, yes: bool) -> bool:
    """Whether a host reboots now: by its spec, by ``--yes``, or by an answer at the terminal."""
    import sys

    from llamarig.compare.text import printable

    decision = host.reboot or {}
    if decision.get("verdict") != "ask":
        return decision.get("verdict") == "now"
    if yes or not sys.stdin.isatty():
        return yes
    noticed = "; ".join(printable(why) for why in decision["why"]) or "nobody would notice"
    reasons = "; ".join(printable(reason) for reason in decision["needed"])
    return typer.confirm(f"{host.host} needs a reboot: {reasons} ({noticed}). Reboot it now?", err=True)


def _show(host: Rebuilt) -> None:
    """The table of what changed."""
    from rich.markup import escape

    from llamarig.cli.context import out
    from llamarig.cli.rows import print_records

    if host.error is not None:
        return
    out().print(f"[bold]{escape(host.host)}[/]" + ("" if host.changes else "  nothing changed"))
    rows = [
        [escape(cell) for cell in (each.what, each.before, each.after, each.redone, each.why)] for each in host.changes
    ]
    if rows:
        print_records(("what changed", "from", "to", "what is redone", "why"), rows, indent=2)


def _say_reboot(host: Rebuilt) -> None:
    """One line about the reboot that was made, that is needed, or that is refused."""
    from rich.markup import escape

    from llamarig.cli.context import out
    from llamarig.compare.text import printable

    decision = host.reboot
    if host.error is not None or decision is None:
        return
    verdict, why = decision["verdict"], escape("; ".join(printable(each) for each in decision["why"]))
    needed = escape("; ".join(printable(each) for each in decision["needed"]))
    if host.rebooted and verdict == "not-needed":
        kernel = escape(printable(decision["running"]))
        out().print(f"{escape(host.host)}: [green]rebooted[/] into {kernel}; kernel, module, library and record agree")
        return
    said = {
        "not-needed": "no reboot is needed",
        "refused": f"[bold red]needs a reboot ({needed}), which is refused[/]: {why}",
        "ask": f"[yellow]needs a reboot ({needed})[/]; give --yes, or answer at a terminal{': ' + why if why else ''}",
        "waits": f"[yellow]needs a reboot ({needed}), which waits[/]: {why}; run rebuild again later",
        "now": f"[yellow]would reboot now[/]: {needed}",
    }
    out().print(f"{escape(host.host)}: {said.get(verdict, escape(printable(verdict)))}", soft_wrap=True)


def _code(host: Rebuilt) -> ExitCode:
    """A reboot that is still needed is a finding."""
    if host.error is not None:
        return host.error.code
    needed = host.reboot is not None and host.reboot["verdict"] != "not-needed"
    return ExitCode.FINDING if needed else ExitCode.OK
