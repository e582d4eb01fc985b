"""The modules as plain processes, as Ansible starts them on a host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llamarig.compare import compare, probe_list
from tests.support.compare.cases import wanted_state
from tests.support.observe.load import module, part

RUNNER = Path(__file__).resolve().parents[2] / "support/observe/run_module.py"
observe = module("rig_observe")
record = module("rig_record")
files = part("rig_files")
store = part("rig_store")


def start(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(RUNNER), name],
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_module_answers_the_probe_list_with_every_documented_key() -> None:
    wanted = wanted_state()
    answer = start("rig_observe", {"probe": probe_list(wanted)})
    assert answer["changed"] is False
    observed = answer["observed"]
    assert set(observed) == {
        "schema",
        "hostname",
        "arch",
        "boot-id",
        "driver",
        "driver-left",
        "power",
        "time",
        "os",
        "kernel",
        "cores",
        "ram-mib",
        "disk",
        "packages",
        "users",
        "files",
        "directories",
        "current",
        "releases",
        "toolkits",
        "models",
        "links",
        "credentials",
        "units",
        "processes",
        "ports",
        "record",
        "record-state",
        "lock",
        "unfinished",
        "former",
        "systemd",
        "gpus",
        "changed",
    }
    assert set(observed["changed"]) >= {"/etc/passwd", "/opt/llamarig/current", *(file.path for file in wanted.files)}
    assert set(observed["files"]) >= {file.path for file in wanted.files}
    somewhere = observed | {"systemd": True, "arch": "x86_64"}
    assert compare(replace(wanted, system=""), somewhere), "this machine is not that host"


@pytest.mark.parametrize(
    "probe",
    [
        {},
        {"files": None, "packages": "x", "models": [1, {"path": 3}, {}], "ports": [{"port": "x"}], "units": [None]},
        {"files": ["/etc/\u0000x", "relative", "/dev/zero", "/proc/self/mem"], "directories": ["/nowhere"]},
        {"files": 3, "packages": 3, "models": 3, "ports": 3, "units": 3, "expected": [1], "release": 3, "deep": "no"},
        {"release": "../../etc", "models": [{"path": "/", "links": ["/", ""]}], "credentials": ["/dev/zero"]},
    ],
)
def test_a_strange_probe_list_is_answered(probe: dict[str, Any]) -> None:
    answer = start("rig_observe", {"probe": probe})
    assert answer["observed"]["schema"] == 1


def test_what_is_handed_on_is_capped_and_clean() -> None:
    deep: Any = "end"
    for _ in range(100):
        deep = {"a": deep}
    seen = observe.capped({"s": "x" * 10_000, "l": list(range(10_000)), "bad": "\udcff\ud800", "deep": deep})
    assert len(seen["s"]) == 4096
    assert len(seen["l"]) == 4096
    json.dumps(seen, ensure_ascii=False).encode()
    assert json.dumps(seen).count('{"a"') < 40


PARAMS = {
    "host": "demo",
    "release": "new",
    "former_release": None,
    "run": "r1",
    "applied_from": "desk",
    "llamarig": "0.1.0",
    "gpus": {},
    "files": [],
    "expected": {},
}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with two releases, in the place of /opt/llamarig and /var/lib/llamarig."""
    monkeypatch.setattr(store, "ROOT", str(tmp_path / "opt"))
    monkeypatch.setattr(store, "RECORD", str(tmp_path / "record.json"))
    for name in ("old", "new"):
        base = tmp_path / "opt/releases" / name
        (base / "bin").mkdir(parents=True)
        (base / "bin/llama-server").write_text(name)
        (base / "provenance.json").write_text("{}")
    (tmp_path / "model").write_bytes(b"model")
    return tmp_path


@pytest.fixture
def apply(host: Path) -> Callable[..., dict[str, Any]]:
    def write(**changes: Any) -> dict[str, Any]:
        before, state = store.record(store.RECORD)
        composed: dict[str, Any] = record.compose(PARAMS | changes, before, state)
        record.write_whole(Path(store.RECORD), json.dumps(composed).encode())
        return composed

    return write


def test_a_record_holds_what_was_applied_and_is_believed_after(
    host: Path, apply: Callable[..., dict[str, Any]]
) -> None:
    written = apply(files=[str(host / "model")])
    server = str(host / "opt/releases/new/bin/llama-server")
    assert set(written["files"]) == {server, str(host / "opt/releases/new/provenance.json"), str(host / "model")}
    assert store.record(store.RECORD) == (written, "ok")
    seen = files.Hasher(written["files"]).describe(server)
    assert (seen["hashed"], seen["sha256"]) == (False, written["files"][server]["sha256"])


def test_an_edit_while_the_apply_ran_is_recorded_as_what_was_wanted(
    host: Path, apply: Callable[..., dict[str, Any]]
) -> None:
    unit, wanted = host / "unit", "0" * 64
    unit.write_text("edited meanwhile")
    written = apply(files=[str(unit)], expected={str(unit): wanted})
    assert written["files"][str(unit)] == {"sha256": wanted, "stat": []}
    seen = files.Hasher(written["files"]).describe(str(unit))
    assert seen["sha256"] not in (wanted, None), "the wanted hash is not believed of the edited file"


