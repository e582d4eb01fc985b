"""The page of a plan: whole in itself, escaped, true to the plan, and never in the place of somebody's file."""

from __future__ import annotations

import base64
import copy
import hashlib
import itertools
import os
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamarig.cli.plan_view.figures import PLOT, bar_of_card, charts, nice_steps
from llamarig.cli.plan_view.files import MARK, page_paths, write_page
from llamarig.cli.plan_view.formulas import PAGES, WORDS, explanations
from llamarig.cli.plan_view.pages import TEMPLATES, _coded, page
from llamarig.errors import RigError
from llamarig.gguf import Header
from llamarig.memory import TERMS
from llamarig.plan import DevicePlan, Plan, plan_host
from llamarig.plan.curves import curves
from llamarig.spec.host import HostSpec
from tests.support.big_models import header_of, qwen35_27b, small_llama
from tests.support.plan_specs import CPU, REFERENCE, spec

ROOT = Path(__file__).resolve().parents[3]
QWEN = header_of(qwen35_27b())
REFUSED = {"accept-margin": None, "parallel": 2, "speculation": {"type": "draft-mtp", "n-max": 4}}
VOID = {"meta", "line", "rect", "circle", "polygon", "br", "link"}
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b[31m\u202e{{ 7 * 7 }}</style>"


class Document(HTMLParser):
    """What the page holds: its elements with their attributes, its text, and whether they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID - {"line", "rect", "circle", "polygon"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def made(found: HostSpec, headers: dict[str, Header | None]) -> tuple[Plan, str]:
    plan = plan_host(found, headers)
    return plan, page(plan, found, headers)


PLAN, PAGE = made(spec(REFERENCE, REFUSED), {"qwen": QWEN})


def test_the_page_asks_for_nothing() -> None:
    document = Document(PAGE)
    assert document.open == []
    assert {tag for tag, _ in document.elements} & {
        "script",
        "img",
        "link",
        "iframe",
        "object",
        "embed",
        "form",
    } == set()
    for tag, attributes in document.elements:
        assert not {"src", "srcset", "style", "action"} & attributes.keys(), tag
        assert [name for name in attributes if name.startswith("on")] == [], tag
    assert re.search(r"https?:|@import|url\(", PAGE) is None


def test_the_policy_allows_the_pages_own_style_alone() -> None:
    policy = next(each["content"] for each in Document(PAGE).all("meta") if each.get("http-equiv"))
    style = PAGE[PAGE.index("<style>") + len("<style>") : PAGE.index("</style>")]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_the_style_has_a_colour_for_every_term_in_light_in_dark_and_on_paper() -> None:
    style = (TEMPLATES / "plan.css").read_text()
    for term in (*TERMS, "others"):
        assert style.count(f"  --{term}: ") + style.count(f"; --{term}: ") == 3, term
        assert f".{term} {{ fill: var(--{term}); background: var(--{term}); }}" in style
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb``; source: WCAG 2.2, Relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_words_and_letters_can_be_read_in_light_in_dark_and_on_paper(number: int) -> None:
    palettes = re.findall(r":root \{(.*?)\}", (TEMPLATES / "plan.css").read_text(), re.DOTALL)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", palettes[number]))
    assert len(palettes) == 3
    for term in TERMS:
        letter = colours["letter-draft" if term.startswith("draft-") else "letter"]
        assert contrast(letter, colours[term]) >= 4, term
        assert contrast(colours[term], colours["card"]) >= 1.9, term
    for words in ("ink", "soft", "link"):
        assert contrast(colours[words], colours["card"]) >= 4.5, words
        assert contrast(colours[words], colours["ground"]) >= 4.5, words
    for tone in ("good", "thin", "bad"):
        assert contrast(colours[tone], colours[f"{tone}-ground"]) >= 4.5, tone


@given(st.text(max_size=80), st.text(st.sampled_from("<>&\"'{}%#-!/= abc"), max_size=40))
@settings(max_examples=12, deadline=None)
def test_no_text_makes_an_element(name: str, reason: str) -> None:
    data = copy.deepcopy(CPU)
    data["services"]["chat"]["listen"]["keyless"] = {"reason": f"a reason {reason} given"}
    _, text = made(HostSpec.model_validate(data), {"small": small_llama(32_768, name=name)})
    _, plain = made(HostSpec.model_validate(data), {"small": small_llama(32_768, name="Small")})
    assert [tag for tag, _ in Document(text).elements] == [tag for tag, _ in Document(plain).elements]
    assert Document(text).open == []


def test_whatever_stands_in_a_file_or_spec_is_text() -> None:
    data = copy.deepcopy(CPU)
    data["services"]["chat"]["alias"] = "<b>bold</b> & 'quoted'"
    data["services"]["chat"]["listen"]["keyless"] = {"reason": "</p><script>alert(3)</script>"}
    plan, text = made(HostSpec.model_validate(data), {"small": small_llama(32_768, name=HOSTILE)})
    assert plan.fits
    document = Document(text)
    assert {tag for tag, _ in document.elements} & {"script", "img", "b"} == set()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "&lt;script&gt;alert(3)" in text
    assert "{{ 7 * 7 }}" in text
    assert [sign for sign in text if sign in "\x1b\u202e"] == []


def test_every_chart_is_named_described_and_followed_by_its_table() -> None:
    document = Document(PAGE)
    names = {attributes["id"] for _, attributes in document.elements if "id" in attributes}
    assert len(names) == sum("id" in attributes for _, attributes in document.elements)
    drawn = [each for each in document.all("svg") if each.get("role") == "img"]
    assert len(drawn) == 5
    for each in drawn:
        assert set((each["aria-labelledby"] or "").split()) <= names
    assert all(each.get("aria-hidden") == "true" for each in document.all("svg") if "aria-labelledby" not in each
               and "viewbox" not in each)  # fmt: skip
    kinds = ["chart" if "aria-labelledby" in each and tag == "svg" else tag for tag, each in document.elements]
    kinds = [kind for kind in kinds if kind in {"chart", "table"}]
    assert [after for kind, after in itertools.pairwise(kinds) if kind == "chart"] == ["table"] * len(drawn)


def test_the_figures_are_the_plans_own() -> None:
    for device in PLAN.devices:
        for mib in device.components.values():
            assert f"<td>{mib:,.2f}</td><td>{mib / device.used_mib:.1%}</td>" in PAGE
    for finding in PLAN.findings:
        assert f"<code>{finding.code}</code>" in PAGE
    assert PLAN.alternatives
    assert PAGE.count("<code>", PAGE.index('id="alternatives"'), PAGE.index('id="findings"')) == len(PLAN.alternatives)
    assert "-m /var/lib/llamarig" in PAGE or "--model /var/lib/llamarig" in PAGE


def test_a_chart_stands_on_its_points() -> None:
    found = spec(REFERENCE)
    curve = curves(found, {"qwen": QWEN}, steps=4)[0]
    [chart] = charts(curve)
    assert chart.place == "blackwell"
    assert [(spot.value, spot.fits) for spot in chart.spots] == [(point.value, point.fits) for point in curve.points]
    used = [point.devices[0].used_mib for point in curve.points]
    assert [spot.used for spot in chart.spots] == pytest.approx(used)
    assert [spot.value for spot in chart.spots if spot.present] == [262_144]
    heights = {limit.mib: PLOT - limit.at for limit in chart.limits}
    scale = next(height / mib for mib, height in heights.items())
    for spot in chart.spots:
        assert PLOT - spot.top == pytest.approx(spot.used * scale)
        assert spot.free == pytest.approx(curve.here.devices[0].usable_mib - spot.used)
    assert sum(spot.width for spot in chart.spots) == pytest.approx(100)


def test_a_bar_has_its_terms_in_the_order_of_the_table() -> None:
    card = DevicePlan(
        "a", None, 1000.0, 900.0, 0.0, {"x": {"process": 300.0, "weights": 100.0}, "y": {"compute": 50.0}}
    )
    bar = bar_of_card(card, "")
    assert [(each.key, each.x, each.width) for each in bar.stretches] == [("W", 0, 10), ("C", 10, 5), ("p", 15, 30)]
    assert (bar.track, bar.over, [limit.at for limit in bar.limits]) == (100, None, [90])


@pytest.mark.parametrize("highest", [0.5, 7, 99, 1000, 24_467, 98_000])
def test_axes_have_a_few_round_marks(highest: float) -> None:
    steps = nice_steps(highest)
    assert steps[0] == 0
    assert steps[-1] <= highest
    assert 3 <= len(steps) <= 7


def test_dominant_terms_are_explained_with_a_sum_that_comes_out() -> None:
    found = explanations(PLAN, spec(REFERENCE, REFUSED), {"qwen": QWEN})["chat"]
    by_term = {each.term: each for each in found}
    assert sum(each.share for each in found) >= 0.9
    assert [each.mib for each in found] == sorted((each.mib for each in found), reverse=True)
    for term in ("weights", "kv-cache", "recurrent-state", "process"):
        assert sum(step.mib for step in by_term[term].steps) == pytest.approx(by_term[term].mib, abs=0.01), term
    assert by_term["kv-cache"].steps[0].words == "16 layers x 2 slots x 131,072 cells x 1,152 bytes (K q4_0, V q4_0)"
    state = by_term["recurrent-state"].steps[0].words
    assert state == "2 slots x (1 copy + 4 for drafted tokens) x 149.625 MiB of 48 layers"
    assert "16 layers \N{MULTIPLICATION SIGN} 2 slots" in PAGE


def test_a_formula_that_does_not_come_out_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llamarig.cli.plan_view.formulas.cell_bytes", lambda *_: 1)
    found = explanations(PLAN, spec(REFERENCE, REFUSED), {"qwen": QWEN})["chat"]
    kv = next(each for each in found if each.term == "kv-cache")
    assert (kv.steps, kv.words) == ((), WORDS["kv-cache"])


def test_every_term_has_words_and_a_page() -> None:
    assert list(WORDS) == list(PAGES) == list(TERMS)


@pytest.mark.parametrize("page_of_term", sorted(set(PAGES.values())))
def test_every_term_has_its_place_in_the_documentation(page_of_term: str) -> None:
    path, _, anchor = page_of_term.partition("#")
    heads = re.findall(r"^#+ (.*)$", (ROOT / "docs" / path).read_text(), re.MULTILINE)
    assert not anchor or anchor in {head.lower().replace(" ", "-") for head in heads}


def test_without_a_header_the_page_says_that_not_all_is_known() -> None:
    _, text = made(spec(REFERENCE), {"qwen": None})
    assert "not known: the model&#39;s header is missing" in text
    assert "Not all that it needs is known" in text
    assert "at least so much" in text
    assert 'class="pill small good"' not in text
    assert "With other settings" not in text


def test_pages_of_the_documentation_are_named_and_no_link_breaks_when_the_page_is_mailed() -> None:
    assert Document(PAGE).all("a") == []
    named = set(re.findall(r"\bdocs/[a-z/-]+\.md", PAGE))
    assert "docs/refusals/margins.md" in named
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_what_stands_between_backticks_is_code() -> None:
    assert _coded("run `a <b>` & `c`, 1` d") == "run <code>a &lt;b&gt;</code> &amp; <code>c</code>, 1` d"
    assert "`" not in PAGE[PAGE.index('id="findings"') : PAGE.index('id="terms"')]


def test_a_page_is_made_in_two_seconds() -> None:
    found, headers = spec(REFERENCE), {"qwen": QWEN}
    plan = plan_host(found, headers)
    start = time.process_time()
    page(plan, found, headers)
    assert time.process_time() - start < 2


def test_one_host_has_a_file_and_several_have_a_directory(tmp_path: Path) -> None:
    assert page_paths(tmp_path / "x.html", ["a"]) == [tmp_path / "x.html"]
    assert page_paths(tmp_path, ["a"]) == [tmp_path / "a.html"]
    assert page_paths(tmp_path / "new", ["a", "b"]) == [tmp_path / "new/a.html", tmp_path / "new/b.html"]
    assert (tmp_path / "new").is_dir()


def test_only_a_page_is_replaced(tmp_path: Path) -> None:
    mine, page_file, link = tmp_path / "notes.html", tmp_path / "old.html", tmp_path / "link.html"
    mine.write_text("<!doctype html>\nmine")
    page_file.write_text(f"<!doctype html>\n{MARK}\nold")
    link.symlink_to(page_file)
    assert page_paths(page_file, ["a"]) == [page_file]
    for path in (mine, link, Path("/dev/null")):
        with pytest.raises(RigError):
            page_paths(path, ["a"])
    with pytest.raises(RigError, match="not a directory"):
        page_paths(page_file, ["a", "b"])
    assert mine.read_text().endswith("mine")


def test_the_mark_counts_at_its_place_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    write_page(path, PAGE)
    assert page_paths(path, ["a"]) == [path]
    for text in (f"x{MARK}precious", f"<!doctype html>\nx\n{MARK}\n", f"{MARK}\n", f"<!doctype html>\n{MARK}x", ""):
        path.write_text(text)
        with pytest.raises(RigError, match="was not written by"):
            page_paths(path, ["a"])


def test_a_name_that_no_file_can_have_is_told(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="cannot be written"):
        page_paths(tmp_path / f"{'a' * 300}.html", ["a"])
    with pytest.raises(RigError, match="cannot be written"):
        page_paths(tmp_path / "\0.html", ["a"])
    longest = tmp_path / f"{'a' * 250}.html"
    write_page(longest, "one")
    assert longest.read_text() == "one"


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "x.html"
    write_page(target, "one")
    write_page(target, "two")
    assert target.read_text() == "two"
    assert target.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(RigError, match="cannot be written"):
        write_page(tmp_path / "gone" / "x.html", "three")


def rig(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment: dict[str, Any] = dict(os.environ, PYTHONPATH=str(ROOT), XDG_CACHE_HOME=str(where / "cache"))
    command = [sys.executable, "-m", "llamarig.cli.main", "-C", str(ROOT), "plan", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=where, check=False)


def test_the_command_writes_a_page_and_says_where(tmp_path: Path) -> None:
    done = rig(tmp_path, "demo", "--html", "plan.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, "demo fits: plan.html\n", "")
    assert Document((tmp_path / "plan.html").read_text()).open == []
    again = rig(tmp_path, "demo", "rtx-5070", "--html", "pages", "--json")
    assert again.returncode in {0, 1}
    assert again.stdout.startswith("{")
    assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == ["demo.html", "rtx-5070.html"]
    both = rig(tmp_path, "demo", "--html", "plan.html", "--solve", "context")
    assert (both.returncode, "two things" in both.stderr) == (2, True)
    (tmp_path / "mine.html").write_text("mine")
    refused = rig(tmp_path, "demo", "--html", "mine.html")
    assert refused.returncode == 2
    assert "was not written by `llamarig plan --html`" in refused.stderr
