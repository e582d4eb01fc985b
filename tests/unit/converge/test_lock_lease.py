"""The host's lock, as the module that runs on the host keeps it (the real module, on a path of the test's own)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

RUNNER = Path(__file__).resolve().parents[2] / "support/observe/run_module.py"


def command() -> list[str]:
    return [sys.executable, str(RUNNER), "rig_lock"]


def arguments(path: Path, operation: str, run: str, **more: Any) -> str:
    return json.dumps({"path": str(path), "operation": operation, "run": run, **more})


def ask(path: Path, operation: str, run: str, **more: Any) -> dict[str, Any]:
    done = subprocess.run(
        command(),
        input=arguments(path, operation, run, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "run" / "lock"


def held_by(lock: Path) -> str:
    content: dict[str, str] = json.loads(lock.read_text())
    return content["run"]


def age(lock: Path, seconds: float) -> None:
    content = json.loads(lock.read_text())
    lock.write_text(json.dumps({**content, "renewed": time.time() - seconds}))


def test_the_second_is_told_who_holds_it_and_changes_nothing(lock: Path) -> None:
    first = ask(lock, "take", "one", holder={"who": "ada", "from": "desk", "pid": 7})
    assert first["held"] is True
    before = lock.read_bytes()
    second = ask(lock, "take", "two", holder={"who": "bob"})
    assert second["held"] is False
    assert (second["holder"]["who"], second["holder"]["from"], second["holder"]["pid"]) == ("ada", "desk", 7)
    assert second["holder"]["since"] == pytest.approx(time.time(), abs=60)
    assert lock.read_bytes() == before


def test_release_is_the_holders_alone(lock: Path) -> None:
    ask(lock, "take", "one")
    assert ask(lock, "release", "two")["holder"]["run"] == "one"
    assert held_by(lock) == "one"
    ask(lock, "release", "one")
    assert not lock.exists()
    assert ask(lock, "take", "two")["held"] is True


def test_a_lease_that_ran_out_is_taken_over_and_one_that_was_renewed_is_not(lock: Path) -> None:
    ask(lock, "take", "one")
    age(lock, 1000)
    assert ask(lock, "renew", "one")["held"] is True
    assert ask(lock, "take", "two")["held"] is False, "it was renewed"
    age(lock, 1000)
    answer = ask(lock, "take", "two")
    assert answer["held"] is True
    assert "ran out" in answer["taken_over"]
    assert held_by(lock) == "two"


def test_who_lost_the_lock_learns_it_at_the_next_renewal(lock: Path) -> None:
    ask(lock, "take", "one")
    ask(lock, "take", "two", over="any")
    answer = ask(lock, "renew", "one")
    assert answer["failed"] is True
    assert answer["holder"]["run"] == "two"


def test_only_the_named_holder_is_replaced(lock: Path) -> None:
    ask(lock, "take", "one")
    assert ask(lock, "take", "three", over="two")["held"] is False, "somebody else took it meanwhile"
    assert ask(lock, "take", "three", over="one")["held"] is True


@pytest.mark.parametrize("content", ["", "not json", "[1]", '{"run": "x", "renewed": "soon"}', '{"renewed": 1e12}'])
def test_a_lock_that_says_nothing_useful_is_not_free(lock: Path, content: str) -> None:
    lock.parent.mkdir()
    lock.write_text(content)
    assert ask(lock, "take", "two")["held"] is False
    assert ask(lock, "take", "two", over="any")["held"] is True, "but it can be broken"


def test_a_link_in_its_place_is_not_followed(lock: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    lock.parent.mkdir()
    lock.symlink_to(victim)
    answer = ask(lock, "take", "one")
    assert answer.get("failed") is True
    assert victim.read_text() == "mine"


def test_of_many_at_once_exactly_one_gets_it(lock: Path) -> None:
    lock.parent.mkdir()
    started = [subprocess.Popen(command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    for number, each in enumerate(started):
        assert each.stdin is not None
        each.stdin.write(arguments(lock, "take", f"run-{number}"))
        each.stdin.close()
    answers = []
    for each in started:
        assert each.stdout is not None
        answers.append(json.loads(each.stdout.read()))
        each.wait()
    assert sorted(answer["held"] for answer in answers) == [False] * 5 + [True]
