"""Key files, as the module that runs on the host keeps them (the real module)."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUNNER = Path(__file__).resolve().parents[2] / "support/observe/run_module.py"
FRESH = {name: f"{name}-" + "k" * 40 for name in ("ada", "bob", "cyd")}


def keep(path: Path, **arguments: Any) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, str(RUNNER), "rig_keys"],
        input=json.dumps({"path": str(path), **arguments}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer, done.stdout + done.stderr


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.keys"


def test_each_client_gets_a_key_once_and_keeps_it(path: Path) -> None:
    first, said = keep(path, clients=["ada"], candidates=FRESH)
    assert first["new"] == ["ada"]
    assert path.read_text() == f"# ada\n{FRESH['ada']}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert FRESH["ada"] not in said, "no key is part of a result"
    second, _ = keep(path, clients=["ada", "bob"], candidates={**FRESH, "ada": "another-" + "x" * 40})
    assert (second["changed"], second["new"]) == (True, ["bob"])
    assert path.read_text() == f"# ada\n{FRESH['ada']}\n# bob\n{FRESH['bob']}\n"
    third, _ = keep(path, clients=["ada", "bob"], candidates=FRESH)
    assert third["changed"] is False


def test_a_client_that_is_gone_from_the_spec_loses_its_key(path: Path) -> None:
    keep(path, clients=["ada", "bob"], candidates=FRESH)
    answer, _ = keep(path, clients=["bob"], candidates=FRESH)
    assert answer["gone"] == ["ada"]
    assert FRESH["ada"] not in path.read_text()


@pytest.mark.parametrize("more", ["{0}\n", "# ada\n{0}\n", "# key-2\n{0}\n", "# bob\x85{0}\n"])
def test_keys_that_nobody_was_given_go_and_the_given_ones_stay(path: Path, more: str) -> None:
    keep(path, clients=["ada"], candidates=FRESH)
    was = path.read_text()
    path.write_text(was + more.format("s" * 40))
    path.chmod(0o600)
    answer, _ = keep(path, clients=["ada"], candidates=FRESH)
    assert (answer["changed"], answer["new"], path.read_text()) == (True, [], was)


def test_a_key_without_a_name_becomes_nobodys(path: Path) -> None:
    path.write_text("s" * 40 + "\n")
    answer, _ = keep(path, clients=["key-1"], candidates={"key-1": FRESH["ada"]})
    assert (answer["new"], path.read_text()) == (["key-1"], f"# key-1\n{FRESH['ada']}\n")


def test_a_mode_that_lets_others_read_is_put_right(path: Path) -> None:
    keep(path, clients=["ada"], candidates=FRESH)
    path.chmod(0o644)
    answer, _ = keep(path, clients=["ada"], candidates=FRESH)
    assert answer["changed"] is True
    assert answer["new"] == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"clients": []}, "without a client"),
        ({"clients": ["ada"], "candidates": {}}, "32 or more"),
        ({"clients": ["ada"], "candidates": {"ada": "short"}}, "32 or more"),
        ({"content": ""}, "holds no key"),
        ({"content": "# a name\n\n"}, "holds no key"),
        ({"content": "0123456789abcdef\nwith a space in it\n"}, "key 2"),
        ({"content": "tooshort\n"}, "key 1"),
    ],
)
def test_what_would_start_a_server_without_a_key_is_refused(path: Path, arguments: dict[str, Any], words: str) -> None:
    answer, said = keep(path, **arguments)
    assert answer["failed"] is True
    assert words in answer["msg"]
    assert not path.exists()
    assert "with a space" not in said.replace("without a space", "")


def test_a_key_file_of_the_users_is_written_as_it_is(path: Path) -> None:
    answer, said = keep(path, content="# ops\n0123456789abcdef0123")
    assert answer["changed"] is True
    assert path.read_text() == "# ops\n0123456789abcdef0123\n"
    assert "0123456789abcdef0123" not in said


def test_check_mode_writes_nothing(path: Path) -> None:
    answer, _ = keep(path, clients=["ada"], candidates=FRESH, _ansible_check_mode=True)
    assert answer["changed"] is True
    assert not path.exists()


def test_a_link_in_its_place_is_replaced_not_followed(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text(f"# ada\n{'v' * 40}\n")
    path.symlink_to(victim)
    answer, _ = keep(path, clients=["ada"], candidates=FRESH)
    assert answer["new"] == ["ada"], "a key behind a link is nobody's"
    assert not path.is_symlink()
    assert victim.read_text() == f"# ada\n{'v' * 40}\n"
