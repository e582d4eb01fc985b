"""What is shown of a unit's journal. Lines are shortened from systemd 257 and llama.cpp b10454 on Debian 13."""

from __future__ import annotations

from llamarig.converge.journal import MOST, why_it_failed

UNIT = "llama-chat.service"
FORMER = ["Starting llama-chat.service - llamarig: chat...", "Started llama-chat.service.", "former: request served"]
FAILED = [
    "Starting llama-chat.service - llamarig: chat...",
    "load_backend: loaded CPU backend",
    "error: unknown argument: --bogus",
    "start-probe: the server ended while it was starting",
    "llama-chat.service: Main process exited, code=exited, status=1/FAILURE",
    "llama-chat.service: Failed with result 'exit-code'.",
]
AGAIN = "llama-chat.service: Scheduled restart job, restart counter is at 1."


def test_the_attempt_is_shown_without_the_former_run_and_errors_come_first() -> None:
    shown = why_it_failed("\n".join([*FORMER, *FAILED]), UNIT)
    assert shown[:2] == ["error: unknown argument: --bogus", "start-probe: the server ended while it was starting"]
    assert shown[2:] == [FAILED[0], FAILED[1], FAILED[4], FAILED[5]]


def test_an_attempt_that_says_nothing_yet_does_not_hide_the_failed_one() -> None:
    shown = why_it_failed("\n".join([*FAILED, AGAIN, FAILED[0]]), UNIT)
    assert "error: unknown argument: --bogus" in shown
    assert AGAIN not in shown


def test_a_scheduled_restart_of_a_former_day_hides_nothing() -> None:
    shown = why_it_failed("\n".join([*FORMER, AGAIN, *FORMER, *FAILED]), UNIT)
    assert shown[0] == "error: unknown argument: --bogus"
    assert "former: request served" not in shown


def test_a_long_log_is_cut_to_a_screenful_with_its_errors() -> None:
    many = [f"line {number}" for number in range(1000)]
    shown = why_it_failed("\n".join([FAILED[0], "error: it broke", *many, FAILED[5]]), UNIT)
    assert len(shown) == MOST
    assert shown[0] == "error: it broke"
    assert shown[-1] == FAILED[5]
    assert len(why_it_failed("\n".join(f"error: {n}" for n in range(99)), UNIT)) <= MOST


def test_a_log_without_a_start_is_its_last_lines_and_cannot_steer_the_terminal() -> None:
    assert why_it_failed("one\n\x1b[2Jtwo", UNIT) == ["one", "[2Jtwo"]
    assert why_it_failed("", UNIT) == []
