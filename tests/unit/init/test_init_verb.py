"""The verb ``init``: where the spec goes, and what is never overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llamarig.cli import context, init
from llamarig.errors import RigError
from tests.support.machines.trees import RECORDED


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("llamarig.converge.discover.look.look", lambda *_words: RECORDED)
    monkeypatch.setattr(context, "_project", tmp_path)
    context._console.cache_clear()
    return tmp_path


def run(address: str | None = "box.lan", **options: Any) -> None:
    try:
        init.init(address, **options)
    finally:
        context._console.cache_clear()


def test_a_new_project_gets_an_inventory(project: Path) -> None:
    run()
    assert (project / "inventory" / "prov0.yml").read_text().startswith("# prov0, as `llamarig init` found it")


def test_specs_in_the_projects_top_stay_there(project: Path) -> None:
    (project / "other.yml").write_text("")
    run()
    assert (project / "prov0.yml").is_file()


def test_a_spec_that_is_there_is_kept(project: Path) -> None:
    run()
    path = project / "inventory" / "prov0.yml"
    path.write_text("mine")
    with pytest.raises(RigError, match="there is a spec already"):
        run()
    assert path.read_text() == "mine"


def test_a_dash_prints_the_spec(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(file=Path("-"))
    assert "schema-version: 1\nhost: prov0\n" in capsys.readouterr().out
    assert list(project.iterdir()) == []


def test_json_holds_what_was_seen_and_the_spec(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("admin@box.lan", json_=True)
    data = json.loads(capsys.readouterr().out)
    assert data["host"] == "prov0"
    assert data["looked"] == RECORDED
    assert "user: admin\n" in data["spec"]


@pytest.mark.parametrize(("address", "options"), [(None, {}), ("box", {"local": True})])
def test_one_machine_is_named_or_it_is_this_one(project: Path, address: str | None, options: dict[str, Any]) -> None:
    with pytest.raises(RigError, match="name one machine"):
        run(address, **options)


def test_an_address_that_is_none_is_refused(project: Path) -> None:
    with pytest.raises(RigError, match="no machine that can be reached"):
        run("box\n.lan")


def test_a_refused_login_speaks_of_options(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_words: object) -> None:
        raise RigError("the host refused the login", "box.lan", fix="give connection.user and connection.identity-file")

    monkeypatch.setattr("llamarig.converge.discover.look.look", refuse)
    with pytest.raises(RigError) as caught:
        run(user="nobody")
    assert caught.value.fix == "give --user and --identity"
    assert list(project.iterdir()) == []
