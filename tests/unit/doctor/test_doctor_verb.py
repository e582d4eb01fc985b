"""``llamarig doctor`` as a user runs it, and its generated page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from llamarig.cli import reference_diagnoses
from tests.support.doctor_bundles import HEALTHY, bundle

ROOT = Path(__file__).resolve().parents[3]


def run(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "llamarig.cli.main", "doctor", *words]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


def saved(path: Path, document: object) -> str:
    path.write_text(json.dumps(document))
    return str(path)


def test_a_bundle_with_a_fault(tmp_path: Path) -> None:
    path = saved(tmp_path / "box.json", bundle(kernel_log="[ 800.0] PM: suspend exit"))
    done = run("--bundle", path)
    assert done.returncode == 1
    assert "1 warning" in done.stdout
    assert "was-suspended" in done.stdout
    assert "fix: mask the sleep targets" in done.stdout
    document = json.loads(run("--bundle", path, "--json").stdout)
    assert document["subject"] == path
    assert [each["code"] for each in document["diagnoses"]] == ["was-suspended"]
    assert set(document["diagnoses"][0]) == {"code", "severity", "what", "evidence", "cause", "fix"}


def test_a_bundle_without_fault(tmp_path: Path) -> None:
    done = run("--bundle", saved(tmp_path / "box.json", HEALTHY))
    assert done.returncode == 0
    assert "nothing known is wrong" in done.stdout


def test_an_error_from_standard_input() -> None:
    done = run("--error", "-", given="x\nNo devices were found\n")
    assert done.returncode == 1
    assert "smi-no-devices" in done.stdout


def test_a_note_alone_is_fine() -> None:
    assert run("--error", "model has unused tensor blk.64.nextn.eh_proj.weight (size = 1 bytes)").returncode == 0


def test_a_text_that_is_not_known_is_no_clean_bill() -> None:
    done = run("--error", "E: cannot frobnicate the card")
    assert done.returncode == 1
    assert "nothing known is wrong" not in done.stdout
    assert done.stdout.startswith("the text: 1 warning\n  warning text-not-known:")
    assert "journalctl -u llama-NAME -n 200" in done.stdout
    assert "llamarig doctor HOST" in done.stdout
    page = (ROOT / "docs/how-to/diagnose.md").read_text(encoding="utf-8")
    assert done.stdout[: done.stdout.index("    cause")] in page


def test_a_text_without_an_error_is_said_to_have_none() -> None:
    done = run("--error", "-", given="main: server is listening\n")
    assert done.returncode == 0
    assert "note no-error-in-text: nothing in this text looks like an error" in done.stdout


def test_an_empty_text_is_refused() -> None:
    done = run("--error", "-", given=" \n")
    assert done.returncode == 2
    assert "the error text is empty" in done.stderr


@pytest.mark.parametrize("words", [(), ("demo", "--error", "x"), ("--bundle", "a", "--error", "x")])
def test_one_thing_is_examined_at_a_time(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert "one of them" in done.stderr


def test_a_bundle_that_is_none_is_refused(tmp_path: Path) -> None:
    done = run("--bundle", saved(tmp_path / "x", [1]))
    assert done.returncode == 2
    assert "fix: write one with" in done.stderr


def test_the_page_of_diagnoses_is_fresh() -> None:
    assert reference_diagnoses.PAGE.read_text(encoding="utf-8") == reference_diagnoses.page(), (
        "run: python -m llamarig.cli.reference_diagnoses"
    )


def test_every_rule_is_on_the_page() -> None:
    codes = reference_diagnoses.rule_codes()
    assert {"xid", "wrong-flavour", "kernel-without-module", "power-limit-lost"} <= set(codes)
    assert all(codes.values())
