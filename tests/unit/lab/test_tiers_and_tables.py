"""Which tiers scripts/test runs, what it makes of their ends, and the lines of benchmarks."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


def load(path: str) -> ModuleType:
    name = "loaded_" + Path(path).stem
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


tiers = load("scripts/test.py")
tables = load("benchmarks/run.py")
timing = load("benchmarks/over_ping.py")


def names(changed: list[str], **flags: object) -> list[str]:
    given = {"faults": False, "cuda": False, "fleet": False, "all": False, "only": None, **flags}
    return [tier.name for tier in tiers.chosen(argparse.Namespace(**given), changed)]


def test_without_a_flag_or_a_change_the_tiers_of_every_run() -> None:
    assert names([]) == ["lint", "unit", "hosts"]
    assert names(["docs/tutorial.md", "README.md"]) == ["lint", "unit", "hosts"]


@pytest.mark.parametrize(
    "path", ["roles/models/tasks/main.yml", "plugins/modules/rig_put.py", "llamarig/compare/act.py"]
)
def test_a_change_of_what_the_faults_cover_runs_them(path: str) -> None:
    assert names([path]) == ["lint", "unit", "hosts", "faults"]


@pytest.mark.parametrize("path", ["roles/cuda_toolkit/tasks/main.yml", "plugins/modules/rig_toolkit.py"])
def test_a_change_of_the_toolkit_runs_what_covers_it(path: str) -> None:
    assert names([path]) == ["lint", "unit", "hosts", "faults", "cuda"]


def test_flags_add_tiers_and_only_leaves_the_others_out() -> None:
    assert names([], faults=True)[-1] == "faults"
    assert names([], all=True)[-5:] == ["faults", "driver", "cuda", "reference", "fleet"]
    assert names([], cuda=True)[-1] == "cuda"
    assert names([], cuda_full=True)[-1] == "cuda-full"
    assert "cuda-full" not in names(["tests/hosts/cuda_full/release.yml"], all=True)
    assert names(["roles/x"], only=["unit"]) == ["unit"]


@pytest.mark.parametrize(("body", "code", "word"), [("assert True", 0, "1 passed"), ("assert False", 1, "1 failed")])
def test_a_tier_ends_as_its_pytest_does(tmp_path: Path, body: str, code: int, word: str) -> None:
    (tmp_path / "test_planted_tier.py").write_text(f"def test_it():\n    {body}\n")
    result = tiers.run_tier(tiers.Tier("planted", (str(tmp_path),)))
    assert result.code == code
    assert word in result.line


def test_a_tier_without_a_single_test_has_failed(tmp_path: Path) -> None:
    (tmp_path / "test_empty_tier.py").write_text("")
    assert tiers.run_tier(tiers.Tier("empty", (str(tmp_path),))).code != 0


def test_lines_of_four_columns_are_rows_and_others_are_not() -> None:
    output = "seed 17\nhashing over openssl  1.02x (1.1 s)  at most 1.1x  met\n\nsomething else  here\n"
    assert tables.rows_of(output) == [tables.Row("hashing over openssl", "1.02x (1.1 s)", "at most 1.1x", "met")]


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("print('a  1  2  met')", "met"),
        ("print('a  1  2  MISSED'); sys.exit(1)", "MISSED"),
        ("print('a  1  2  met'); sys.exit(1)", "BROKEN"),
        ("print('nothing to see')", "BROKEN"),
        ("print('a  1  2  met'); raise RuntimeError", "BROKEN"),
    ],
)
def test_a_benchmark_that_breaks_is_never_read_as_met(tmp_path: Path, body: str, verdict: str) -> None:
    script = tmp_path / "planted.py"
    script.write_text(f"import sys\n{body}\n")
    assert tables.run(script)[-1].verdict == verdict


def test_the_table_lines_its_columns_up() -> None:
    lines = tables.table(
        [tables.Row("a long name", "1", "2", "met"), tables.Row("b", "10", "20", "MISSED")]
    ).splitlines()
    assert len({line.index(cell) for line, cell in zip(lines, ("verdict", "met", "MISSED"), strict=True)}) == 1


@pytest.mark.parametrize(
    ("bar", "line", "met"),
    [
        (3.0, "a verb over ping, 2 hosts  3.00x (6.00 s over 2.00 s)  at most 3x  met", True),
        (2.9, "a verb over ping, 2 hosts  3.00x (6.00 s over 2.00 s)  at most 2.9x  MISSED", False),
    ],
)
def test_the_medians_of_a_verb_and_a_ping_are_held_against_the_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], bar: float, line: str, met: bool
) -> None:
    pings, verbs = iter([2.0, 1.0, 2.0, 90.0, 2.0]), iter([6.0, 6.0, 600.0, 1.0, 6.0])
    monkeypatch.setattr(timing, "ping", lambda _fleet: next(pings))
    fleet = timing.Fleet(None, [None, None])
    assert timing.over_ping("a verb", bar, fleet, lambda _fleet: next(verbs)) is met
    said = capsys.readouterr().out
    assert said == f"{line}\n"
    assert len(tables.rows_of(said)) == 1


def test_an_unknown_benchmark_is_named() -> None:
    with pytest.raises(SystemExit, match="no-such"):
        tables.scripts(["no-such"])
