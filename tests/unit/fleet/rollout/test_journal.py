"""The journal: what is in it is whole or told to be damaged, wherever it was cut off."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamarig.errors import ExitCode, RigError
from llamarig.fleet.rollout import journal
from llamarig.fleet.rollout.journal import MOST_CHARACTERS, Journal, clean, parse, read
from llamarig.fleet.rollout.state import PHASES, State

HOSTS = ("a", "b", "c")
START = {
    "event": "rollout-started",
    "id": "r",
    "policy": {"canary": 1, "failures": 0},
    "waves": [{"name": "canary", "hosts": ["a"]}, {"name": "wave 1", "hosts": ["b", "c"]}],
    "hosts": {name: {"spec": "s", "wanted": "w", "to-release": "new"} for name in HOSTS},
}
EVENTS = st.one_of(
    st.builds(
        lambda host, phase, reason: {"event": "host", "host": host, "phase": phase, "reason": reason},
        st.sampled_from(HOSTS),
        st.sampled_from(PHASES),
        st.text(max_size=60),
    ),
    st.sampled_from(["paused", "resumed", "stopped", "aborted", "rollback-started"]).map(lambda name: {"event": name}),
    st.just({"event": "wave", "name": "wave 1"}),
)


def written(path: Path, events: list[dict[str, object]]) -> bytes:
    path.unlink(missing_ok=True)
    journal = Journal.create(path)
    journal.append(START)
    for event in events:
        journal.append(event)
    journal.close()
    return path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(events=st.lists(EVENTS, max_size=8), data=st.data())
def test_any_prefix_of_bytes_gives_a_consistent_state(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, object]], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    whole = written(path, events)
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    records = read(path).records
    assert len(records) == whole[:cut].count(b"\n")
    assert State.fold(records).to_json() == State.fold(parse(whole).records[: len(records)]).to_json()
    journal = Journal.open(path)
    journal.append({"event": "resumed"})
    journal.close()
    found = parse(path.read_bytes()).records
    assert found[:-1] == records
    assert found[-1]["event"] == "resumed"


@settings(max_examples=60, deadline=None)
@given(events=st.lists(EVENTS, min_size=1, max_size=6), data=st.data())
def test_any_changed_byte_is_told(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, object]], data: st.DataObject
) -> None:
    whole = bytearray(written(tmp_path_factory.mktemp("journal") / "journal.jsonl", events))
    at = data.draw(st.integers(0, len(whole) - 2))
    whole[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(RigError, match=r"line \d+: the journal is damaged"):
        parse(bytes(whole))


def test_a_missing_line_is_told(tmp_path: Path) -> None:
    lines = written(tmp_path / "j", [{"event": "paused"}, {"event": "resumed"}]).splitlines(keepends=True)
    with pytest.raises(RigError, match="damaged"):
        parse(b"".join([lines[0], *lines[2:]]))


def test_a_line_of_another_journal_is_told(tmp_path: Path) -> None:
    ours = written(tmp_path / "j", [{"event": "paused"}]).splitlines(keepends=True)
    other = written(tmp_path / "k", [{"event": "wave", "name": "x"}, {"event": "paused"}]).splitlines(keepends=True)
    with pytest.raises(RigError, match="damaged"):
        parse(b"".join([*ours, other[2]]))


def test_a_journal_is_private_and_never_made_twice(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal.create(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        Journal.create(path)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / "journal.jsonl").symlink_to(tmp_path / "elsewhere")
    for reader in (Journal.open, read):
        with pytest.raises(RigError, match="it is a symbolic link"):
            reader(tmp_path / "journal.jsonl")


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "journal.jsonl")
    for reader in (Journal.open, read):
        with pytest.raises(RigError, match="it is a directory, a pipe or a device"):
            reader(tmp_path / "journal.jsonl")


def test_an_endless_journal_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(tmp_path / "journal.jsonl", [])
    monkeypatch.setattr(journal, "MOST_BYTES", len(data))
    assert read(tmp_path / "journal.jsonl").length == len(data)
    monkeypatch.setattr(journal, "MOST_BYTES", len(data) - 1)
    with pytest.raises(RigError, match="and no rollout writes that much"):
        read(tmp_path / "journal.jsonl")


def test_records_are_on_the_disk_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(descriptor), real(descriptor))[1])
    journal = Journal.create(tmp_path / "journal.jsonl")
    made = len(synced)
    assert made == 1, "the directory's entry"
    journal.append({"event": "paused"}, {"event": "resumed"})
    assert len(synced) == made + 1
    journal.close()


def test_what_a_host_says_is_capped_printable_and_without_secrets() -> None:
    said = clean({"reason": "\x1b[31m" + "x" * 9000, "args": ["--api-key hunter2"], "turned": "a\u202eb", "n": 3})
    assert len(said["reason"]) <= MOST_CHARACTERS
    assert "\x1b" not in said["reason"]
    assert "hunter2" not in json.dumps(said)
    assert "\u202e" not in said["turned"]
    assert said["n"] == 3
    assert clean("first\nsecond") == "first\nsecond"


def test_a_line_of_endless_brackets_is_told(tmp_path: Path) -> None:
    data = written(tmp_path / "j", [])
    with pytest.raises(RigError, match="line 2: the journal is damaged"):
        parse(data + b"[" * 100_000 + b"\n")


def test_a_full_disk_is_told_as_one_and_the_journal_goes_on_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.create(tmp_path / "j")
    journal.append(START)
    real, left = os.write, [20]

    def write(descriptor: int, data: bytes) -> int:
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[: left.pop()])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(RigError, match="the rollout's journal cannot be written") as told:
        journal.append({"event": "paused"})
    assert (told.value.why, told.value.code) == ("No space left on device", ExitCode.HOST_FAILED)
    journal.close()
    monkeypatch.undo()
    again = Journal.open(tmp_path / "j")
    again.append({"event": "resumed"})
    again.close()
    assert [record["event"] for record in read(tmp_path / "j").records] == ["rollout-started", "resumed"]


@pytest.mark.parametrize("record", [{"event": "host"}, START | {"waves": [{"name": "x"}]}, START | {"hosts": [1]}])
def test_records_of_another_form_are_refused(tmp_path: Path, record: dict[str, object]) -> None:
    written(tmp_path / "j", [record])
    with pytest.raises(RigError, match="the journal is not understood"):
        State.read(tmp_path / "j")
