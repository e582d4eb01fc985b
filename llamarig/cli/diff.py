"""``llamarig diff``: what ``apply`` would do, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from llamarig.cli.ask import AskBecomePass

if TYPE_CHECKING:
    from llamarig.cli.looked import Looked
    from llamarig.compare import Action

_HEADINGS = {
    "package": "Packages to install",
    "user": "Users to make or mend",
    "directory": "Directories to make or mend",
    "driver": "Parts of the NVIDIA driver to install or mend",
    "toolkit": "CUDA toolkits to install or mend",
    "release": "Releases to build",
    "model": "Models to fetch or mend",
    "credential": "Key files to make or mend",
    "file": "Files to write or remove",
    "switch": "Links to switch",
    "service": "Services to start or restart",
    "port": "Ports that are taken by others; apply refuses until they are free",
    "record": "Records to write",
}


def diff(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts to look at.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Hash releases and models again.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Also show files that are not there yet line by line.")] = False,
    ask_become_pass: AskBecomePass = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the actions as JSON.")] = False,
) -> None:
    """Exit 1 when there is something to do, 3 when a host cannot be looked at."""
    from llamarig.cli.ask import asked_password
    from llamarig.cli.looked import complain, emit, look

    with asked_password(ask_become_pass) as password:
        looked = look(hosts or [], all_, "diff", deep=deep, become_password_file=password)
    if json_:
        emit([document(each) for each in looked])
    for each in looked:
        if each.error is not None:
            complain(each)
        elif not json_:
            _print(each, full)
    raise typer.Exit(int(max(each.code for each in looked)))


def document(looked: Looked) -> dict[str, Any]:
    """``actions`` in the order in which they are taken, each file's with its ``diff`` where that is known."""
    from llamarig.compare import restarts
    from llamarig.compare.changes import file_diff

    if looked.wanted is None or looked.error is not None:
        return {"host": looked.host, "actions": [], "restarts": [], "error": looked.error_json()}
    actions = []
    for action in looked.actions:
        lines = file_diff(looked.wanted, looked.observed, action)
        actions.append(action.to_json() | ({"diff": lines} if lines else {}))
    return {"host": looked.host, "actions": actions, "restarts": restarts(list(looked.actions), looked.wanted)}


def _print(looked: Looked, full: bool) -> None:
    from rich.markup import escape

    from llamarig.cli.context import out
    from llamarig.cli.rows import print_hanging
    from llamarig.compare import restarts

    host = escape(looked.host)
    if looked.wanted is None or not looked.actions:
        out().print(f"{host}: [green]nothing to do[/]")
        return
    out().print(f"{host}: [bold]{len(looked.actions)} to do[/]")
    kind = ""
    for action in looked.actions:
        if action.kind != kind:
            kind = action.kind
            out().print(f"\n  [bold]{_HEADINGS[kind]}[/]")
        print_hanging(f"{escape(action.subject)}: {escape(action.reason)}", indent=4, hang=2)
        _print_diff(looked, action, full)
    if again := restarts(list(looked.actions), looked.wanted):
        out().print(f"\n  Starts or restarts: [yellow]{escape(', '.join(again))}[/]")


def _print_diff(looked: Looked, action: Action, full: bool) -> None:
    from rich.text import Text

    from llamarig.cli.context import out
    from llamarig.compare.changes import file_diff

    lines = file_diff(looked.wanted, looked.observed, action) if looked.wanted is not None else []
    if not full and lines[:1] and lines[0].startswith("--- /dev/null"):
        return
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        out().print(Text("      " + line, style=styles.get(line[:1], "dim")), soft_wrap=True)
