"""``llamarig lock``: look up what the specs leave ``unlocked``, show the difference, and write it down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from llamarig.cli.ask import AskBecomePass

if TYPE_CHECKING:
    from pathlib import Path

    from llamarig.converge.locking.result import Locked
    from llamarig.converge.store.shelf import Progress
    from llamarig.errors import RigError


def lock(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts to lock.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Show the difference and write nothing.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Use only what lies on this machine.")] = False,
    known_files: Annotated[
        bool, typer.Option("--known-files", help="Ask the hub again for the table of known files, and nothing else.")
    ] = False,
    ask_become_pass: AskBecomePass = False,
    json_: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Exit 1 when --check found something to write; problems come after what could be locked."""
    from llamarig.cli.ask import asked_password
    from llamarig.cli.choose import choose
    from llamarig.cli.context import project_root, refuse_overlay
    from llamarig.cli.host_error import complain
    from llamarig.converge.locking.files import Finder
    from llamarig.converge.locking.lock import lock_hosts
    from llamarig.converge.locking.on_host import asker
    from llamarig.converge.store.shelf import Shelf
    from llamarig.errors import ExitCode, RigErrors
    from llamarig.spec.problem import combined

    refuse_overlay("lock")
    if known_files:
        from llamarig.cli.lock_known import lock_known

        lock_known(hosts or [], all_=all_, check=check, offline=offline, json_=json_)
        return
    root, chosen = project_root(), choose(hosts or [], all_, "lock")
    refused = {each.host: combined(each.errors, each.path) for each in chosen if each.spec is None}
    with asked_password(ask_become_pass) as password:
        finder = Finder(root, Shelf.default(), _progress(), offline, asker(root, chosen, password))
        try:
            found = lock_hosts(root, chosen, finder)
        finally:
            finder.close()
    if found.pending and not check:
        found.write()
    if json_:
        _print_json(found, refused, root, check)
    else:
        _print(found, refused, root, check)
    errors = [*refused.values(), *found.problems]
    if errors and not json_:
        raise RigErrors(errors)
    for host, error in refused.items():
        complain(host, error)
    codes = [error.code for error in errors] + [ExitCode.FINDING if check and found.pending else ExitCode.OK]
    raise typer.Exit(int(max(codes)))


def _progress() -> Progress:
    from llamarig.cli.context import err

    if not err().is_terminal:
        from llamarig.converge.store.shelf import silent

        return silent
    last = {"shown": -1}

    def show(label: str, done: int, total: int) -> None:
        tenth = done * 10 // total if total else done >> 28
        if tenth != last["shown"]:
            last["shown"] = tenth
            err().print(f"[dim]{label}: {done >> 20:,} of {total >> 20:,} MiB[/]" if total else f"[dim]{label}[/]")

    return show


def _print_json(found: Locked, refused: dict[str, RigError], root: Path, check: bool) -> None:
    """The hosts that were gone on with, then those that were refused."""
    from llamarig.cli.context import emit_json
    from llamarig.cli.host_error import error_json
    from llamarig.converge.locking.result import below

    locked: list[dict[str, Any]] = [
        {
            "host": work.host,
            "changes": [change.to_json(root) for change in work.changes],
            "notes": work.notes,
            "errors": [error_json(each) for each in work.problems],
        }
        for work in found.hosts
    ]
    left = [
        {"host": host, "changes": [], "notes": [], "errors": [error_json(error)], "error": error_json(error)}
        for host, error in refused.items()
    ]
    emit_json(
        {
            "hosts": [*locked, *left],
            "diff": found.diff(root),
            "new-files": [below(path, root) for path in found.new_files],
            "written": found.pending and not check,
        }
    )


def _print(found: Locked, refused: dict[str, RigError], root: Path, check: bool) -> None:
    from rich.markup import escape

    from llamarig.cli.context import out
    from llamarig.converge.locking.result import below

    for work in found.hosts:
        for note in work.notes:
            out().print(f"{escape(work.host)}: {escape(note)}")
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in found.diff(root).splitlines():
        colour = colours.get(line[:1])
        out().print(f"[{colour}]{escape(line)}[/]" if colour else escape(line), soft_wrap=True)
    verb = "would write" if check else "wrote"
    for path in found.new_files:
        out().print(f"{verb} {escape(below(path, root))}")
    if not found.pending and not found.problems and not refused:
        out().print("everything is locked")
