"""``llamarig check``: every error of every spec in one run, each with file, line and a fix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost, Project
    from llamarig.spec.problem import SpecProblem

_INVENTORY = "inventory"
_ERROR = "[red]error[/]  "
_WARNING = "[yellow]warning[/]"


def check(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Spec files, directories or hosts; by default the whole project.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Check the whole project, which is the default.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Read all specs and report every error with file, line and a fix."""
    import gc

    from llamarig.cli.context import emit_json

    # Nothing here makes cycles, and looking for some is a sixth of a fleet's check.
    gc.disable()
    project = _chosen([] if all_ else paths or [])
    if not project.hosts and not project.errors:
        raise RigError(
            what="no host spec found",
            where=str(project.root),
            fix="write one with `llamarig init`, or name the project's directory with -C",
        )
    if json_:
        emit_json(_as_json(project))
    else:
        _print(project)
    if project.errors or any(host.errors for host in project.hosts):
        raise typer.Exit(int(ExitCode.BAD_INPUT))


def _chosen(paths: list[Path]) -> Project:
    """What the arguments name, as one project; each host once."""
    from llamarig.cli.context import load, project_root
    from llamarig.spec.load import Project

    if not paths:
        return load()
    whole = Project(project_root(), [])
    for path in paths:
        if path.exists() or path.suffix or len(path.parts) > 1:
            part = _load(path.resolve())
        else:
            part = Project(project_root(), [load().named(str(path))])
        whole.errors += [each for each in part.errors if each not in whole.errors]
        whole.warnings += [each for each in part.warnings if each not in whole.warnings]
        known = {host.path for host in whole.hosts}
        whole.hosts += [host for host in part.hosts if host.path not in known]
    return whole


def _load(path: Path) -> Project:
    from llamarig.cli.context import overlay
    from llamarig.spec.load import load_files, load_project
    from llamarig.spec.natural import natural_path

    laid = overlay()
    if not path.exists():
        raise RigError(what="no such file or directory", where=str(path), fix="name a spec file, a directory or a host")
    if path.name == "fleet.yml":
        path = path.parent
    inventory = next((each for each in (path, *path.parents) if each.name == _INVENTORY and each.is_dir()), None)
    if path.is_dir():
        if inventory is None or (path / _INVENTORY).is_dir():
            return load_project(path, laid)
        return load_files(inventory.parent, sorted(path.rglob("*.yml"), key=natural_path), inventory, laid)
    top = inventory if inventory is not None else path.parent
    return load_files(top.parent if inventory is not None else top, [path], top, laid)


def _near(path: Path) -> str:
    """A path as the user would write it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _as_json(project: Project) -> dict[str, Any]:
    data: dict[str, Any] = {
        "hosts": [
            {
                "host": host.host,
                "valid": not host.errors,
                "errors": [_problem(each) for each in host.errors],
                "warnings": [_problem(each) for each in host.warnings],
                "notes": [_problem(each) for each in host.notes],
            }
            for host in project.hosts
        ]
    }
    if project.errors:
        data["errors"] = [_problem(each) for each in project.errors]
    if project.warnings:
        data["warnings"] = [_problem(each) for each in project.warnings]
    return data


def _problem(problem: SpecProblem) -> dict[str, str | int]:
    return dict(problem.to_json(), path=_near(problem.path))


def _print(project: Project) -> None:
    from rich.markup import escape

    from llamarig.cli.context import out

    files, shared = _sorted(project)
    for path, entries in files.items():
        out().print(f"[bold]{escape(_near(path))}[/]", soft_wrap=True)
        for each, label in entries:
            _print_problem(f"line {each.line:<4} {label}", each.message, each.fix)
    if shared:
        out().print("[bold]in several files[/]")
    for (label, message, fix), count in shared.items():
        _print_problem(label, f"{message} ({_count(count, 'host')})", fix)
    out().print(_summary(project, {each for found, _ in _problems(project) for each in found}), soft_wrap=True)


def _print_problem(lead: str, message: str, fix: str) -> None:
    from rich.markup import escape
    from rich.text import Text

    from llamarig.cli.rows import print_hanging

    width = Text.from_markup(lead).cell_len
    print_hanging(f"{lead} {escape(message)}", indent=2, hang=width + 1)
    if fix:
        print_hanging(f"[dim]fix:[/]    {escape(fix)}", indent=2 + width - len("warning"), hang=len("warning "))


Shared = dict[tuple[str, str, str], int]
"""Label, message and fix of what several files say in the same words, with the number of hosts."""


def _sorted(project: Project) -> tuple[dict[Path, list[tuple[SpecProblem, str]]], Shared]:
    """Every problem once below its file; what is no error and stands in several files is told apart, once."""
    hosts: Shared = {}
    places: dict[tuple[str, str, str], set[Path]] = {}
    entries: dict[tuple[SpecProblem, str], None] = {}
    for found, label in _problems(project):
        for each in dict.fromkeys(found):
            key = (label, each.message, each.fix)
            hosts[key] = hosts.get(key, 0) + 1
            places.setdefault(key, set()).add(each.path)
            entries[each, label] = None
    shared = {key: count for key, count in hosts.items() if key[0] != _ERROR and len(places[key]) > 1}
    files: dict[Path, list[tuple[SpecProblem, str]]] = {}
    for each, label in entries:
        if (label, each.message, each.fix) not in shared:
            files.setdefault(each.path, []).append((each, label))
    return files, shared


def _problems(project: Project) -> list[tuple[list[SpecProblem], str]]:
    found = [(project.errors, _ERROR), (project.warnings, _WARNING)]
    for host in project.hosts:
        found += [(host.errors, _ERROR), (host.warnings, _WARNING), (host.notes, "[dim]note[/]   ")]
    return found


def _summary(project: Project, seen: set[SpecProblem]) -> str:
    bad: list[LoadedHost] = [host for host in project.hosts if host.errors]
    warnings = {*project.warnings, *(each for host in project.hosts for each in host.warnings)}
    notes = {each for host in project.hosts for each in host.notes}
    errors = len(seen) - len(warnings) - len(notes)
    noted = f", {_count(len(notes), 'note')}" if notes else ""
    return (
        f"{_count(len(project.hosts), 'host')}: {len(project.hosts) - len(bad)} valid, {len(bad)} with errors "
        f"({_count(errors, 'error')}, {_count(len(warnings), 'warning')}{noted})"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
