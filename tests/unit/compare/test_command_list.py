"""The list of commands: every verb by its name, with a line of help."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from llamarig.cli.main import VERBS, app


def lines() -> list[str]:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "140", "NO_COLOR": "1", "TERM": "dumb"})
    assert shown.exit_code == 0
    return shown.output.splitlines()


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_listed_by_name_with_its_help(verb: str) -> None:
    [line] = [line for line in lines() if f" {verb} " in line[:20]]
    assert VERBS[verb] in line
