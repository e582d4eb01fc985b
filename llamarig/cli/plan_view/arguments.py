"""A server's environment and arguments, as one would give them to a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from llamarig.plan.environment import UNLEARNED


def command_lines(environment: Mapping[str, str], argv: Sequence[str]) -> Iterator[str]:
    """The command with its variables before it: an option with its values a line, each continued by a backslash."""
    lines = [f"{key}={shlex.quote(value)}" for key, value in environment.items()]
    lines += [shlex.join(words) for words in _options(argv)]
    yield from (f"{line} \\" for line in lines[:-1])
    yield from lines[-1:]


def _options(argv: Sequence[str]) -> Iterator[list[str]]:
    """The program, then each option with its values; a negative number is a value."""
    words: list[str] = []
    for word in argv:
        if words and word.startswith("-") and not word[1:2].isdigit():
            yield words
            words = []
        words.append(word)
    if words:
        yield words


def unlearned_words(environment: Mapping[str, str]) -> str:
    """What stands where a card's UUID is not known yet; empty where all are."""
    mark = f"{UNLEARNED}:"
    for value in environment.values():
        if cards := [part.removeprefix(mark) for part in value.split(",") if part.startswith(mark)]:
            which = f"the UUID of card {cards[0]}" if len(cards) == 1 else f"the UUIDs of cards {', '.join(cards)}"
            return f"`apply` puts {which} where `{mark}` stands; no server starts with that word"
    return ""
