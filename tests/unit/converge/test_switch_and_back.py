"""Switching between releases and back (the real module, on directories of the test's own)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import module

switch = module("rig_switch")


class Host:
    """A root with releases and a state directory."""

    def __init__(self, place: Path) -> None:
        self.root, self.state = place / "opt", place / "var"
        self.unit, self.link = place / "llama-chat.service", place / "model.gguf"
        for release in ("a-1", "b-2"):
            directory = self.root / "releases" / release
            (directory / "bin").mkdir(parents=True)
            (directory / "bin/llama-server").write_text(release)
            (directory / "provenance.json").write_text("{}")

    def do(self, operation: str, **params: Any) -> dict[str, Any]:
        given = {"release": "", "files": [str(self.unit), str(self.link)], "source": "held", **params}
        answer: dict[str, Any] = switch.OPERATIONS[operation](self.root, self.state, given)
        return answer

    def apply(self, release: str, unit: str, model: str) -> None:
        self.do("hold")
        self.unit.write_text(unit)
        self.link.unlink(missing_ok=True)
        self.link.symlink_to(model)
        self.do("switch", release=release)

    @property
    def now(self) -> tuple[str, str, str]:
        return switch.current(self.root), self.unit.read_text(), str(self.link.readlink())


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.apply("a-1", "old unit", "sha256/old")
    made.do("keep")
    return made


def test_the_link_is_relative_and_replaced_in_one_step(host: Host) -> None:
    assert str((host.root / "current").readlink()) == "releases/a-1"
    assert host.do("switch", release="b-2")["changed"] is True
    assert host.do("switch", release="b-2")["changed"] is False
    assert str((host.root / "current").readlink()) == "releases/b-2"


@pytest.mark.parametrize("release", ["", "..", "c-3", "../releases/a-1", ".hidden"])
def test_what_is_no_whole_release_is_never_switched_to(host: Host, release: str) -> None:
    with pytest.raises(switch.RefusedError):
        host.do("switch", release=release)
    assert switch.current(host.root) == "a-1"


@pytest.mark.parametrize("part", ["provenance.json", "bin/llama-server"])
def test_half_a_release_is_refused(host: Host, part: str) -> None:
    (host.root / "releases/b-2" / part).unlink()
    with pytest.raises(switch.RefusedError, match="not whole"):
        host.do("switch", release="b-2")
    assert switch.current(host.root) == "a-1"


def test_a_failed_change_is_put_back_link_unit_and_model(host: Host) -> None:
    host.apply("b-2", "new unit", "sha256/new")
    answer = host.do("restore")
    assert (answer["existed"], answer["moved"]) == (True, True)
    assert host.now == ("a-1", "old unit", "sha256/old")
    assert not (host.state / "held.json").exists()


def test_a_file_that_was_not_there_is_taken_away_again(host: Host, tmp_path: Path) -> None:
    extra = tmp_path / "llama-extra.service"
    host.do("hold", files=[str(extra)])
    extra.write_text("new")
    assert host.do("restore")["restored"] == [str(extra)]
    assert not extra.exists()


def test_after_a_kill_the_older_state_stays_the_way_back(host: Host) -> None:
    host.apply("b-2", "half written", "sha256/new")  # and here the controller was killed
    host.apply("b-2", "new unit", "sha256/new")
    host.do("restore")
    assert host.now == ("a-1", "old unit", "sha256/old")


def test_files_that_a_killed_apply_did_not_know_are_added(host: Host, tmp_path: Path) -> None:
    host.do("hold")
    other = tmp_path / "other"
    other.write_text("as it was")
    host.do("hold", files=[str(other)])
    other.write_text("changed")
    host.do("restore")
    assert other.read_text() == "as it was"


def test_a_rollback_can_be_rolled_back(host: Host) -> None:
    host.apply("b-2", "new unit", "sha256/new")
    host.do("keep")
    for expected in (("a-1", "old unit", "sha256/old"), ("b-2", "new unit", "sha256/new")):
        host.do("hold")
        host.do("restore", source="former")
        host.do("keep")
        assert host.now == expected


def test_a_run_that_moved_nothing_leaves_the_former_state_alone(host: Host) -> None:
    host.apply("b-2", "new unit", "sha256/new")
    host.do("keep")
    before = (host.state / "former.json").read_text()
    host.do("hold")
    host.do("keep")
    assert (host.state / "former.json").read_text() == before
    assert not (host.state / "held.json").exists()


def test_without_a_former_release_nothing_is_touched(tmp_path: Path) -> None:
    fresh = Host(tmp_path)
    fresh.apply("a-1", "first unit", "sha256/one")
    answer = fresh.do("restore")
    assert (answer["existed"], answer["moved"]) == (False, False)
    assert fresh.now == ("a-1", "first unit", "sha256/one")


def test_a_former_release_that_is_gone_stops_the_restore_before_it_touches_anything(host: Host) -> None:
    host.apply("b-2", "new unit", "sha256/new")
    (host.root / "releases/a-1/provenance.json").unlink()
    with pytest.raises(switch.RefusedError):
        host.do("restore")
    assert host.now == ("b-2", "new unit", "sha256/new")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"files": 3}'])
def test_a_broken_state_file_is_no_state(host: Host, content: str) -> None:
    (host.state / "held.json").write_text(content)
    assert host.do("restore")["existed"] is False
    assert host.now == ("a-1", "old unit", "sha256/old")


def test_a_directory_in_the_links_place_is_refused(host: Host) -> None:
    (host.root / "current").unlink()
    (host.root / "current").mkdir()
    with pytest.raises(switch.RefusedError, match="directory"):
        host.do("switch", release="a-1")


def test_the_saved_state_is_roots_alone(host: Host) -> None:
    host.do("hold")
    assert (host.state / "held.json").stat().st_mode & 0o077 == 0
    assert json.loads((host.state / "held.json").read_text())["release"] == "a-1"
