"""Switching between releases and back (the real module, on directories of the test's own)."""

from __future__ import annotations

import json
import os
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
        given = {"release": "", "files": [str(self.unit), str(self.link)], "source": "held", "contents": []}
        given |= {"run": "r1", "applied_from": "ada@desk", **params}
        answer: dict[str, Any] = switch.OPERATIONS[operation](self.root, self.state, given)
        return answer

    def apply(self, release: str, unit: str, model: str) -> None:
        self.do("hold")
        self.unit.write_text(unit)
        self.link.unlink(missing_ok=True)
        self.link.symlink_to(model)
        self.do("switch", release=release)

    def proven(self, **params: Any) -> Any:
        """The end of an apply: what runs is kept, the held state forgotten."""
        former = self.do("keep", **params)["former"]
        self.do("done")
        return former

    def kept(self, name: str) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.state / f"{name}.json").read_text())
        return read

    @property
    def now(self) -> tuple[str, str, str]:
        return switch.current(self.root), self.unit.read_text(), str(self.link.readlink())


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    made.apply("a-1", "old unit", "sha256/old")
    assert made.proven() is None
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


def test_what_a_killed_apply_had_started_is_what_the_next_one_goes_back_to(host: Host) -> None:
    host.apply("b-2", "new unit", "sha256/new")
    host.do("started")  # and here the controller was killed, before the proof
    host.apply("a-1", "third unit", "sha256/third")
    host.do("restore")
    assert host.now == ("b-2", "new unit", "sha256/new")


def test_the_held_state_says_whose_run_it_was(host: Host) -> None:
    host.do("hold", run="r7")
    assert (host.kept("held")["run"], host.kept("held")["from"]) == ("r7", "ada@desk")
    assert host.kept("held")["at"].endswith("Z")


def test_a_state_names_its_kernel_and_a_proven_boot_renews_it(host: Host) -> None:
    host.apply("b-2", "new unit", "sha256/new")
    host.proven()
    assert host.kept("proven")["kernel"] == os.uname().release
    proven = host.kept("proven") | {"kernel": "6.1.0-1-amd64"}
    (host.state / "proven.json").write_text(json.dumps(proven))
    assert host.do("booted")["changed"] is True
    assert host.kept("proven") == proven | {"kernel": os.uname().release}
    assert host.do("booted")["changed"] is False


def roll_back(host: Host) -> None:
    host.do("hold")
    host.do("restore", source="former")
    host.do("keep", source="former")
    host.do("done")


def test_a_rollback_can_be_rolled_back(host: Host) -> None:
    host.apply("b-2", "new unit", "sha256/new")
    assert host.proven() == "a-1"
    for expected in (("a-1", "old unit", "sha256/old"), ("b-2", "new unit", "sha256/new")):
        roll_back(host)
        assert host.now == expected


def test_a_rollback_after_a_mended_edit_goes_to_what_was_proven_before(host: Host) -> None:
    host.apply("b-2", "new unit", "sha256/new")
    host.proven()
    host.unit.write_text("new unit\n# by hand")
    host.apply("b-2", "new unit", "sha256/new")  # puts it back
    assert host.proven() == "a-1", "mending changes nothing of what is wanted, so the way back stays"
    roll_back(host)
    assert host.now == ("a-1", "old unit", "sha256/old")
    roll_back(host)
    assert host.now == ("b-2", "new unit", "sha256/new")


def test_an_edit_before_a_change_never_becomes_the_way_back(host: Host) -> None:
    host.unit.write_text("old unit\n# by hand")
    host.apply("b-2", "new unit", "sha256/new")
    host.proven()
    roll_back(host)
    assert host.now == ("a-1", "old unit", "sha256/old")


def test_an_edit_while_an_apply_runs_is_not_kept_as_proven(host: Host) -> None:
    wanted = {"path": str(host.unit), "content": "new unit", "mode": "0644", "owner": "root", "group": "root"}
    host.apply("b-2", "new unit\n# by hand", "sha256/new")
    host.proven(contents=[wanted])
    (unit,) = [entry for entry in host.kept("proven")["files"] if entry["path"] == str(host.unit)]
    assert unit["content"] == "new unit"
    assert unit["mode"] == 0o644


def test_a_file_that_only_one_state_has_goes_and_comes(host: Host, tmp_path: Path) -> None:
    extra = tmp_path / "llama-extra.service"
    host.apply("b-2", "new unit", "sha256/new")
    extra.write_text("extra")
    host.proven(files=[str(host.unit), str(host.link), str(extra)])
    host.do("hold")
    assert host.do("restore", source="former")["gone"] == [str(extra)]
    host.do("keep", source="former")
    assert not extra.exists()
    roll_back(host)
    assert extra.read_text() == "extra"


def test_a_run_that_moved_nothing_leaves_the_former_state_alone(host: Host) -> None:
    host.apply("b-2", "new unit", "sha256/new")
    host.proven()
    before = (host.state / "former.json").read_text()
    host.do("hold")
    host.proven()
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
