"""The bar that the page about plans shows has the form of what is printed; its figures may be of another day."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from llamarig.cli import context
from llamarig.cli.plan_view.basis import KEYS
from llamarig.cli.plan_view.terminal import show
from llamarig.plan import plan_host
from tests.support.big_models import header_of, qwen35_27b
from tests.support.plan_specs import REFERENCE, spec

PAGE = (Path(__file__).resolve().parents[3] / "docs/how-to/read-a-plan.md").read_text(encoding="utf-8")


def form(text: str) -> list[str]:
    """The lines without figures, and runs of one sign as one."""
    return [re.sub(r"(.)\1+", r"\1", re.sub(r"[\d,]+", "0", line)) for line in text.splitlines()]


def test_the_sample_has_the_form_of_a_real_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    [sample] = re.findall(r"```text\n(blackwell: .*?)```", PAGE, re.DOTALL)
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(context, "_console", lambda _stderr: console)
    show(plan_host(spec(REFERENCE), {"qwen": header_of(qwen35_27b())}))
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    shown = printed[printed.index("blackwell: ") : printed.index("  MiB")]
    assert form(sample) == form(shown)


def test_the_page_names_every_letter() -> None:
    listed = dict(re.findall(r"^\| `(\w)` \| ([a-z-]+) \|$", PAGE, re.MULTILINE))
    assert {term: key for key, term in listed.items()} == KEYS
