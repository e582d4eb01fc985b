"""``llamarig plan``: memory, arguments and findings before anything is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from llamarig.cli.context import emit_json, out, project_root, select
from llamarig.errors import ExitCode

if TYPE_CHECKING:
    from llamarig.plan import DevicePlan, Finding, Plan

_BAR = 40
_COLOURS = ("cyan", "blue", "magenta", "green", "yellow", "bright_blue", "bright_magenta", "bright_green", "white")
_SIZES_UNKNOWN = {"header-unknown": "the model's header", "projector-size-unknown": "the projector's size"}
"""Findings after which a plan is a lower bound, and what is missing then."""
_SEVERITIES = {"error": "red", "warning": "yellow", "note": "dim"}


def plan(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts to plan.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Plan every host of the project.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    argv: Annotated[bool, typer.Option("--argv", help="Show every service's arguments and environment.")] = False,
) -> None:
    """Compute memory, arguments and findings before anything is touched."""
    import gc

    from llamarig.plan import plan_json, plan_project

    # Nothing here makes cycles, and looking for some is a sixth of a fleet's plan.
    gc.disable()
    root = project_root()
    plans = [plan_project(loaded.spec, root) for loaded in select(hosts or [], all_) if loaded.spec is not None]
    if json_:
        reports = [plan_json(each) for each in plans]
        emit_json(reports[0] if len(reports) == 1 else {"hosts": reports})
    else:
        for each in plans:
            _show(each, argv)
    if not all(each.fits for each in plans):
        raise typer.Exit(int(ExitCode.FINDING))


def _show(plan: Plan, argv: bool) -> None:
    from rich.markup import escape

    from llamarig.cli.rows import print_hanging

    print_hanging(f"[bold]{escape(plan.host)}[/] {_verdict(plan)}")
    for device in plan.devices:
        print_hanging(_device_line(device))
        if device.services:
            _show_terms(device.services)
    ram = plan.ram
    of = f" of {ram.total_mib:,.0f} MiB, {ram.reserve_mib:,.0f} reserved" if ram.total_mib else " MiB"
    out().print(f"RAM: {ram.used_mib:,.0f}{of}")
    _show_terms(ram.services)
    for finding in plan.findings:
        _show_finding(finding)
    _show_alternatives(plan)
    if argv:
        _show_arguments(plan)


def _verdict(plan: Plan) -> str:
    """The headline; what is not known is said before what fits."""
    from rich.markup import escape

    if not plan.fits:
        return "[bold red]does not fit[/]"
    codes = {finding.code for finding in plan.findings}
    unknown = next((words for code, words in _SIZES_UNKNOWN.items() if code in codes), None)
    if unknown is None:
        return "[green]fits[/]"
    return f"[yellow]not known: {unknown} is missing, run `llamarig lock {escape(plan.host)}`[/]"


def _device_line(device: DevicePlan) -> str:
    from rich.markup import escape

    bar = _bar(device)
    return (
        f"{escape(device.gpu)}: {bar} {device.used_mib:,.0f} of {device.usable_mib:,.0f} MiB usable "
        f"({device.total_mib:,.0f} reported), {device.free_mib:,.0f} free, margin {device.margin_mib:,.0f}"
    )


def _bar(device: DevicePlan) -> str:
    """One coloured stretch a term, the free rest in dots; red when it is more than there is."""
    scale = _BAR / max(device.usable_mib, device.used_mib, 1.0)
    drawn = 0
    edge = 0.0
    parts = []
    for number, mib in enumerate(device.components.values()):
        edge += mib
        width = round(edge * scale) - drawn
        drawn += width
        colour = "red" if device.free_mib < 0 else _COLOURS[number % len(_COLOURS)]
        parts.append(f"[{colour}]{'█' * width}[/]")
    return "".join(parts) + f"[dim]{'·' * (_BAR - drawn)}[/]"


def _show_terms(services: dict[str, dict[str, float]]) -> None:
    from rich.markup import escape

    from llamarig.cli.rows import print_rows

    terms = dict.fromkeys(term for held in services.values() for term in held)
    rows = [["MiB", *(escape(name) for name in services)]]
    for term in terms:
        rows.append([term, *(f"{held[term]:,.2f}" if term in held else "" for held in services.values())])
    print_rows(rows, indent=4, right=True)


def _show_finding(finding: Finding) -> None:
    from rich.markup import escape

    from llamarig.cli.rows import print_hanging

    colour = _SEVERITIES[finding.severity]
    print_hanging(f"[{colour}]{finding.severity}[/] {finding.code}: {escape(finding.message)}", hang=2)
    if finding.fix and finding.severity != "note":
        print_hanging(f"fix: {escape(finding.fix)}", indent=2, hang=5)


def _show_alternatives(plan: Plan) -> None:
    from rich.markup import escape

    from llamarig.cli.rows import print_hanging

    if plan.alternatives:
        out().print("[bold]what would fit instead[/], each planned:")
    for entry in plan.alternatives:
        change = ", ".join(f"{key}: {_flow(value)}" for key, value in entry["change"].items())
        free = ", ".join(f"{mib:,.0f} MiB free on {gpu}" for gpu, mib in entry["free-mib"].items())
        effect = "; ".join(filter(None, (entry["harm"], free)))
        print_hanging(escape(f"{entry['service']}: {change} ({effect})"), indent=2)


def _flow(value: Any) -> str:
    """A value as one writes it in a spec, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _show_arguments(plan: Plan) -> None:
    import shlex

    from rich.markup import escape

    for name, service in plan.services.items():
        out().print(f"[bold]{escape(name)}[/]")
        for key, value in service.environment.items():
            out().print(escape(f"  {key}={shlex.quote(value)}"))
        out().print(escape(f"  {shlex.join(service.argv)}"), soft_wrap=True)
