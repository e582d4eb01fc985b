"""The documents that docs/contracts.md shows have the keys that the code gives them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from llamarig.compare import probe_list
from tests.support.compare.cases import wanted_state
from tests.support.observe.load import module, part

PAGE = (Path(__file__).resolve().parents[3] / "docs/contracts.md").read_text(encoding="utf-8")
HEADINGS = re.compile(r"^## (.+)$", re.MULTILINE)


def shown(heading: str) -> dict[str, Any]:
    """The JSON under a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    block = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert block is not None
    document: dict[str, Any] = json.loads(block[1])
    return document


def observed() -> dict[str, Any]:
    seen: dict[str, Any] = module("rig_observe").observe({}, lambda *_words, **_named: (0, "", ""))
    return seen


def test_the_probe_list() -> None:
    assert set(shown("Probe list")) == set(probe_list(wanted_state()))


def test_the_observed_state() -> None:
    assert set(shown("Observed state")) == set(observed())


def test_the_entries_of_files_credentials_and_the_lock(tmp_path: Path) -> None:
    store, files = part("rig_store"), part("rig_files")
    page = shown("Observed state")
    text, keys, lock = tmp_path / "x", tmp_path / "chat.keys", tmp_path / "lock"
    text.write_text("one\n")
    keys.write_text("# default\nkey\n")
    lock.write_text(json.dumps({"who": "anna"}))
    assert set(page["files"]["/etc/x"]) == set(store.small_file(str(text), files.Hasher(), "another"))
    credential = next(iter(page["credentials"].values()))
    assert set(credential) - {"agrees"} == set(store.credential(str(keys)))
    assert set(store.lock(str(lock))) <= set(page["lock"])
    release = tmp_path / "release"
    (release / "bin").mkdir(parents=True)
    assert set(next(iter(page["releases"].values()))) == set(store.release(str(release), files.Hasher()))


@pytest.mark.parametrize("heading", ["Probe list", "Observed state", "Probed state", "Record"])
def test_every_document_is_valid_json(heading: str) -> None:
    assert shown(heading)


def test_a_key_that_nobody_gives_would_be_seen() -> None:
    assert (set(shown("Observed state")) | {"weather"}) - set(observed()) == {"weather"}
