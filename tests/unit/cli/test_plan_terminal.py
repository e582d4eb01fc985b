"""A plan on terminals of many widths, with and without colour, and away from one."""

from __future__ import annotations

import copy
import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from llamarig.cli import context
from llamarig.cli.plan_view.bar import Mark, ruler, stretches
from llamarig.cli.plan_view.basis import KEYS, Basis
from llamarig.cli.plan_view.terminal import COLOURS, show
from llamarig.cli.plan_view.words import speed_words
from llamarig.memory import TERMS
from llamarig.plan import Plan, plan_host
from llamarig.plan.speed import speed_json
from llamarig.spec.host import HostSpec
from tests.support.big_models import header_of, qwen35_27b, small_llama
from tests.support.plan_specs import CPU, REFERENCE, spec

QWEN = header_of(qwen35_27b())
SMALL = small_llama(8192, output=False)
REFUSED = {"accept-margin": None, "parallel": 2, "speculation": {"type": "draft-mtp", "n-max": 20}}
PARTS = st.dictionaries(st.sampled_from(TERMS), st.floats(0.0, 30_000.0), max_size=9)


def eight() -> HostSpec:
    data = copy.deepcopy(REFERENCE)
    names = ("chat", "summaries", "embeddings", "code", "translate", "rerank", "title", "moderation")
    base = {"model": "small", "context": 8192, "gpu": "ada"}
    data["models"]["small"] = CPU["models"]["small"]
    data["services"] = {
        name: {**base, "cache-ram-mib": 64 * number, "listen": {"port": 8080 + number}}
        for number, name in enumerate(names)
    }
    return HostSpec.model_validate(data)


def planned(name: str) -> Plan:
    specs: dict[str, tuple[HostSpec, Any]] = {
        "fits": (spec(REFERENCE), QWEN),
        "refused": (spec(REFERENCE, REFUSED), QWEN),
        "no header": (spec(REFERENCE), None),
        "cpu": (spec(CPU, {"cache-ram-mib": 8192}), None),
        "eight": (eight(), QWEN),
    }
    found, qwen = specs[name]
    return plan_host(found, {"qwen": qwen, "small": SMALL})


PLANS = {name: planned(name) for name in ("fits", "refused", "no header", "cpu", "eight")}


def shown(plan: Plan, monkeypatch: pytest.MonkeyPatch, width: int | None, colours: str | None = None) -> str:
    """What is printed on a terminal of ``width`` columns, or into a file."""
    written = io.StringIO()
    terminal = width is not None
    console = Console(
        file=written,
        width=width or 80,
        force_terminal=terminal,
        color_system="truecolor" if colours else None,
        highlight=False,
        legacy_windows=False,
    )
    monkeypatch.setattr(context, "_console", lambda _stderr: console)
    show(plan)
    return written.getvalue()


@given(PARTS, st.floats(0.1, 3.0), st.integers(60, 200))
def test_a_bar_is_as_long_as_its_sum_and_leaves_no_term_out(parts: dict[str, float], room: float, width: int) -> None:
    used = sum(parts.values())
    whole = max(used * room, used, 1.0)
    found = stretches(parts, whole, width)
    held = [term for term, mib in parts.items() if mib > 0]
    assert [term for term, _ in found] == held
    assert all(columns >= 1 for _, columns in found)
    if held:
        assert sum(columns for _, columns in found) == min(max(round(used / whole * width), len(held)), width)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 8, 12, 20])
