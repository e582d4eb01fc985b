"""Releases, credentials, the record and the lock, read from composed trees."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import part

files = part("rig_files")
store = part("rig_store")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    base = tmp_path / "4df29be4f-0123456789ab"
    (base / "bin").mkdir(parents=True)
    (base / "lib").mkdir()
    (base / "bin/llama-server").write_bytes(b"server")
    (base / "lib/libllama.so.0").write_bytes(b"lib")
    (base / "lib/libllama.so").symlink_to("libllama.so.0")
    (base / "provenance.json").write_text(json.dumps({"schema": 1, "files": {}}))
    return base


def test_units_of_ours_that_nobody_knows_are_found_by_their_header(tmp_path: Path) -> None:
    for name, text in {
        "llama-a.service": '# Written by llamarig for the service "a"; x\n[Unit]\n',
        "llama-known.service": '# Written by llamarig for the service "known"; x\n',
        "llama-b.service": "[Unit]\n",
        "other.service": '# Written by llamarig for the service "c"; x\n',
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "llama-dir.service").mkdir()
    os.mkfifo(tmp_path / "llama-fifo.service")
    found = store.left_units({str(tmp_path / "llama-known.service")}, str(tmp_path))
    assert found == [str(tmp_path / "llama-a.service")]
    assert store.left_units((), str(tmp_path / "none")) == []


def test_the_header_is_the_units_own() -> None:
    template = Path(__file__).resolve().parents[3] / "templates/etc/systemd/system/llama-service.service.j2"
    assert template.read_bytes().startswith(store.HEADER)


def test_files_in_our_own_places_that_nobody_knows_are_found(tmp_path: Path) -> None:
    (tmp_path / "old.keys").write_text("x")
    (tmp_path / "link.keys").symlink_to("nowhere")
    (tmp_path / "chat.keys").write_text("x")
    (tmp_path / "directory").mkdir()
    found = store.left_settings({str(tmp_path / "chat.keys")}, (str(tmp_path), str(tmp_path / "none")))
    assert found == [str(tmp_path / "link.keys"), str(tmp_path / "old.keys")]


def test_a_release_is_its_provenance_and_every_file(release: Path) -> None:
    seen = store.release(str(release), files.Hasher())
    assert set(seen["files"]) == {"bin/llama-server", "lib/libllama.so.0", "lib/libllama.so"}
    assert seen["files"]["lib/libllama.so"]["target"] == "libllama.so.0"
    assert seen["provenance"] == {"schema": 1, "files": {}}
    assert len(seen["provenance-sha256"]) == 64
    assert [entry["type"] for entry in seen["directories"].values()] == ["dir", "dir", "dir"]


def test_a_release_without_a_readable_provenance_still_shows_its_files(release: Path) -> None:
    (release / "provenance.json").write_text("<html>")
    seen = store.release(str(release), files.Hasher())
    assert seen["provenance"] is None
    assert "bin/llama-server" in seen["files"]


def test_a_release_that_is_a_link_or_absent_is_none(release: Path) -> None:
    link = release.with_name("linked")
    link.symlink_to(release)
    assert store.release(str(link), files.Hasher()) is None
    assert store.release(str(release) + "x", files.Hasher()) is None


def test_a_tree_of_links_and_depth_ends(release: Path) -> None:
    (release / "lib/loop").symlink_to("..")
    deep = release / "/".join(["d"] * 20)
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    seen = store.release(str(release), files.Hasher())["files"]
    assert seen["lib/loop"]["type"] == "link"
    assert not [name for name in seen if name.endswith("d/file")]


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", ".", "..", "-x", "x\n", "n" * 200])
def test_a_release_id_that_is_a_path_is_not_looked_at(name: str) -> None:
    assert store.release_ids(name, f"releases/{name}", {"release": name, "former-release": name}) == []


def test_the_wanted_the_current_and_the_recorded_releases_are_looked_at() -> None:
    assert store.release_ids("a", "releases/b", {"release": "c", "former-release": "a"}) == ["a", "b", "c"]
    assert store.release_ids("a", None, {"release": 7, "former-release": None}) == ["a"]
    assert store.release_ids("a", "/etc", ["hostile"]) == ["a"]


def record_at(path: Path, data: Any) -> tuple[Any, str]:
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    found: tuple[Any, str] = store.record(str(path))
    return found


def test_the_states_of_a_record(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    assert store.record(str(path)) == (None, "absent")
    good = {"schema": 1, "host": "demo"}
    good["digest"] = files.canonical_digest(good)
    assert record_at(path, good) == (good, "ok")
    assert record_at(path, json.dumps(good, indent=3)) == (good, "ok")
    assert record_at(path, good | {"host": "other"})[1] == "edited"
    assert record_at(path, {"schema": 1})[1] == "edited"
    assert record_at(path, "[]") == (None, "unreadable")
    assert record_at(path, "{")[1] == "unreadable"
    assert record_at(path, "[" * 100_000)[1] == "unreadable"


def test_a_record_that_is_a_link_a_fifo_or_huge_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    target = tmp_path / "elsewhere"
    target.write_text("{}")
    path.symlink_to(target)
    assert store.record(str(path))[1] == "unreadable"
    path.unlink()
    os.mkfifo(path)
    assert store.record(str(path))[1] == "unreadable"
    path.unlink()
    with path.open("wb") as file:
        file.truncate(1 << 33)
    assert store.record(str(path))[1] == "unreadable"


def test_clients_are_named_by_the_comment_above_a_key_and_no_key_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "chat.keys"
    path.write_text("# default\nSECRETONE\n#phone\n\nSECRETTWO\nSECRETTHREE\n# two words here\nSECRETFOUR\n# last\n")
    path.chmod(0o600)
    seen = store.credential(str(path))
    assert (seen["clients"], seen["keys"], seen["mode"]) == (["default", "phone"], 4, "0600")
    assert "SECRET" not in json.dumps(seen)


def test_a_key_file_that_is_none(tmp_path: Path) -> None:
    assert store.credential(str(tmp_path / "no")) == {"type": "absent"}
    (tmp_path / "link").symlink_to("/etc/shadow")
    assert store.credential(str(tmp_path / "link"))["type"] == "link"
    assert "keys" not in store.credential(str(tmp_path / "link"))


def test_the_lines_of_a_text_file_come_along_only_where_it_differs(tmp_path: Path) -> None:
    path = tmp_path / "llama-chat.service"
    path.write_text("[Service]\nExecStart=x\n")
    sha256 = store.small_file(str(path), files.Hasher(), None)["sha256"]
    assert "lines" not in store.small_file(str(path), files.Hasher(), sha256)
    assert "lines" not in store.small_file(str(path), files.Hasher(), None)
    assert store.small_file(str(path), files.Hasher(), "f" * 64)["lines"] == ["[Service]", "ExecStart=x"]


def test_a_huge_text_file_is_neither_hashed_nor_sent(tmp_path: Path) -> None:
    path = tmp_path / "llama-chat.service"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    seen = store.small_file(str(path), files.Hasher(), "f" * 64)
    assert seen["sha256"] is None
    assert "lines" not in seen


def test_the_lock_says_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert store.lock(str(path)) is None
    path.write_text(json.dumps({"who": "anna", "from": "desk", "run": "r1"}))
    seen = store.lock(str(path))
    assert (seen["who"], seen["from"]) == ("anna", "desk")
    assert seen["age-s"] >= 0
    path.write_text("garbage")
    assert "error" in store.lock(str(path))
