"""The pages on the memory model say what the code computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamarig.memory.engines import ERAS
from llamarig.memory.terms import TERMS
from tests.support.docs import memory

ALL = "\n".join(page.read_text(encoding="utf-8") for page in memory.PAGES)
EXAMPLE = """```yaml server=llama-3.1-8b
context: 4096
```

```text
card    kv-cache              1.00
```
"""


@pytest.mark.parametrize("page", memory.PAGES, ids=lambda page: page.stem)
def test_examples_and_sums_are_those_of_the_code(page: Path) -> None:
    assert memory.problems(page.read_text(encoding="utf-8")) == [], "run: python -m tests.support.docs.memory"


def test_every_term_and_every_era_is_explained() -> None:
    assert {term for term in TERMS if f"`{term}`" not in ALL} == set()
    assert {era.name for era in ERAS if f"`{era.name}`" not in ALL} == set()
    assert all(f"{era.first_build:,}" in ALL for era in ERAS)


def test_every_term_has_a_sum() -> None:
    summed = {match["term"] for match in memory.SUM.finditer(ALL) if match["term"]}
    assert set(TERMS) - {term.removeprefix("RAM ") for term in summed} == set()


def test_an_example_that_is_out_of_date_is_seen() -> None:
    [problem] = memory.problems(EXAMPLE)
    assert ["card", "kv-cache", "512.00"] in [line.split() for line in problem.splitlines()]


@pytest.mark.parametrize(
    "line",
    ["1 layer x 2 bytes = 0.50 MiB", "512.00 MiB + 1.00 MiB = 512.00 MiB", "8 layers = 0.00 MiB (kv-cache)", "no sum"],
)
def test_a_sum_that_is_wrong_is_seen(line: str) -> None:
    assert memory.problems(memory.rewritten(EXAMPLE) + f"\n```text sums\n{line}\n```\n") != []


def test_sums_are_read_as_people_write_them() -> None:
    assert (
        memory.value("16 layers x 262,144 cells x (1,024 + 1,024) values x 18/32 bytes")
        == 16 * 262_144 * 2048 * 18 / 32
    )
    assert memory.value("128 MiB + 2 x 0.5 MiB") == 129