@pytest.mark.parametrize("name", PLANS)
def test_a_terminal_may_be_as_narrow_as_one_column(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(PLANS[name], monkeypatch, width) != ""


@given(PARTS, st.integers(-3, 8))
def test_a_narrow_bar_shows_the_largest_terms(parts: dict[str, float], width: int) -> None:
    found = stretches(parts, sum(parts.values()) or 1.0, width)
    assert sum(columns for _, columns in found) <= max(width, 0)
    held = [mib for mib in parts.values() if mib > 0]
    if 0 < width < len(held):
        assert sorted(parts[term] for term, _ in found) == sorted(held)[-width:]
    assert len(ruler([Mark("u", 1.0)], 2.0, width)) <= max(width, 0)


@given(PARTS, st.integers(60, 200))
def test_a_bigger_term_is_never_shorter(parts: dict[str, float], width: int) -> None:
    found = dict(stretches(parts, sum(parts.values()) or 1.0, width))
    for term, columns in found.items():
        assert all(columns >= found[other] for other in found if parts[other] < parts[term] * 0.5)


@given(st.lists(st.floats(0.0, 25_000.0), min_size=3, max_size=3), st.integers(60, 200))
def test_all_marks_stand_in_their_order(mib: list[float], width: int) -> None:
    low, middle, high = sorted(mib)
    line = ruler([Mark("m", low), Mark("u", middle), Mark("t", high)], max(high, 1.0), width)
    assert len(line) <= width
    if middle / max(high, 1.0) * width > 3:
        assert [sign for sign in line if sign != " "] == ["m", "u", "t"]


def test_what_is_too_much_is_marked() -> None:
    assert ruler([Mark("u", 50), Mark("t", 60)], 100, 20, (50, 100)) == "         u!t!!!!!!!!"


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 160, 200])
@pytest.mark.parametrize("name", list(PLANS))
def test_no_line_is_wider_than_the_terminal(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(PLANS[name], monkeypatch, width).splitlines()
    assert [line for line in lines if len(line) > width or line != line.rstrip()] == []
    assert any("█" in line for line in lines)


def test_without_colour_the_letters_tell_the_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(PLANS["fits"], monkeypatch, 100)
    bar, marks = next(
        (line.strip(), under.strip())
        for line, under in zip(text.splitlines(), text.splitlines()[1:], strict=False)
        if line.startswith("  W█")
    )
    assert [sign for sign in bar if sign not in "█·"] == ["W", "K", "R", "w", "k", "C", "c", "p"]
    assert [sign for sign in marks if sign != " "] == ["m", "u", "t"]
    for term, key in (("weights", "W"), ("recurrent-state", "R"), ("draft-compute", "c")):
        assert re.search(rf"^  {key} {term} +[\d,.]+ +[\d.]+%$", text, re.MULTILINE)
    assert "\x1b[" not in text


def test_every_term_has_a_letter_and_a_colour_of_its_own() -> None:
    assert list(KEYS) == list(COLOURS) == list(TERMS)
    assert len(set(KEYS.values())) == len(set(COLOURS.values())) == len(TERMS)


def test_colour_only_repeats_the_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = shown(PLANS["refused"], monkeypatch, 100)
    coloured = shown(PLANS["refused"], monkeypatch, 100, "truecolor")
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_no_color_turns_colours_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = shown(PLANS["refused"], monkeypatch, 100, "truecolor")
    assert re.search(r"\x1b\[[0-9;]*3[0-7]m", text) is None


def test_a_terminal_that_knows_no_blocks_gets_plain_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii"), width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(context, "_console", lambda _stderr: console)
    show(PLANS["cpu"])
    console.file.flush()
    assert re.search(rb"^  WKCp=+\.+$", raw.getvalue(), re.MULTILINE)


def test_away_from_a_terminal_there_is_no_bar_and_no_empty_line(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(PLANS["refused"], monkeypatch, None)
    assert "█" not in text
    assert "" not in text.splitlines()
    error = next(line for line in text.splitlines() if line.startswith("error does-not-fit: "))
    assert error == "error does-not-fit: " + next(
        each.message for each in PLANS["refused"].findings if each.code == "does-not-fit"
    )


def test_each_figure_is_the_plans_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = PLANS["eight"]
    text = shown(plan, monkeypatch, None)
    for device in plan.devices:
        for term, mib in device.components.items():
            assert re.search(rf"{KEYS[term]} {term}.* {mib:,.2f} +{mib / device.used_mib:.1%}$", text, re.MULTILINE)
    assert f"{plan.ram.used_mib:,.2f}  100.0%" in text


def test_what_is_fitted_or_assumed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(PLANS["fits"], monkeypatch, None)
    for words in ("MiB usable (assumed), 24,467", "p process (fitted)", "P projector (fitted)", "base (assumed)"):
        assert words in text
    assert "W weights (file size)" in shown(PLANS["no header"], monkeypatch, None)
    found = Basis(PLANS["fits"])
    assert found.term("kv-cache", ("chat",), "blackwell") == ""


def test_many_services_become_a_list_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = shown(PLANS["eight"], monkeypatch, 80)
    assert narrow.count("by service") == 2
    assert re.search(r"^  moderation +[\d,.]+ = W [\d,.]+,", narrow, re.MULTILINE)
    assert "by service" not in shown(PLANS["eight"], monkeypatch, 200)


def test_findings_stand_worst_first_with_code_and_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(PLANS["refused"], monkeypatch, None)
    heads = re.findall(r"^(error|warning|note) [a-z-]+: ", text, re.MULTILINE)
    assert heads == sorted(heads, key=["error", "warning", "note"].index)
    assert heads[0] == "error"
    assert text.count("\n  fix: ") == len(heads)
    assert "what would fit instead, each planned:" in text


def test_the_speed_is_shown_with_its_basis_and_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = PLANS["fits"]
    found = speed_json(plan.speeds["chat"])
    assert found is not None
    text = shown(plan, monkeypatch, None)
    line = next(line for line in text.splitlines() if line.startswith("chat: decode "))
    assert f"{found['decode-tok-s']:,.1f} tokens/s" in line
    assert f"(the card's limit is {found['limit']['decode-tok-s']:,.1f})" in line
    assert line.endswith("predicted from runs of this card")
    full = found["at-depth"][-1]
    assert f"with an empty window, {full['decode-tok-s']:,.1f} with it full ({full['depth']:,} tokens)" in line
    assert f"over a prompt of 8,192 tokens, {full['prefill-tok-s']:,.1f} over one of {full['depth']:,}" in line
    assert "speed not predicted: the CPU backend is not predicted" in shown(PLANS["cpu"], monkeypatch, None)


def test_a_speed_without_drafts_prefill_or_runs_says_less() -> None:
    limit = {"decode-tok-s": 50.0, "prefill-tok-s": None}
    speed: dict[str, Any] = {"decode-tok-s": 40.0, "prefill-tok-s": None, "tokens-per-pass": 1.0, "limit": limit}
    depths = [{"depth": 4096, "decode-tok-s": 30.0, "prefill-tok-s": None}]
    speed |= {"decode-tok-s-full": 30.0, "prefill-prompt": 4096, "basis": "runs-of-other-cards", "at-depth": depths}
    words = (
        "decode 40.0 tokens/s with an empty window, 30.0 with it full (4,096 tokens) (the card's limit is 50.0); "
        "predicted from runs of other cards"
    )
    assert speed_words(speed) == words
    assert speed_words(speed, fits=False) == f"if it fitted, {words}"
