"""``llamarig apply``: make hosts what their specs say, and prove it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llamarig.errors import ExitCode

if TYPE_CHECKING:
    from llamarig.cli.apply_view import Progress
    from llamarig.converge.apply import HostApply, Options


def apply(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts, by the `host:` of their specs.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Say what would be done; touch nothing.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Walk all roles, whatever the comparison says.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Hash every release and model file again.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Prove the services even when nothing changes.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a running service is restarted.")] = False,
    break_lock: Annotated[bool, typer.Option("--break-lock", help="Take the lock from whoever holds it.")] = False,
    ask_become_pass: Annotated[bool, typer.Option("--ask-become-pass", "-K", help="Ask for sudo's password.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Make hosts what their specs say, and prove it."""
    from llamarig.cli.apply_view import Progress, describe, say_outcome, say_refused
    from llamarig.cli.choose import choose
    from llamarig.cli.context import emit_json, overlay, project_root
    from llamarig.cli.whole_fleet import hold_fleet
    from llamarig.converge import apply as work

    if all_ and not check:
        hold_fleet("apply --all")
    loaded = choose(hosts or [], all_, "apply")
    progress = Progress()
    with work.private_directory() as private:
        options = work.Options(
            check=check,
            full=full,
            deep=deep,
            verify=verify,
            break_lock=break_lock,
            become_password_file=become_password(private) if ask_become_pass else None,
            overlay=overlay(),
        )
        prepared = work.prepare(project_root(), loaded, private, options)
        say_refused(prepared)
        work.look(prepared, private, full=full)
        if not as_json:
            describe(prepared)
        if not check:
            ask_and_converge(prepared, private, options, progress, yes=yes)
    if as_json:
        keys = {"new-keys": progress.keys} if progress.keys else {}
        emit_json({"hosts": [host.to_json() for host in prepared], **keys})
    else:
        say_outcome(prepared, progress.keys, check=check)
    raise typer.Exit(int(max((host.error.code for host in prepared if host.error), default=ExitCode.OK)))


def ask_and_converge(
    prepared: list[HostApply], private: Path, options: Options, progress: Progress, *, yes: bool
) -> None:
    """Converge the hosts on which something is to be done, after a question where that restarts services."""
    from llamarig.cli.ask import interrupted_by_hand
    from llamarig.converge import apply as work

    todo = work.to_converge(prepared, options)
    if not todo:
        return
    if not yes:
        ask_restart(todo, refused=[host.host for host in prepared if host.refused])
    progress.packages = {host.host: host.packages for host in todo}
    with interrupted_by_hand([host.host for host in todo], "apply"), progress:
        work.converge(todo, private, options, progress)


def become_password(private: Path) -> str:
    """Ask once; the answer goes into the private directory and is wiped with it.

    Raises :class:`~llamarig.errors.RigError` when there is no answer.
    """
    from getpass import getpass

    from llamarig.converge.private import write_private
    from llamarig.errors import RigError

    try:
        password = getpass("sudo password: ")
    except EOFError:
        password = ""
    if not password:
        fix = "type it at the prompt, or name a file with it in connection.become-password-file"
        raise RigError(what="no sudo password was given; nothing was touched", fix=fix)
    return str(write_private(private / "become", f"{password}\n"))


def ask_restart(hosts: list[HostApply], refused: Sequence[str] = ()) -> None:
    """Ask before running services are restarted; ``refused`` hosts are named, since the others go on without them."""
    from llamarig.cli.ask import ask_or_refuse

    services = [f"{service} on {host.host}" for host in hosts for service in host.running]
    if services:
        without = f"without {', '.join(refused)}, refused above: " if refused else ""
        ask_or_refuse(f"{without}running services would be restarted: " + ", ".join(services))
