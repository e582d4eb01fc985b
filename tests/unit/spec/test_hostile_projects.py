"""Projects that are big, strange or hold links out of them (all composed here)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from llamarig.spec.load import load_project
from llamarig.spec.read_yaml import read_bytes
from llamarig.spec.rules.controller import _wrong_keys
from llamarig.spec.validate import validate

DEMO = (Path(__file__).resolve().parents[3] / "inventory/demo.yml").read_text()
SECRET = "root:$y$j9T$abc:19000:0:99999:7:::\n"


def test_many_unknown_keys_are_told_in_seconds() -> None:
    text = DEMO + "".join(f"modells-{number}: 1\n" for number in range(20_000))
    tree, problems = read_bytes(text.encode(), Path("spec.yml"))
    assert tree is not None
    assert problems == []
    begun = time.process_time()
    errors = validate(tree, Path()).errors
    assert time.process_time() - begun < 10
    assert len(errors) == 20_000
    assert "right file" in errors[-1].fix


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\u2029"])
def test_a_line_break_that_nobody_sees_is_named(odd: str) -> None:
    tree, [problem] = read_bytes(f"a: 1\n# one{odd}two\n".encode(), Path("spec.yml"))
    assert tree is None
    assert problem.line == 2
    assert f"U+{ord(odd):04X}" in problem.message


@pytest.mark.parametrize("name", ["host.yml", "fleet.yml", "below/host.yml"])
def test_nothing_of_a_file_behind_a_link_is_told(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "shadow").write_text(SECRET)
    (outside / "host.yml").write_text(SECRET)
    inventory = tmp_path / "project/inventory"
    inventory.mkdir(parents=True)
    (inventory / "demo.yml").write_text(DEMO)
    if name.startswith("below"):
        (inventory / "below").symlink_to(outside)
        (inventory / "host.yml").symlink_to(inventory / name)
    else:
        (inventory / name).symlink_to(outside / "shadow")
    project = load_project(tmp_path / "project")
    told = [*project.errors, *(error for host in project.hosts for error in host.errors)]
    assert any("leads out of the project" in each.message for each in told)
    assert not any("$y$" in f"{each.message}{each.fix}" or "root" in each.message for each in told)


def test_a_link_within_the_project_is_followed(tmp_path: Path) -> None:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "demo.txt").write_text(DEMO)
    (tmp_path / "inventory/demo.yml").symlink_to("../demo.txt")
    [host] = load_project(tmp_path).hosts
    assert host.errors == []


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"", "holds no key"),
        (b"# only words\n\n", "holds no key"),
        (b"short\n", "line 1"),
        (b"# mine\n0123456789abcdef\nwith a space in it\n", "line 3"),
        (b"\xff" * 20, "line 1"),
        (b"0123456789abcdef\r\n# mine\n0123456789abcdefg", None),
        (b"$ANSIBLE_VAULT;1.1;AES256\n3132\n", None),
    ],
)
def test_a_key_file_is_judged_without_telling_it(tmp_path: Path, content: bytes, wrong: str | None) -> None:
    (tmp_path / "keys").write_bytes(content)
    found = _wrong_keys(tmp_path, "keys")
    assert (found is None) if wrong is None else (found is not None and wrong in found)
    assert "short" not in (found or "")
