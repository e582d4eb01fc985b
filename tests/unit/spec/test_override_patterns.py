"""Patterns of tensor overrides: what the engine reads otherwise, or what would never end, is refused."""

from __future__ import annotations

import random
import re
import time
import warnings
from pathlib import Path

import pytest

from llamarig.spec.read_yaml import read_bytes
from llamarig.spec.rules import patterns
from llamarig.spec.validate import validate

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


PAIR = """schema-version: 1
host: box
os: {distribution: debian, release: "13"}
engine: {commit: 4df29be4f, build-number: 10454, source: {sdist: x==1, sha256: unlocked}, backend: cuda}
gpus: {a: {model: rtx-4090}, b: {model: rtx-4090}}
models: {tiny: {controller-path: tiny.gguf, sha256: unlocked, size: unlocked}}
services:
  chat: {model: tiny, gpus: [a, b], split-mode: layer, %s, context: 4096, listen: {port: 8080}}
"""


def said(keys: str) -> list[str]:
    tree, problems = read_bytes((PAIR % keys).encode(), Path("box.yml"))
    assert tree is not None
    assert problems == []
    return [each.message for each in validate(tree, Path()).errors if each.line == 8]


def test_a_spec_with_such_patterns_is_told_of_each() -> None:
    assert said('tensor-overrides: ["ffn_.*_exps=CPU", "blk.1=b"]') == []
    told = said('tensor-overrides: ["([a-z0-9._]+)+!=CPU", "[[:digit:]]=CPU", "a{99999999999999999999}=CPU"]')
    assert len(told) == 3
    assert all("none that the engine and the plan read alike" in each for each in told)


@pytest.mark.parametrize("share", ["1.0e+99", "1.0e-99", "0"])
def test_a_share_out_of_bounds_is_the_one_thing_that_is_wrong(share: str) -> None:
    [told] = said(f"tensor-split: [1.0, {share}]")
    assert "tensor-split[1]" in told
    assert said("tensor-split: [1.0, 3.0]") == []
