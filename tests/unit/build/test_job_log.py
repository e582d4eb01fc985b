"""What a failed job says to the user (logs recorded, see tests/support/artifacts/logs/README.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.rig_log import LIMIT, error_text

LOGS = Path(__file__).resolve().parents[2] / "support" / "artifacts" / "logs"


def _log(name: str) -> str:
    return (LOGS / f"{name}.log").read_text()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("compile", "/src/main.cpp:8:19: error: invalid initialization of reference of type"),
        ("cmake", 'Could not find a package configuration file provided by "Absent"'),
        ("link", "undefined reference to `length()'"),
    ],
)
def test_the_tools_own_words_are_kept(name: str, says: str) -> None:
    text = error_text(_log(name))
    assert says in text
    assert "-MD -MT" not in text
    assert "Detecting" not in text
    assert "build stopped" not in text


def test_the_failed_step_is_named() -> None:
    assert error_text(_log("compile")).startswith("FAILED: CMakeFiles/engine.dir/main.cpp.o")


def test_the_first_failure_of_several_is_told() -> None:
    text = error_text(_log("link") + _log("compile"))
    assert "undefined reference" in text
    assert "invalid initialization" not in text


def test_without_a_known_error_the_last_lines_are_told() -> None:
    text = error_text("".join(f"line {number}\n" for number in range(100)))
    assert text.splitlines()[-1] == "line 99"
    assert "line 5\n" not in text


def test_progress_alone_is_no_news() -> None:
    assert error_text("[1/10]\n[2/10]\nerror: the server answers 404 Not Found\n") == (
        "error: the server answers 404 Not Found"
    )


def test_a_log_is_hostile_text() -> None:
    text = error_text("error: \x1b[2Jwiped\x07\x9b31m\n" + "x" * 100_000)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert len(text) <= LIMIT