def test_a_kept_state_is_told_without_its_files(tmp_path: Path) -> None:
    held = tmp_path / "held.json"
    assert store.state(str(held)) is None
    held.write_text(
        json.dumps({"release": "a-1", "run": "r1", "from": "ada@desk", "at": 3, "files": [{"content": "x"}]})
    )
    assert store.state(str(held)) == {"release": "a-1", "run": "r1", "from": "ada@desk"}
    held.write_text("[")
    assert store.state(str(held)) == {}, "a broken one is there all the same"


def test_cards_stay_pinned_where_an_apply_says_nothing_of_them(
    host: Path, apply: Callable[..., dict[str, Any]]
) -> None:
    assert apply(gpus=None)["gpus"] == {}
    assert apply(gpus={"ada": "GPU-1"})["gpus"] == {"ada": "GPU-1"}
    assert apply(release="old", gpus=None)["gpus"] == {"ada": "GPU-1"}
    Path(store.RECORD).write_text(Path(store.RECORD).read_text().replace("GPU-1", "GPU-2"))
    assert apply(gpus=None)["gpus"] == {}, "a record that was edited is not believed"
    assert apply(gpus={})["gpus"] == {}


def test_the_former_release_is_the_last_one_and_stays_so_when_the_same_is_applied_again(
    host: Path, apply: Callable[..., dict[str, Any]]
) -> None:
    assert apply(release="old")["former-release"] is None
    switched = apply()
    assert switched["former-release"] == "old"
    assert str(host / "opt/releases/old/bin/llama-server") in switched["files"]
    assert apply()["former-release"] == "old"
    (host / "opt/releases/old").rename(host / "opt/releases/gone")
    assert apply()["former-release"] is None


def test_a_former_record_saves_hashing_only_while_it_is_whole(host: Path, apply: Callable[..., dict[str, Any]]) -> None:
    written = apply(files=[str(host / "model")])
    planted = json.loads(json.dumps(written))
    planted["files"][str(host / "model")]["sha256"] = "f" * 64
    Path(store.RECORD).write_text(json.dumps(planted))
    assert apply(files=[str(host / "model")])["files"][str(host / "model")]["sha256"] != "f" * 64
    planted["digest"] = files.canonical_digest(planted)
    Path(store.RECORD).write_text(json.dumps(planted))
    assert apply(files=[str(host / "model")])["files"][str(host / "model")]["sha256"] == "f" * 64


def test_a_record_of_the_same_is_the_same_whenever_it_is_written(apply: Callable[..., dict[str, Any]]) -> None:
    first = apply()
    again = record.compose(PARAMS | {"run": "r2"}, *store.record(store.RECORD))
    assert record.same(first, again)
    assert not record.same(first, again | {"release": "old"})
    assert not record.same(None, again)


def test_a_file_that_is_not_there_or_is_no_file_is_not_recorded(host: Path) -> None:
    (host / "link").symlink_to(host / "model")
    for name, why in (("no", "is not there"), ("link", "cannot be opened"), ("opt", "is a dir")):
        with pytest.raises(files.UnusualFileError, match=f"{name} {why}"):
            record.compose(PARAMS | {"files": [str(host / name)]}, None, "absent")


def test_a_young_file_is_left_to_settle_before_it_is_recorded(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(record.time, "sleep", slept.append)
    (host / "model").write_bytes(b"other")
    record.entry_of(str(host / "model"), files.Hasher())
    assert slept
    assert 0 < slept[0] <= 0.05


def test_settings_of_an_earlier_apply_stay_known_while_they_are_there(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {
        "files": {"/etc/passwd": {}, "/etc/llamarig-never-there": {}, "/var/x": {}},
        "former": {"files": ["/etc/group", 7]},
    }
    assert record.left_over(before, {}) == ["/etc/group", "/etc/passwd"]
    assert record.left_over(before, {"/etc/passwd": {}}) == ["/etc/group"]
    assert record.left_over({"files": [], "former": 3}, {}) == []
    assert record.left_over({"files": None, "former": {"files": 3}}, {}) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="the record is root's")
def test_the_record_module_in_check_mode_writes_nothing() -> None:
    arguments = {key: value for key, value in PARAMS.items() if value is not None} | {"_ansible_check_mode": True}
    there = Path("/var/lib/llamarig/record.json").exists()
    answer = start("rig_record", arguments)
    assert answer["changed"] is True
    assert answer["record"]["host"] == "demo"
    assert Path("/var/lib/llamarig/record.json").exists() is there


def test_the_record_module_says_which_file_is_missing() -> None:
    arguments = {key: value for key, value in PARAMS.items() if value is not None} | {"files": ["/nowhere/at-all"]}
    answer = start("rig_record", arguments)
    assert answer["failed"] is True
    assert "/nowhere/at-all is not there" in answer["msg"]
