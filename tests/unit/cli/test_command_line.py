"""The command line as a whole: its name, unknown verbs, and where ``-C`` may stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from llamarig.cli.main import UNBUILT, VERBS, _whole_first
from llamarig.errors import RigError

ROOT = Path(__file__).resolve().parents[3]


def rig(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "llamarig.cli.main", *words],
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        check=False,
    )


@pytest.mark.parametrize("words", [["--help"], ["plan", "--help"], ["model", "memory", "--help"]])
def test_the_command_is_called_llamarig(words: list[str]) -> None:
    done = rig(*words)
    assert done.returncode == 0
    assert "Usage: llamarig" in done.stdout
    assert "python -m" not in done.stdout


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("plam", "did you mean plan?"),
        ("zzzz", "there is no verb 'zzzz'"),
        ("tune", "the verb tune is not built yet in this version"),
    ],
)
def test_a_verb_that_there_is_not(verb: str, said: str) -> None:
    done = rig(verb, "demo")
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_the_readme_lists_the_verbs_that_are_not_built() -> None:
    listed = re.search(r"Not built yet: `([a-z ]+)`", (ROOT / "README.md").read_text())
    assert listed is not None
    assert set(listed[1].split()) == set(UNBUILT)
    assert not set(UNBUILT) & set(VERBS)


@pytest.mark.parametrize(
    "words",
    [
        ["-C", "x", "plan", "box"],
        ["plan", "-C", "x", "box"],
        ["plan", "box", "--project", "x"],
        ["plan", "box", "--project=x"],
    ],
)
def test_the_project_may_stand_anywhere(words: list[str]) -> None:
    assert _whole_first(words) == ["--project", "x", "plan", "box"]


def test_the_project_is_given_once() -> None:
    with pytest.raises(RigError, match="given more than once"):
        _whole_first(["-C", "x", "plan", "box", "--project=y"])


def test_a_project_without_a_value_is_left_to_the_parser() -> None:
    assert _whole_first(["plan", "box", "-C"]) == ["plan", "box", "-C"]
