"""``llamarig status``: what runs, since when, and from which release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from llamarig.cli.ask import AskBecomePass

if TYPE_CHECKING:
    from llamarig.cli.looked import Looked


def status(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts to look at.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    ask_become_pass: AskBecomePass = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the state as JSON.")] = False,
) -> None:
    """Exit 0 when every host answers, whatever runs there; 3 when one does not."""
    from llamarig.cli.ask import asked_password
    from llamarig.cli.looked import complain, emit, look
    from llamarig.errors import ExitCode

    with asked_password(ask_become_pass) as password:
        looked = look(hosts or [], all_, "status", become_password_file=password)
    if json_:
        emit([document(each) for each in looked])
    for each in looked:
        if each.error is not None:
            complain(each)
        elif not json_:
            _print(document(each))
    raise typer.Exit(int(max((each.error.code for each in looked if each.error is not None), default=ExitCode.OK)))


def document(looked: Looked) -> dict[str, Any]:
    """What runs, and how many differences from the spec there are; ``error`` where the host did not answer."""
    from llamarig.compare.state import state_of

    if looked.wanted is None or looked.error is not None:
        return {"host": looked.host, "error": looked.error_json()}
    return state_of(looked.wanted, looked.observed) | {"drift": len(looked.actions)}


def _print(state: dict[str, Any]) -> None:
    from rich.markup import escape

    from llamarig.cli.context import out
    from llamarig.cli.rows import print_records, print_rows

    record, release, drift = state["record"], state["release"], state["drift"]
    applied = (
        f"applied {record['applied-at']} from {record['applied-from']}"
        if record["state"] == "ok"
        else {"absent": "never applied"}.get(record["state"], f"record {record['state']}")
    )
    former = f", former: files of {release['former-at']}, release {release['former']}" if release["former"] else ""
    differs = f"{drift} to do (llamarig diff {state['host']})" if drift else "as its spec says"
    out().print(f"[bold]{escape(state['host'])}[/]  {escape(state['system'])}, kernel {escape(str(state['kernel']))}")
    release_words = f"release {release['current'] or 'none'}{former}"
    print_rows([[escape(f"{release_words}; {applied}; {differs}")]], indent=2)
    if state["lock"]:
        out().print(f"  [yellow]{escape(_held(state['lock']))}[/]", soft_wrap=True)
    if state["reboot"]:
        out().print(f"  [yellow]{escape(_reboot(state['reboot']))}[/]", soft_wrap=True)
    for name, card in ((state["power"] or {}).get("cards") or {}).items():
        out().print(f"  {escape(_watched(name, card))}", soft_wrap=True)
    rows = []
    for name, service in state["services"].items():
        cells = (service["since"] or "-", str(service["restarts"]), service["model"], service["address"])
        rows.append([escape(name), _state(service, release["current"]), *(escape(cell) for cell in cells)])
    print_records(("service", "state", "since", "restarts", "model", "address"), rows, indent=2)


def _reboot(reboot: dict[str, Any]) -> str:
    """Why a reboot is needed, and what came of the one that was made for it."""
    return ": ".join(filter(None, (f"needs a reboot ({'; '.join(reboot['needed'])})", reboot["in-vain"])))


_LEAST_US = 1_000_000
"""A second: below that a slowdown is not worth a word."""


def _watched(name: str, card: dict[str, Any]) -> str:
    """The limit of a card, and what has disturbed it between the last two looks of the watch."""
    limit = "unknown" if card["limit-w"] is None else f"{card['limit-w']:g} W"
    words = [f"card {name}: power limit {limit}"]
    words += [f"wanted {card['wanted-w']} W"] if card["wanted-w"] not in (None, card["limit-w"]) else []
    words += [f"set by something else {card['changed-by-others']} times"] if card["changed-by-others"] else []
    slowed = {reason: us for reason, us in card["throttled-us"].items() if us >= _LEAST_US}
    words += [f"slowed down {us / 1e6:.0f} s ({reason})" for reason, us in slowed.items()]
    return ", ".join(words)


def _held(lock: dict[str, Any]) -> str:
    """Who holds the lock, from which controller, and since when."""
    if "who" not in lock:
        return f"locked: {lock.get('error', 'nobody says by whom')}"
    process = f" (process {lock['pid']})" if lock["pid"] else ""
    return f"locked by {lock['who']} on {lock.get('from', 'an unknown controller')}{process} since " + (
        lock["since"] or "an unknown time"
    )


def _state(service: dict[str, Any], current: str | None) -> str:
    """The unit's state in colour, and the release of the process where that is not the current one."""
    from rich.markup import escape

    shown = service["load"] if service["load"] != "loaded" else f"{service['state']} ({service['sub-state']})"
    other = f", runs {service['release']}" if service["release"] not in (None, current) else ""
    colour = "red" if service["state"] != "active" else "yellow" if other else "green"
    return f"[{colour}]{escape(shown + other)}[/]"
