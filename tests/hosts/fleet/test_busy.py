"""Whether a host is in use, asked of a real one that serves: requests, people, windows; and waiting for requests."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lab import Host, faults
from lab.project import Project, tunnel

from llamarig.converge.hosts import host_variables
from llamarig.converge.wanted import wanted_for
from llamarig.fleet.in_use import hosts_in_use
from llamarig.fleet.policy import Rules, Use
from llamarig.spec.load import load_project
from llamarig.spec.window import parse_window
from tests.support.completion import Completion

PLAIN = Rules(drain_s=0)
REQUESTS = Rules(drain_s=0, users="ignore")
"""A tunnel to the server is somebody's session as well."""

Ask = Callable[[Rules], Use | None]


@pytest.fixture
def ask(demo: Host, project: Project, tmp_path: Path) -> Ask:
    """What stands against changing the demo host, by these rules."""
    loaded = load_project(project.directory).named(demo.name)
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    wanted = wanted_for(project.directory, loaded)
    variables: dict[str, dict[str, Any]] = {demo.name: host_variables(project.directory, loaded, wanted, private)}

    def asked(rules: Rules) -> Use | None:
        found = hosts_in_use({demo.name: rules}, variables)[demo.name]
        assert found is None or isinstance(found, Use), found
        return found

    return asked


@pytest.fixture
def completion(demo: Host) -> Iterator[Callable[[], Completion]]:
    """Begins a completion, and returns when the server works on it."""
    with tunnel(demo) as url:
        begun: list[Completion] = []

        def begin() -> Completion:
            begun.append(Completion(demo, url))
            return begun[-1]

        yield begin
        for each in begun:
            each.stop()


def test_an_idle_host_may_be_changed_and_the_look_itself_is_no_user(ask: Ask) -> None:
    assert ask(PLAIN) is None


def test_a_host_that_answers_a_request_is_in_use(ask: Ask, completion: Callable[[], Completion]) -> None:
    completion()
    use = ask(REQUESTS)
    assert use is not None
    assert use.reason == "chat answers 1 request"
    deferred = ask(replace(REQUESTS, requests="defer"))
    assert deferred is not None
    assert not deferred.drains
    # The twin: who does not ask does not see it.
    assert ask(replace(REQUESTS, requests="ignore")) is None


def test_a_request_of_late_counts_where_it_defers(ask: Ask, completion: Callable[[], Completion]) -> None:
    completion().stop()
    use = ask(replace(REQUESTS, requests="defer"))
    assert use is not None
    assert "within 10 minutes" in use.reason
    assert ask(REQUESTS) is None


def test_a_running_request_is_waited_for(ask: Ask, completion: Callable[[], Completion]) -> None:
    running = completion()
    over = threading.Event()

    def hang_up() -> None:
        over.set()
        running.stop()

    later = threading.Timer(8, hang_up)
    later.start()
    assert ask(replace(REQUESTS, drain_s=300)) is None
    assert over.is_set(), "it was said to be idle while it answered a request"
    later.join()


def test_a_request_that_does_not_end_in_time_defers_the_host(ask: Ask, completion: Callable[[], Completion]) -> None:
    completion()
    started = time.monotonic()
    use = ask(replace(REQUESTS, drain_s=1))
    assert use is not None
    assert "chat answers" in use.reason
    assert time.monotonic() - started > 1


def test_somebody_who_is_logged_in_defers_the_host(ask: Ask, demo: Host) -> None:
    command = [*demo.ssh_command("-tt"), "cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as session:
        try:
            faults.wait_for("the session", lambda: "pts" in demo.ssh("ps -e -o tty,comm | grep cat || true"), 20)
            use = ask(PLAIN)
            ignored = ask(replace(PLAIN, users="ignore"))
        finally:
            session.terminate()
    assert use is not None
    assert use.reason.startswith("logged in: root on ")
    assert not use.drains
    assert ignored is None


def test_a_window_is_read_on_the_hosts_own_clock(ask: Ask, demo: Host) -> None:
    hour = int(demo.ssh("date +%H"))
    open_now = parse_window(f"{hour:02}:00-{(hour + 2) % 24:02}:00")
    shut = parse_window(f"{(hour + 3) % 24:02}:00-{(hour + 4) % 24:02}:00")
    assert ask(replace(PLAIN, windows=(open_now,))) is None
    use = ask(replace(PLAIN, windows=(shut,)))
    assert use is not None
    assert use.reason.startswith("outside its maintenance window, which opens ")
