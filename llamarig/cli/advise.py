"""``llamarig advise``: which quant of a model suits a card, and with what window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from llamarig.cli.context import emit_json, out, project_root
from llamarig.errors import ExitCode

if TYPE_CHECKING:
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
    gpu: Annotated[str, typer.Option("--gpu", help="A card of the catalog, or several with commas between.")],
    model: Annotated[str, typer.Option("--model", help="A model whose files are known.")],
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
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Rank the known files of a model for a card, from exact sizes and the memory model."""
    from llamarig.catalog.known_files import table
    from llamarig.plan.advise import Question, card_names
    from llamarig.plan.advise import advise as weigh

    known = table(project_root())
    question = Question(card_names(gpu), known.model(model), context, not no_projector, display, ram_gb_s)
    found = weigh(question, known, _at_hand())
    if json_:
        emit_json(found.to_json())
    else:
        _show(found)
    if not found.host:
        raise typer.Exit(int(ExitCode.FINDING))


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

    asked = advice.question
    cards = " and ".join(asked.gpus)
    print_hanging(f"[bold]{escape(asked.model)}[/] on {escape(cards)}: {escape(advice.summary)}", hang=2)
    out().print()
    print_records(_HEAD, [_cells(row) for row in advice.rows], indent=2)
    out().print()
    for row in advice.rows:
        reasons = escape("; ".join(row.reasons))
        print_hanging(f"[{_COLOURS[row.verdict]}]{row.bits} bits[/] {escape(row.name)}: {reasons}", indent=2, hang=4)
    out().print()
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
        f"of each class the largest known file that holds {asked.context:,} tokens in f16, else the smallest; "
        "f16, q8_0, q4_0: the longest window with that cache; tok/s with the window full, without drafts",
    ]
    if any(row.composed for row in advice.rows):
        words.append(
            "no header of some of these files is at hand: their layout is composed from the model's dimensions and the "
            "file's exact bytes"
        )
    if advice.rounded:
        words.append(f"left out: {advice.rounded} files of which only a rounded size is known")
    return words
