"""Patterns of tensor overrides: what the engine reads otherwise, or what would never end, is refused."""

from __future__ import annotations

import random
import re
import time
import warnings

import pytest

from llamarig.spec.rules import patterns

NAMES = [f"blk.{block}.ffn_{part}_exps.weight" for block in range(100) for part in ("up", "down", "gate")]


@pytest.mark.parametrize(
    "pattern",
    [
        r"ffn_.*_exps",
        r"blk\.([0-9]|1[0-5])\.ffn_(up|down|gate)_(ch|)exps",
        r"blk\.[0-9]+\.attn_[qkv]\.weight$",
        r"^(?:blk\.\d{2}\.)?output(?!_norm)",
        r".*?exps\.weight",
        r"a\-b[^.\]]",
    ],
)
def test_what_both_read_alike_passes(pattern: str) -> None:
    assert patterns.trouble(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "[[:digit:]]",
        "[a[:alpha:]]",
        "[[.a.]]",
        "[a-f&&e]",
        "[a--b]",
        "[]a]",
        "[^]",
        "[a",
        "b++",
        "b*+",
        "b?+",
        "b**",
        r"\N{DIGIT ONE}",
        r"\Ablk",
        r"blk\Z",
        r"(a)\1",
        r"\x41",
        "\\",
        "(?<!a)b",
        "(?i)a",
        "(?i:a)",
        "(?P<n>a)",
        "(?>a)",
        "(?#a)b",
        "(?",
        "*a",
        "^*",
        r"\b+",
        "(?!a)*",
        "a|*",
        "a{",
        "a{x}",
        "a{99999999999999999999}",
        "a{0}",
        "a{65}",
        "((a{64}){64}){64}",
        "(" * 3000 + "a" + ")" * 3000,
        "(" * 30 + "a" + ")" * 30,
        "(a",
        "a)",
        "a" * 301,
        "é",
        "a\tb",
        r"([a-z0-9._]+)+!",
        r"(a|a)*b(.*.*.*.*.*)*zz",
        "(a|a)*b",
        "a?" * 30 + "a" * 30,
        "(a|a)" * 30 + "b",
        ".*.*.*.*.*z",
    ],
)
def test_anything_else_is_refused_without_a_word_from_python(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert patterns.trouble(pattern) is not None


def test_random_patterns_end_in_words_or_are_searched_soon() -> None:
    pick = random.Random(4)
    begun = time.process_time()
    passed = 0
    words = [*"a.*+?()[]{}|^$", "{2}", "(?:", "(?!", r"\d"]
    for _ in range(2_000):
        pattern = "".join(pick.choices(words, k=pick.randint(1, 9)))
        if patterns.trouble(pattern) is None:
            passed += 1
            re.search(pattern, NAMES[0])
    assert passed > 50
    assert time.process_time() - begun < 20


def test_the_worst_pattern_that_passes_is_searched_soon() -> None:
    found = re.compile(".*.*.*.*zz")
    assert patterns.trouble(found.pattern) is None
    begun = time.process_time()
    assert not any(found.search(name) for name in NAMES)
    assert time.process_time() - begun < 5
