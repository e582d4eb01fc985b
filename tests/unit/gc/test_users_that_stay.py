"""A user goes only when it is in every respect as the role makes one, has no unit, and owns nothing anywhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.observe.load import part

users = part("rig_gc_users")
OURS = "llama-old:x:990:990::/nonexistent:/usr/sbin/nologin"


def system(root: Path, passwd: str = OURS, group: str = "llama-old:x:990:", shadow: str = "llama-old:!:1::::::") -> str:
    (root / "etc").mkdir()
    for name, line in (("passwd", passwd), ("group", group), ("shadow", shadow)):
        (root / "etc" / name).write_text(f"root:x:0:0::/root:/bin/sh\n{line}\n")
    return str(root)


def test_a_user_of_a_service_that_is_gone_is_found(tmp_path: Path) -> None:
    root = system(tmp_path)
    assert list(users.made_by_us([], root)) == ["llama-old"]
    assert users.made_by_us(["llama-old"], root) == {}


@pytest.mark.parametrize(
    "passwd",
    [
        OURS.replace("/usr/sbin/nologin", "/bin/bash"),
        OURS.replace("/nonexistent", "/home/llama-old"),
        OURS.replace("x:990:990", "x:1000:990"),
        OURS.replace("x:990:990", "x:0:990"),
        OURS.replace("x:990:990", "x:990:0"),
        OURS.replace("llama-old", "llamarig-build"),
        OURS.replace("llama-old", "llama-"),
        OURS.replace("llama-old", "postgres"),
    ],
)
def test_a_user_that_somebody_else_made_or_changed_is_none_of_ours(tmp_path: Path, passwd: str) -> None:
    assert users.made_by_us([], system(tmp_path, passwd)) == {}


def test_a_user_with_a_password_is_none_of_ours(tmp_path: Path) -> None:
    assert users.made_by_us([], system(tmp_path, shadow="llama-old:$y$j9T$x:1::::::")) == {}


def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, search: bool = False) -> dict[str, object]:
    monkeypatch.setattr(users, "UNITS", str(tmp_path))
    account = users.made_by_us([], system(tmp_path / "root"))
    [thing] = users.describe(account, {}, [], search=search)
    return dict(thing)


@pytest.mark.parametrize("end", ["", ".d"])
def test_its_unit_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    (tmp_path / "root").mkdir()
    assert described(tmp_path, monkeypatch)["odd"] == ""
    (tmp_path / f"llama-old.service{end}").mkdir()
    (tmp_path / "root" / "etc").rename(tmp_path / "aside")
    assert described(tmp_path, monkeypatch)["odd"] == "the unit llama-old.service is there"


def test_a_file_of_it_anywhere_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "root").mkdir()
    monkeypatch.setattr(users, "files_of", lambda uids, _trees: dict.fromkeys(uids, "it owns /srv/x"))
    assert described(tmp_path, monkeypatch, search=True)["odd"] == "it owns /srv/x"


def test_files_are_found_outside_of_our_trees_alone(tmp_path: Path) -> None:
    own, other = os.getuid(), 4_000_000_000
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("x")
    found = users.files_of({own, other}, [], str(tmp_path))
    assert found == {own: f"it owns {tmp_path}/a"}
    assert users.files_of({own}, [str(tmp_path)], str(tmp_path)) == {}


def test_a_search_that_takes_too_long_keeps_the_user(tmp_path: Path) -> None:
    found = users.files_of({4_000_000_000}, [], str(tmp_path), patience_s=-1.0)
    assert "could not all be looked for" in found[4_000_000_000]


def test_a_place_that_cannot_be_searched_keeps_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_place: str) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(users.os, "scandir", broken)
    found = users.files_of({4_000_000_000}, [], str(tmp_path))
    assert found == {4_000_000_000: f"{tmp_path} cannot be searched for its files: Input/output error"}


def test_what_is_mounted_from_elsewhere_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net/deep").mkdir(parents=True)
    seen: list[str] = []
    scan = os.scandir
    monkeypatch.setattr(users.os, "scandir", lambda place: seen.append(place) or scan(place))
    monkeypatch.setattr(users, "_local_mounts", lambda: {f"{tmp_path}/net": "nfs4"})
    assert users.files_of({4_000_000_000}, [], str(tmp_path)) == {}
    assert seen == [str(tmp_path)]
