"""``llamarig advise``: which quant of a model suits a card, and with what window."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Annotated

import typer

from llamarig.cli.context import emit_json, out, project_root
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.catalog.known_files import Table
    from llamarig.plan.advise import Advice, AtHand, Row

_COLOURS = {
    "recommended": "bold green",
    "fits": "green",
    "usable": "yellow",
    "narrow-cache": "yellow",
    "layers-in-ram": "yellow",
    "not-recommended": "dim",
    "not-a-host": "red",
    "does-not-fit": "red",
}
_HEAD = ("bits", "verdict", "quant", "GB", "free MiB", "f16", "q8_0", "q4_0", "tok/s")
_GB = 1e9


def advise(
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="A card of the catalog, or several with commas between.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="A model whose files are known, or one of its repositories or files.")
    ] = None,
    *,
    context: Annotated[
        int, typer.Option("--context", min=256, max=16_777_216, help="Tokens that one request must have.")
    ] = 32_768,
    no_projector: Annotated[
        bool, typer.Option("--no-projector", help="Text only, for a model that could see as well.")
    ] = False,
    display: Annotated[bool, typer.Option("--display", help="A display hangs on the first card.")] = False,
    ram_gb_s: Annotated[
        float | None, typer.Option("--ram-gb-s", min=1.0, help="Bandwidth of the host's RAM, for layers in it.")
    ] = None,
    price_kwh: Annotated[
        float | None, typer.Option("--price-kwh", min=0.0, help="Price of a kWh: reckons what a month costs.")
    ] = None,
    tokens_in: Annotated[float, typer.Option("--tokens-in", min=0.0, help="Tokens read a month.")] = 10e6,
    tokens_out: Annotated[float, typer.Option("--tokens-out", min=0.0, help="Tokens generated a month.")] = 2e6,
    hosted_in: Annotated[
        float | None, typer.Option("--hosted-in", min=0.0, help="A hosted offer's price of a million tokens read.")
    ] = None,
    hosted_out: Annotated[
        float | None, typer.Option("--hosted-out", min=0.0, help="And of a million generated.")
    ] = None,
    hardware: Annotated[float, typer.Option("--hardware", min=0.0, help="Price of what is bought for it.")] = 0.0,
    years: Annotated[float, typer.Option("--years", min=0.1, help="Years over which the hardware is paid.")] = 4.0,
    list_: Annotated[bool, typer.Option("--list", help="List the models and cards that are known.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Rank the known files of a model for a card, from exact sizes and the memory model."""
    from llamarig.catalog.known_files import table
    from llamarig.plan.advise import Money, Question, card_names
    from llamarig.plan.advise import advise as weigh
    from llamarig.speed.economics import Hosted

    for flag, given in (
        ("--ram-gb-s", ram_gb_s),
        ("--price-kwh", price_kwh),
        ("--tokens-in", tokens_in),
        ("--tokens-out", tokens_out),
        ("--hosted-in", hosted_in),
        ("--hosted-out", hosted_out),
        ("--hardware", hardware),
        ("--years", years),
    ):
        if given is not None and not isfinite(given):
            raise RigError(what=f"{flag} is {given}", fix="give a number that there is")
    known = table(project_root())
    if list_:
        _list(known, as_json=json_)
        return
    if gpu is None or model is None:
        raise RigError(
            what=f"{'no card' if gpu is None else 'no model'} is named",
            fix="advise --gpu rtx-4090 --model qwen3.8-27b; `llamarig advise --list` names all",
        )
    hosted = None
    if hosted_in is not None or hosted_out is not None:
        hosted = Hosted(input_million=hosted_in or 0.0, output_million=hosted_out or 0.0)
    if price_kwh is None and (hosted or hardware):
        raise RigError(what="a month's cost needs the price of electricity", fix="add --price-kwh, such as 0.30")
    money = None if price_kwh is None else Money(price_kwh, tokens_in, tokens_out, hosted, hardware, years)
    question = Question(card_names(gpu), known.model(model), context, not no_projector, display, ram_gb_s, money)
    found = weigh(question, known, _at_hand())
    if json_:
        emit_json(found.to_json())
    else:
        _show(found)
    if not found.host:
        raise typer.Exit(int(ExitCode.FINDING))


