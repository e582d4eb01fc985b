"""``--overlay`` as users give it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from llamarig.cli import context
from llamarig.cli.main import _run, _whole_first
from tests.support.overlays import ENTRY, HEAD, project_of
from tests.support.spec_files import write


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    context.set_overlay(None)


def run(root: Path, *words: str) -> int:
    return _run(["-C", str(root), *words])


def test_the_option_may_stand_anywhere_once() -> None:
    assert _whole_first(["plan", "box", "--overlay=x"]) == ["--overlay", "x", "plan", "box"]
    assert _whole_first(["plan", "--overlay", "x", "-C", "y"]) == ["--overlay", "x", "--project", "y", "plan"]


def test_check_uses_it_and_plan_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = project_of(tmp_path)
    path = write(root / "overlay.yml", HEAD + "replace:\n" + ENTRY.replace("2048", "much"))
    assert run(root, "check", "box", "--json", "--overlay", str(path)) == 2
    [host] = json.loads(capsys.readouterr().out)["hosts"]
    assert (Path(host["errors"][0]["path"]).name, host["errors"][0]["line"]) == ("overlay.yml", 4)
    assert run(root, "check", str(root / "inventory/box.yml"), "--overlay", str(path)) == 2
    write(path, HEAD + "replace:\n" + ENTRY)
    capsys.readouterr()
    run(root, "plan", "box", "--json", "--overlay", str(path))
    captured = capsys.readouterr()
    argv = json.loads(captured.out)["services"]["chat"]["argv"]
    assert argv[argv.index("--ctx-size") + 1] == "2048"
    assert "stands in for 1 value of box" in captured.err


@pytest.mark.parametrize("words", [("lock", "box"), ("init", "--local")])
def test_what_writes_specs_refuses_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    root = project_of(tmp_path)
    path = write(root / "overlay.yml", HEAD + "replace:\n" + ENTRY)
    assert run(root, *words, "--overlay", str(path)) == 2
    assert f"{words[0]} takes no --overlay" in capsys.readouterr().err


def test_an_overlay_for_nobody_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = project_of(tmp_path)
    path = write(root / "overlay.yml", HEAD.replace("box", "boxx") + "replace:\n" + ENTRY)
    assert run(root, "plan", "box", "--overlay", str(path)) == 2
    assert "no spec names the host 'boxx'" in capsys.readouterr().err
    assert run(root, "plan", "box", "--overlay", str(root / "none.yml")) == 2
    assert "cannot be read" in capsys.readouterr().err
