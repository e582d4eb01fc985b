"""A plan for people: a bar and a table for each card and for RAM, what was found, what would fit instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.text import Text

from llamarig.cli.context import out
from llamarig.cli.plan_view.bar import Mark, ruler, stretches
from llamarig.cli.plan_view.basis import KEYS, Basis, bracketed, in_order
from llamarig.cli.plan_view.table import INDENT, show_terms
from llamarig.cli.plan_view.words import change_words, effect_words, of_worst_first, refusal_words, speed_words
from llamarig.cli.rows import print_hanging
from llamarig.plan.short import memory_fits
from llamarig.plan.speed import speed_json

if TYPE_CHECKING:
    from llamarig.plan import DevicePlan, Plan

COLOURS = {
    "weights": "blue",
    "kv-cache": "yellow",
    "recurrent-state": "green",
    "draft-weights": "bright_blue",
    "draft-kv-cache": "bright_yellow",
    "compute": "magenta",
    "draft-compute": "bright_magenta",
    "projector": "cyan",
    "process": "white",
}
_SEVERITIES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_WIDEST_BAR = 120


def show(plan: Plan) -> None:
    """Print the plan on standard output."""
    basis = Basis(plan)
    print_hanging(headline(plan))
    for device in plan.devices:
        apart()
        _show_device(device, basis)
    apart()
    _show_ram(plan, basis)
    _show_speeds(plan)
    if plan.findings:
        apart()
    for finding in of_worst_first(plan.findings):
        colour = _SEVERITIES[finding.severity]
        print_hanging(f"[{colour}]{finding.severity}[/] {finding.code}: {escape(finding.message)}", hang=2)
        if finding.fix:
            print_hanging(f"fix: {escape(finding.fix)}", indent=2, hang=5)
    show_alternatives(plan)


def apart() -> None:
    """Print an empty line between parts, on a terminal alone: elsewhere a plan is read by line."""
    if out().is_terminal:
        out().print()


def headline(plan: Plan) -> str:
    """The host and whether it fits, as console markup; what is not known is said before what fits.

    What is refused for another reason than memory is said to be refused, and why.
    """
    host = escape(plan.host)
    if not plan.fits:
        return f"[bold]{host}[/] [bold red]{escape(refusal_words(plan.findings))}[/]"
    if missing := Basis(plan).missing():
        return f"[bold]{host}[/] [yellow]not known: {missing} is missing, run `llamarig lock {host}`[/]"
    composed = ", [yellow]with a composed header[/]" if Basis(plan).composed else ""
    return f"[bold]{host}[/] [green]fits[/]{composed}"


def _show_device(device: DevicePlan, basis: Basis) -> None:
    name = escape(device.gpu)
    if not device.total_mib:
        print_hanging(f"[bold]{name}[/]: its memory is not known")
    elif not device.services:
        print_hanging(f"[bold]{name}[/]: nothing is placed here, {device.usable_mib:,.0f} MiB are usable")
        return
    else:
        print_hanging(f"[bold]{name}[/]: {_room(device, basis)}")
        usable = device.usable_mib
        kept = [Mark("m", usable - device.margin_mib)] if device.margin_mib else []
        marks = [*kept, Mark("u", usable), Mark("t", device.total_mib)]
        over = (usable, device.used_mib) if device.free_mib < 0 else None
        said = [f"m {kept[0].mib:,.0f} usable less the margin"] if kept else []
        said += [f"u {usable:,.0f} usable{bracketed(basis.usable(device.gpu))}", f"t {device.total_mib:,.0f} reported"]
        show_bar(device.components, max(device.total_mib, device.used_mib), marks, said, over)
    show_terms(device.services, lambda term, held: basis.term(term, held, device.gpu))


def _room(device: DevicePlan, basis: Basis) -> str:
    """What is used and what is left of a card, in words."""
    words = (
        f"{device.used_mib:,.0f} of {device.usable_mib:,.0f} MiB usable{bracketed(basis.usable(device.gpu))}, "
        f"{device.total_mib:,.0f} reported"
    )
    open_ = basis.undecided(device.gpu)
    if device.free_mib < 0:
        colour = "yellow" if open_ else "bold red"
        return f"{words}, [{colour}]{-device.free_mib:,.0f} too many{open_}[/], margin {device.margin_mib:,.0f}"
    kept = "" if device.free_mib >= device.margin_mib else f" [yellow]not kept{open_}[/]"
    return f"{words}, {device.free_mib:,.0f} free, margin {device.margin_mib:,.0f}{kept}"


def _show_ram(plan: Plan, basis: Basis) -> None:
    ram = plan.ram
    used = ram.used_mib
    if ram.total_mib:
        limit = ram.total_mib - ram.reserve_mib
        left = f"{limit - used:,.0f} free" if used <= limit else f"[bold red]{used - limit:,.0f} too many[/]"
        print_hanging(f"[bold]RAM[/]: {used:,.0f} of {ram.total_mib:,.0f} MiB, {ram.reserve_mib:,.0f} reserved, {left}")
        kept = [Mark("m", limit)] if ram.reserve_mib else []
        said = [f"m {limit:,.0f} total less the reserve"] if kept else []
        over = (limit, used) if used > limit else None
        marks = [*kept, Mark("t", ram.total_mib)]
        show_bar(ram.components, max(ram.total_mib, used), marks, [*said, f"t {ram.total_mib:,.0f} total"], over)
    else:
        print_hanging(f"[bold]RAM[/]: {used:,.0f} MiB; the spec does not say how much there is")
        show_bar(ram.components, used)
    show_terms(ram.services, basis.term, plan.ram_detail)


def _show_speeds(plan: Plan) -> None:
    """How fast each service is expected to be, or why nobody says so."""
    if plan.speeds:
        apart()
    for name, speed in plan.speeds.items():
        words = speed_words(speed_json(speed), plan.speeds_unknown.get(name), fits=memory_fits(plan))
        print_hanging(f"[bold]{escape(name)}[/]: {escape(words)}")


def show_bar(
    components: Mapping[str, float],
    whole: float,
    marks: Sequence[Mark] = (),
    said: Sequence[str] = (),
    over: tuple[float, float] | None = None,
) -> None:
    """Print a bar that stands for ``whole`` MiB, with the ruler of its marks; they are ``said`` in words below it.

    On a terminal alone, since its figures stand in the table too.
    """
    width = min(out().width - 2 * INDENT, _WIDEST_BAR)
    if not out().is_terminal or whole <= 0 or width < 1:
        return
    plain = out().options.ascii_only
    bar = Text(" " * INDENT)
    for term, columns in stretches(in_order(components), whole, width):
        colour = COLOURS.get(term, "white")
        bar.append(KEYS.get(term, "?"), style=f"black on {colour}")
        bar.append(("=" if plain else "█") * (columns - 1), style=colour)
    bar.append(("." if plain else "·") * (width + INDENT - bar.cell_len), style="dim")
    out().print(bar, soft_wrap=True)
    if marks:
        line = ruler(marks, whole, width, over)
        out().print(Text(" " * INDENT + line, style="bold red" if over else "bold"), soft_wrap=True)
        print_hanging(escape(", ".join(said)), indent=INDENT, hang=0)


def show_alternatives(plan: Plan) -> None:
    """Print what would fit instead, in order of harm."""
    if plan.alternatives:
        apart()
        out().print("[bold]what would fit instead[/], each planned:")
    for entry in plan.alternatives:
        words = f"{entry['service']}: {change_words(entry['change'])} ({effect_words(entry)})"
        print_hanging(escape(words), indent=2)