def _list(known: Table, *, as_json: bool) -> None:
    """The models and cards by the names that the command takes."""
    from llamarig.catalog import gpus
    from llamarig.cli.rows import print_hanging

    counts = {name: sum(each.size is not None for each in known.of(name)) for name in known.models}
    models = {name: count for name, count in counts.items() if count}
    cards = {name: round(card.total_mib) for name, card in gpus.cards().items()}
    if as_json:
        emit_json({"models": models, "cards": cards})
        return
    listed = ", ".join(f"{name} ({count} file{'' if count == 1 else 's'})" for name, count in models.items())
    print_hanging(f"[bold]models[/]: {listed}", hang=2)
    print_hanging(f"[bold]cards[/]: {', '.join(f'{name} ({mib:,} MiB)' for name, mib in cards.items())}", hang=2)


def _at_hand() -> AtHand:
    """Headers that the project or the cache holds, by the file's hash."""
    from llamarig.catalog.known_files import UNLOCKED, KnownFile
    from llamarig.gguf import Header, find_header
    from llamarig.spec.models import ModelFile

    root = project_root()

    def header(file: KnownFile) -> Header | None:
        if file.sha256 == UNLOCKED or file.size is None:
            return None
        keys = {"repo": file.repo, "revision": file.revision, "file": file.file}
        return find_header(ModelFile.model_validate({**keys, "sha256": file.sha256, "size": file.size}), root)

    return header


def _show(advice: Advice) -> None:
    from rich.markup import escape

    from llamarig.cli.rows import print_hanging, print_records
    from llamarig.plan.advise.month import month_words

    asked = advice.question
    cards = " and ".join(asked.gpus)
    print_hanging(f"[bold]{escape(asked.model)}[/] on {escape(cards)}: {escape(advice.summary)}", hang=2)
    for note in advice.notes:
        print_hanging(f"[yellow]note[/]: {escape(note)}", hang=2)
    out().print()
    print_records(_HEAD, [_cells(row) for row in advice.rows], indent=2)
    out().print()
    for row in advice.rows:
        reasons = escape("; ".join(row.reasons))
        print_hanging(f"[{_COLOURS[row.verdict]}]{row.bits} bits[/] {escape(row.name)}: {reasons}", indent=2, hang=4)
    out().print()
    for row in advice.rows:
        if row.month is not None:
            print_hanging(f"a month with {row.bits} bits: {escape(month_words(row.month))}", indent=2, hang=4)
    for words in _basis(advice):
        print_hanging(f"[dim]{escape(words)}[/]", indent=2, hang=2)


def _cells(row: Row) -> list[str]:
    windows = [f"{tokens:,}" if tokens else "-" for tokens in row.windows.values()] or ["-", "-", "-"]
    free = ", ".join(f"{mib:,.0f}" for mib in row.free_mib.values()) or "-"
    if row.decode_tok_s is not None:
        speed = f"{row.decode_tok_s:,.0f}"
    else:
        speed = "-" if row.decode_at_most is None else f"<= {row.decode_at_most:,.1f}"
    colour = _COLOURS[row.verdict]
    size = f"{row.file.most_bytes / _GB:.2f}"
    return [str(row.bits), f"[{colour}]{row.verdict}[/]", row.file.quant or "", size, free, *windows, speed]


def _basis(advice: Advice) -> list[str]:
    """What the figures rest on."""
    asked = advice.question
    words = [
        f"of each class the largest known file that leaves room beside {asked.context:,} tokens in f16, "
        "else the largest that holds them, else the smallest; "
        "f16, q8_0, q4_0: the longest window with that cache; tok/s with the window full, without drafts",
    ]
    if any(row.composed for row in advice.rows):
        words.append(
            "no header of some of these files is at hand: their layout is composed from the model's dimensions and the "
            "file's exact bytes"
        )
    if any(row.month for row in advice.rows):
        words.append(
            "a month: one request after the other at the speeds of a full window and the card's board power, "
            "the rest of the machine and its idle hours left out; money in the currency of --price-kwh"
        )
    if advice.rounded:
        words.append(f"left out: {advice.rounded} files of which only a rounded size is known")
    return words
