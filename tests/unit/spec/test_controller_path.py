"""Paths of a spec on the controller, with a home directory before them or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamarig.spec.controller_path import below


def test_a_relative_path_is_below_the_project_and_a_tilde_is_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    assert below(Path("/p"), "keys/a") == Path("/p/keys/a")
    assert below(Path("/p"), "/srv/a") == Path("/srv/a")
    assert below(Path("/p"), "~/a") == Path("/home/anna/a")


def test_the_home_of_an_unknown_user_is_a_file_that_is_not_there() -> None:
    assert below(Path("/p"), "~nobody-by-that-name/a") == Path("/p/~nobody-by-that-name/a")
