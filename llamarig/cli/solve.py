"""``llamarig plan HOST --solve``: the largest value of one setting that fits, in words or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from llamarig.cli.context import emit_json, out
from llamarig.cli.host_error import complain, error_json
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.plan.solve import Bound, Solution
    from llamarig.spec.load import LoadedHost

    Solved = tuple[str, Solution | RigError]


def show_solutions(found: list[Solved], json_: bool) -> None:
    """Print solutions and what keeps a host from having one; exit 1 when nothing fits on one of the hosts."""
    if json_:
        reports = [
            {"host": host, "error": error_json(each)} if isinstance(each, RigError) else each.to_json()
            for host, each in found
        ]
        emit_json(reports[0] if len(reports) == 1 else {"hosts": reports})
    code = ExitCode.OK
    for host, each in found:
        if isinstance(each, RigError):
            complain(host, each)
            code = max(code, each.code)
            continue
        if not json_:
            _show(each)
        if each.value is None:
            code = max(code, ExitCode.FINDING)
    raise typer.Exit(int(code))


def solutions(chosen: list[LoadedHost], root: Path, what: str | None, service: str | None) -> list[Solved]:
    """Solve for each host, or say why one cannot be; raises the error of a single one.

    ``--service`` belongs to ``--solve``. A setting that there is not is the command's error, and no host's.
    """
    from llamarig.plan.solve import require_what

    if what is None:
        raise RigError(what="--service is given without --solve", fix="add --solve context, for example")
    require_what(what)
    found: list[Solved] = [(loaded.host, _solution(loaded, root, what, service)) for loaded in chosen]
    if len(found) == 1 and isinstance(found[0][1], RigError):
        raise found[0][1]
    return found


def _solution(loaded: LoadedHost, root: Path, what: str, service: str | None) -> Solution | RigError:
    from llamarig.plan.solve import solve_project
    from llamarig.spec.problem import combined

    if loaded.spec is None:
        return combined(loaded.errors, loaded.path)
    try:
        return solve_project(loaded.spec, root, what, service)
    except RigError as error:
        return error


def _show(solution: Solution) -> None:
    from rich.markup import escape

    from llamarig.cli.plan_view.words import change_yaml
    from llamarig.cli.rows import print_hanging

    head = f"[bold]{escape(solution.host)}[/] {escape(solution.service)}: {solution.what}"
    if solution.value is None:
        print_hanging(f"{head} [bold red]no value fits[/]")
    else:
        now = "as in the spec" if solution.value == solution.now else f"now {_value(solution.now)}"
        print_hanging(f"{head} [bold green]{escape(_value(solution.value))}[/] ({escape(now)})")
        free = ", ".join(f"{mib:,.0f} MiB on {gpu}" for gpu, mib in solution.free_mib.items())
        if free:
            print_hanging(escape(f"free then: {free}"), indent=2)
        print_hanging(f"a slot then holds {solution.slot_context:,} tokens", indent=2)
    print_hanging(escape(bound_words(solution.bound)), indent=2)
    for finding in solution.findings:
        print_hanging(f"[yellow]{finding.severity}[/] {finding.code}: {escape(finding.message)}", indent=2, hang=2)
        print_hanging(f"fix: {escape(finding.fix)}", indent=4, hang=5)
    if solution.change and solution.value != solution.now:
        print_hanging("in the spec:", indent=2)
        for line in change_yaml(solution.service, solution.change).splitlines():
            out().print(escape(f"    {line}"), soft_wrap=True)


def _value(value: int | str | None) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else value


def bound_words(bound: Bound) -> str:
    """What keeps the value from being larger."""
    if bound.by in ("gpu", "ram"):
        place = f"card {bound.where}" if bound.by == "gpu" else "the host's RAM"
        return f"bounded by {place}: {_value(bound.next)} is {_mib(bound.short_mib)} MiB short"
    if bound.by == "spec" and bound.where:
        return f"bounded by what a spec may say: {bound.where}"
    return {
        "trained-length": "bounded by the length that the model was trained for; there is memory for more",
        "spec": "bounded by what a spec may say; there is memory for more",
        "batch": "bounded by `batch`: no pass is longer; there is memory for more",
        "files": "the largest file that is known of this model fits",
        "error": f"bounded by an error of the plan that memory does not cure: {bound.where}",
    }[bound.by]


def _mib(short: float) -> str:
    """Whole MiB, and two digits below one, where 0 would be a riddle."""
    return f"{short:,.0f}" if short >= 1 else f"{short:.2f}"
