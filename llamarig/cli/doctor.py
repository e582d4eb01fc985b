"""``llamarig doctor``: what is wrong with a machine, a saved bundle or a pasted error, and what to do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llamarig.cli.ask import AskBecomePass

if TYPE_CHECKING:
    from llamarig.errors import RigError
    from llamarig.prove.doctor import Diagnosis

MAX_PASTED = 4 << 20
"""Characters of a pasted error that are read."""


def doctor(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts to examine.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    bundle: Annotated[Path | None, typer.Option("--bundle", help="Examine a saved bundle instead of a host.")] = None,
    error: Annotated[
        str | None, typer.Option("--error", help="Examine an error text; - reads it from standard input.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Write what one host said to this file, secrets removed.")
    ] = None,
    ask_become_pass: AskBecomePass = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the diagnoses as JSON.")] = False,
) -> None:
    """Exit 1 when there is an error or a warning, or an error text that is not known; 3 when a host cannot be asked."""
    from llamarig.cli.host_error import complain
    from llamarig.errors import RigError
    from llamarig.prove.doctor import examine, examine_text, load_bundle

    asked = sum((bool(hosts) or all_, bundle is not None, error is not None))
    if asked != 1:
        raise RigError(
            what="name hosts (or --all), a --bundle or an --error: one of them",
            fix="for example: llamarig doctor box, or: journalctl -u llama-chat | llamarig doctor --error -",
        )
    found: dict[str, list[Diagnosis] | RigError]
    if bundle is not None:
        found = {str(bundle): examine(load_bundle(bundle))}
    elif error is not None:
        found = {"the text": examine_text(_pasted(error))}
    else:
        found = _hosts(hosts or [], all_, save, ask_become_pass=ask_become_pass)
    if json_:
        _print_json(found)
    for subject, diagnoses in found.items():
        if isinstance(diagnoses, RigError):
            complain(subject, diagnoses)
        elif not json_:
            _print(subject, diagnoses)
    raise typer.Exit(_status(found))


def _pasted(error: str) -> str:
    from llamarig.errors import RigError

    text = sys.stdin.read(MAX_PASTED) if error == "-" else error
    if not text.strip():
        raise RigError(
            what="the error text is empty",
            fix="journalctl needs root or the group systemd-journal; try: journalctl -u llama-NAME -n 200",
        )
    return text


def _hosts(
    hosts: list[str], all_: bool, save: Path | None, *, ask_become_pass: bool
) -> dict[str, list[Diagnosis] | RigError]:
    from llamarig.cli.ask import asked_password
    from llamarig.cli.choose import choose
    from llamarig.cli.context import project_root
    from llamarig.converge.collect import collect_hosts
    from llamarig.converge.wanted import spec_of
    from llamarig.errors import RigError
    from llamarig.prove.doctor import examine
    from llamarig.prove.doctor.bundle import read_bundle

    chosen = choose(hosts, all_, "doctor")
    if save is not None and len(chosen) != 1:
        raise RigError(what="--save writes the words of one host", fix="name one host")
    found: dict[str, list[Diagnosis] | RigError] = {}
    with asked_password(ask_become_pass) as password:
        collected = collect_hosts(project_root(), chosen, become_password_file=password)
    for loaded, said in zip(chosen, collected.values(), strict=True):
        if isinstance(said, RigError):
            found[loaded.host] = said
            continue
        if save is not None:
            _save(save, said)
        spec = spec_of(loaded)
        limits = {
            card.bus_id: float(card.power_limit_w)
            for card in spec.gpus.values()
            if card.bus_id is not None and card.power_limit_w is not None
        }
        found[loaded.host] = examine(read_bundle(said), limits)
    return found


def _save(path: Path, said: dict[str, Any]) -> None:
    import json

    from llamarig.errors import RigError
    from llamarig.prove.doctor.scrub import scrub

    try:
        with path.open("x", encoding="utf-8") as stream:
            json.dump(scrub(said), stream, indent=1, ensure_ascii=True)
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise RigError(
            what="the bundle cannot be written", where=str(path), why=why, fix="name a file that is not there"
        ) from problem


def _status(found: dict[str, list[Diagnosis] | RigError]) -> int:
    from llamarig.errors import ExitCode, RigError

    codes = [ExitCode.OK]
    for each in found.values():
        if isinstance(each, RigError):
            codes.append(each.code)
        elif any(diagnosis.severity != "note" for diagnosis in each):
            codes.append(ExitCode.FINDING)
    return int(max(codes))


def _print_json(found: dict[str, list[Diagnosis] | RigError]) -> None:
    from llamarig.cli.context import emit_json
    from llamarig.cli.host_error import error_json
    from llamarig.errors import RigError

    documents = [
        {"subject": subject, "diagnoses": [], "error": error_json(each)}
        if isinstance(each, RigError)
        else {"subject": subject, "diagnoses": [diagnosis.to_json() for diagnosis in each]}
        for subject, each in found.items()
    ]
    emit_json(documents[0] if len(documents) == 1 else {"subjects": documents})


def _print(subject: str, found: list[Diagnosis]) -> None:
    from rich.markup import escape

    from llamarig.cli.context import out

    if not found:
        out().print(f"{escape(subject)}: [green]nothing known is wrong[/]")
        return
    out().print(f"{escape(subject)}: {_counted(found)}")
    marks = {"error": "[bold red]error[/]", "warning": "[yellow]warning[/]", "note": "[cyan]note[/]"}
    for each in found:
        out().print(f"  {marks[each.severity]} {escape(each.code)}: {escape(each.what)}", soft_wrap=True)
        for label, words in (("seen", each.evidence), ("cause", each.cause), ("fix", each.fix)):
            if words:
                out().print(f"    {label}: {escape(words)}", soft_wrap=True)


def _counted(found: list[Diagnosis]) -> str:
    counts = {severity: sum(each.severity == severity for each in found) for severity in ("error", "warning", "note")}
    return ", ".join(f"{count} {severity}{'s' * (count != 1)}" for severity, count in counts.items() if count)
