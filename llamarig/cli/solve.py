"""``llamarig plan HOST --solve``: the largest value of one setting that fits, in words or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from llamarig.cli.context import emit_json
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.plan.solve import Bound, Solution
    from llamarig.spec.host import HostSpec


def show_solutions(found: list[Solution], json_: bool) -> None:
    """Print solutions; exit 1 when nothing fits on one of the hosts."""
    if json_:
        reports = [each.to_json() for each in found]
        emit_json(reports[0] if len(reports) == 1 else {"hosts": reports})
    else:
        for each in found:
            _show(each)
    if any(each.value is None for each in found):
        raise typer.Exit(int(ExitCode.FINDING))


def solutions(specs: list[HostSpec], root: Path, what: str | None, service: str | None) -> list[Solution]:
    """Solve for each host; ``--service`` belongs to ``--solve``."""
    from llamarig.plan.solve import solve_project

    if what is None:
        raise RigError(what="--service is given without --solve", fix="add --solve context, for example")
    return [solve_project(spec, root, what, service) for spec in specs]


def _show(solution: Solution) -> None:
    from rich.markup import escape

    from llamarig.cli.plan_view.words import change_words
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
    if solution.change and solution.value != solution.now:
        print_hanging(escape(f"in the spec: {change_words(solution.change)}"), indent=2, hang=2)


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
