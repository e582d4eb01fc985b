"""The spec that a reader is told to begin with is one, and the table of generations is the catalog's."""

from __future__ import annotations

import re
from pathlib import Path

from llamarig.catalog.gpus import cards, generations
from llamarig.plan import plan_host
from llamarig.spec.load import load_files

PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/first-gpu-spec.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_example_is_a_valid_spec_that_can_be_planned(tmp_path: Path) -> None:
    match = re.search(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert match is not None
    path = tmp_path / "box.yml"
    path.write_text(match[1], encoding="utf-8")
    [host] = load_files(tmp_path, [path], tmp_path).hosts
    assert [error.message for error in host.errors] == []
    assert host.spec is not None
    plan = plan_host(host.spec, {})
    assert {finding.code for finding in plan.findings if finding.severity == "error"} == set()
    assert plan.services["chat"].environment["CUDA_VISIBLE_DEVICES"] == "unlearned:main"


def test_the_table_of_generations_is_true() -> None:
    rows = dict(re.findall(r"^\| ([a-z]+) \| (`.*) \|$", TEXT, re.MULTILINE))
    named = {card.generation for card in cards().values()}
    expected = {}
    for name, generation in generations().items():
        found = {card.architecture for card in cards().values() if card.generation == name}
        numbers = ", ".join(f"`{each}-real`" for each in sorted(found))
        toolkit = f"{generation.first_toolkit} or later" if generation.first_toolkit else ""
        if generation.last_toolkit and not generation.first_toolkit:
            toolkit = f"at most {generation.last_toolkit}"
        if name in named:
            expected[name] = f"{numbers} | {' or '.join(generation.flavours)} | {toolkit}"
    assert rows == expected
