"""``llamarig drift``: what differs between a host and its spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from llamarig.cli.looked import Looked
    from llamarig.compare import Action

_NOTHING = ("", "absent", "none", "nothing", "not installed")
"""What is said of a thing that is not there; its reason says so already."""


def drift(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts to look at.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Hash releases and models again.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the differences as JSON.")] = False,
) -> None:
    """Exit 1 when something differs, 3 when a host cannot be looked at."""
    from llamarig.cli.looked import complain, emit, look

    looked = look(hosts or [], all_, deep=deep)
    if json_:
        emit([document(each) for each in looked])
    for each in looked:
        if each.error is not None:
            complain(each)
        elif not json_:
            _print(each)
    raise typer.Exit(int(max(each.code for each in looked)))


def document(looked: Looked) -> dict[str, Any]:
    """The documented form (DESIGN, Commands); ``error`` only where the host could not be looked at."""
    from llamarig.compare.drift import drift_json

    if looked.error is not None:
        return {"host": looked.host, "drift": [], "error": looked.error_json()}
    return drift_json(looked.host, list(looked.actions))


def _print(looked: Looked) -> None:
    from rich.markup import escape

    from llamarig.cli.context import out
    from llamarig.cli.rows import print_rows

    host = escape(looked.host)
    if not looked.actions:
        out().print(f"{host}: [green]as its spec says[/]")
        return
    count = len(looked.actions)
    out().print(f"{host}: [bold red]{count} {'difference' if count == 1 else 'differences'}[/]")
    print_rows([[escape(f"{each.kind} {each.subject}"), escape(_words(each))] for each in looked.actions], indent=2)


def _words(action: Action) -> str:
    """The reason; with what was expected and seen where something is there and says more than the reason."""
    if action.observed in _NOTHING or (action.expected in action.reason and action.observed in action.reason):
        return action.reason
    return f"{action.reason} (expected {action.expected}, observed {action.observed})"
