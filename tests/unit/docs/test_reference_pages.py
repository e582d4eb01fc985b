"""The generated reference pages are those that commands and roles give now."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from llamarig.cli import reference, reference_roles
from llamarig.cli.main import VERBS

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_of_the_commands_is_fresh() -> None:
    text = (ROOT / "docs/reference/commands.md").read_text()
    assert text == reference.text(), "run: python -m llamarig.cli.reference"


def test_every_verb_says_what_its_exit_codes_mean_and_no_other_does() -> None:
    assert set(reference.EXITS) == set(VERBS)


def test_every_option_is_described() -> None:
    bare = [line for line in reference.text().splitlines() if line.startswith("| `") and "` |  |" in line]
    assert bare == []


@pytest.mark.parametrize("flag", ["--break-lock", "--ask-become-pass, -K", "--out PATH", "--context N", "--deep"])
def test_known_options_are_there(flag: str) -> None:
    assert f"| `{flag}` |" in reference.text()


def test_the_page_of_the_roles_is_fresh_and_names_every_variable() -> None:
    text = (ROOT / "docs/reference/roles.md").read_text()
    assert text == reference_roles.text(), "run: python -m llamarig.cli.reference_roles"
    for role in reference_roles.ORDER:
        defaults = yaml.safe_load((ROOT / f"roles/{role}/defaults/main.yml").read_text())
        for name in defaults:
            assert f"| `{name}` |" in text


def test_a_row_of_the_roles_is_one_line() -> None:
    _, *sections = reference_roles.text().split("\n## ")
    for section in sections:
        _, _, table = section.partition("\n| variable")
        assert all(line.startswith("|") for line in ("| variable" + table).strip().splitlines())


def test_the_page_of_the_roles_knows_every_role() -> None:
    assert set(reference_roles.ORDER) == {path.name for path in (ROOT / "roles").iterdir() if path.is_dir()}


def test_the_writers_write_what_is_compared(tmp_path: Path) -> None:
    reference.main(tmp_path / "docs/commands.md")
    reference_roles.main(tmp_path / "docs/roles.md")
    assert (tmp_path / "docs/commands.md").read_text() == reference.text()
    assert (tmp_path / "docs/roles.md").read_text() == reference_roles.text()
