"""One transaction, apt's own words. The tools are stand-ins; what they say is recorded from Debian 13."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import module

packages = module("rig_packages")
INSTALLED = {"cmake": "3.31.6-2"}
UNREACHABLE = (
    "Ign:1 http://nowhere.invalid/debian trixie InRelease\n"
    "Err:1 http://nowhere.invalid/debian trixie InRelease\n  Could not resolve 'nowhere.invalid'\n"
    "Reading package lists...\n"
    "E: Failed to fetch http://nowhere.invalid/debian/dists/trixie/InRelease  Could not resolve 'nowhere.invalid'\n"
)
NOT_FOUND = "Reading package lists...\nBuilding dependency tree...\nE: Version '9.9' for 'cmake' was not found\n"


class Apt:
    """Answers as the tools do and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.installed = dict(INSTALLED)
        self.update: list[tuple[int, str]] = [(0, "")]
        self.refuses: tuple[int, str] | None = None

    def __call__(self, command: list[str]) -> tuple[int, str]:
        self.asked.append(command)
        if command[0] == "dpkg-query":
            lines = [f"{name}:amd64 {name} installed {version}" for name, version in self.installed.items()]
            return 1, "\n".join([*lines, "dpkg-query: no packages found matching ccache"])
        if command[-1] == "update":
            return self.update.pop(0) if len(self.update) > 1 else self.update[0]
        if "install" in command:
            if self.refuses is not None:
                return self.refuses
            for word in command[command.index("--") + 1 :]:
                name, _, version = word.partition("=")
                self.installed[name] = version or "1"
        return 0, ""

    def verbs(self) -> list[str]:
        return [
            next(word for word in each if word in ("--show", "update", "install", "--configure")) for each in self.asked
        ]


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Apt:
    stand_in = Apt()
    monkeypatch.setattr(packages, "call", stand_in)
    monkeypatch.setattr(packages, "UPDATES", tmp_path / "updates")
    monkeypatch.setattr(packages.time, "sleep", lambda _seconds: None)
    return stand_in


def test_what_is_there_is_not_asked_for(apt: Apt) -> None:
    assert packages.missing({"cmake": None, "ccache": None}) == ["ccache"]
    assert packages.missing({"cmake": "3.31.6-2"}) == []
    assert packages.missing({"cmake": "3.30.0-1", "ccache": "4.11.2-1"}) == ["cmake=3.30.0-1", "ccache=4.11.2-1"]


def test_one_transaction_without_recommends_that_waits_for_dpkgs_lock(apt: Apt) -> None:
    packages.install(["ccache", "g++=4:14.2.0-1"], 300)
    assert apt.verbs() == ["update", "install"]
    command = apt.asked[-1]
    assert command[command.index("--") :] == ["--", "ccache", "g++=4:14.2.0-1"]
    assert {"--no-install-recommends", "DPkg::Lock::Timeout=300"} <= set(command)


def test_one_list_alone_is_read_where_it_is_named(apt: Apt) -> None:
    packages.install(["ccache"], 300, "/etc/apt/sources.list.d/llamarig-site.sources")
    for command in apt.asked:
        assert "Dir::Etc::sourcelist=/etc/apt/sources.list.d/llamarig-site.sources" in command
        assert "Dir::Etc::sourceparts=-" in command
    apt.asked.clear()
    packages.install(["ccache"], 300)
    assert not [word for command in apt.asked for word in command if word.startswith("Dir::Etc")]


def test_apts_own_words_are_the_error(apt: Apt) -> None:
    apt.refuses = (100, NOT_FOUND)
    with pytest.raises(packages.FailedError) as failed:
        packages.install(["cmake=9.9"], 300)
    assert "E: Version '9.9' for 'cmake' was not found" in str(failed.value)
    assert "Reading package lists" not in str(failed.value)


def test_an_archive_that_is_away_matters_only_when_a_package_is_lacking(apt: Apt) -> None:
    apt.update = [(100, UNREACHABLE)]
    packages.install(["ccache"], 300)
    apt.refuses = (100, "E: Unable to locate package ccache\n")
    with pytest.raises(packages.FailedError) as failed:
        packages.install(["ccache"], 300)
    said = str(failed.value)
    assert said.index("Unable to locate package") < said.index("Could not resolve 'nowhere.invalid'")


def test_it_waits_while_another_apt_holds_the_lists(apt: Apt) -> None:
    apt.update = [(100, "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"), (0, "")]
    packages.install(["ccache"], 300)
    assert apt.verbs() == ["update", "update", "install"]
    apt.asked.clear()
    apt.update = [(100, "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)")]
    assert "held by process 7" in packages.update([], -1), "and not for ever"


def test_an_interrupted_dpkg_is_finished_first(apt: Apt) -> None:
    packages.UPDATES.mkdir()
    (packages.UPDATES / "0001").touch()
    packages.install(["ccache"], 300)
    assert apt.verbs() == ["--configure", "update", "install"]


def run_main(monkeypatch: pytest.MonkeyPatch, **params: Any) -> dict[str, Any]:
    class EndedError(Exception):
        pass

    answer: dict[str, Any] = {}

    class Module:
        check_mode = bool(params.pop("check", False))

        def __init__(self, **_spec: Any) -> None:
            self.params = {"lock_timeout": 1, "source": None, **params}

        def exit_json(self, **result: Any) -> None:
            answer.update(result)
            raise EndedError

        def fail_json(self, **result: Any) -> None:
            answer.update(result, failed=True)
            raise EndedError

    monkeypatch.setattr(packages, "AnsibleModule", Module)
    call: Callable[[], None] = packages.main
    with pytest.raises(EndedError):
        call()
    return answer


def test_a_second_run_asks_apt_nothing(apt: Apt, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_main(monkeypatch, packages={"cmake": None, "ccache": None})
    assert (first["changed"], first["installed"]) == (True, ["ccache"])
    apt.asked.clear()
    second = run_main(monkeypatch, packages={"cmake": None, "ccache": None})
    assert (second["changed"], apt.verbs()) == (False, ["--show"])


def test_check_mode_installs_nothing(apt: Apt, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = run_main(monkeypatch, packages={"ccache": None}, check=True)
    assert answer["changed"] is True
    assert apt.verbs() == ["--show"]


@pytest.mark.parametrize("name", ["-oAPT::x", "a b", "../x", "A", ""])
def test_what_is_no_package_is_refused(apt: Apt, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert run_main(monkeypatch, packages={name: None})["failed"] is True
    assert apt.asked == []
    assert run_main(monkeypatch, packages={"cmake": "1 -oX"})["failed"] is True


def test_success_that_left_a_package_out_is_a_failure(apt: Apt, monkeypatch: pytest.MonkeyPatch) -> None:
    apt.refuses = (0, "")
    assert "still not installed: ccache" in run_main(monkeypatch, packages={"ccache": None})["msg"]
