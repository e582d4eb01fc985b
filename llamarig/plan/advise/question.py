"""What advice is asked for, with every name looked up."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from llamarig.catalog import gpus
from llamarig.errors import RigError
from llamarig.plan.advise.month import Money

CONTEXT = 32_768
"""Tokens that a window must hold when nobody says how many: what the sizing guide weighs cards by."""


@dataclass(frozen=True)
class Question:
    """Cards, a model, and what it must do on them."""

    gpus: tuple[str, ...]
    """The catalog's names; several: the model is split over them."""
    model: str
    """The name in the table of known files."""
    context: int = CONTEXT
    """Tokens that one request must have."""
    projector: bool = True
    """Whether a model that sees gets its projector, on the first card."""
    display: bool = False
    """Whether a display hangs on the first card."""
    ram_gb_s: float | None = None
    """Bandwidth of the host's RAM, 10^9 bytes a second, for what does not fit on the cards."""
    money: Money | None = None
    """What a month is to be reckoned with."""

    @property
    def cards(self) -> dict[str, str]:
        """The catalog's name of each card by a name of its own."""
        twice = len(set(self.gpus)) < len(self.gpus)
        return {f"{name}-{at}" if twice else name: name for at, name in enumerate(self.gpus, 1)}


def card_names(words: str) -> tuple[str, ...]:
    """The catalog's names of the cards in a list with commas.

    Raises :class:`RigError` with near names for one that the catalog does not know.
    """
    names = tuple(_card(word) for word in words.split(",") if word.strip())
    if not names:
        raise RigError(what="no card is named", fix="--gpu rtx-4090, or two with a comma between")
    return names


def _card(word: str) -> str:
    known = gpus.cards()
    wanted = _plain(word)
    by_name = {_plain(card.name): key for key, card in known.items()}
    found = wanted if wanted in known else by_name.get(wanted)
    ends = [key for key in known if key.endswith(f"-{wanted}")]
    if found is None and len(ends) == 1:
        return ends[0]
    if found is not None:
        return found
    if ends:
        raise RigError(what=f"{word.strip()!r} is more than one card", fix=f"did you mean {' or '.join(ends)}?")
    near = difflib.get_close_matches(wanted, [*known, *by_name], n=3, cutoff=0.5)
    names = list(dict.fromkeys(by_name.get(each, each) for each in near))
    raise RigError(
        what=f"the catalog does not know the card {word.strip()!r}",
        fix=f"did you mean {' or '.join(names)}?" if names else "use one of the names in llamarig/catalog/gpus.yml",
    )


def card_notes(names: tuple[str, ...]) -> list[str]:
    """Which of the cards that are sold under one name with several sizes of memory were taken."""
    known = gpus.cards()
    said = []
    for name in dict.fromkeys(names):
        card = known[name]
        others = [key for key, each in known.items() if each.name == card.name and key != name]
        if others or re.search(r"-[0-9]+gb$", name):
            words = (
                f"{card.name} is sold with more than one size of memory; taken is {name} with {card.total_mib:,.0f} MiB"
            )
            said.append(f"{words}, not {' or '.join(others)}" if others else words)
    return said


def _plain(name: str) -> str:
    """``RTX 4090``, ``NVIDIA GeForce RTX 4090`` and ``rtx-4090`` are one card."""
    words = re.sub(r"[\s_]+", "-", name.strip().lower())
    return re.sub(r"^(nvidia-)?(geforce-)?|-edition$", "", words)
