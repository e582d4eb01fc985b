"""Relative links in the documentation lead somewhere: to a file, and to a heading where they name one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as forges make them: lower case, dashes, no punctuation."""
    heads = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def broken(page: Path, text: str) -> list[str]:
    found = []
    for match in LINK.finditer(re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))):
        target, _, anchor = match["target"].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        place = (page.parent / target).resolve() if target else page
        if not place.exists() or (anchor and anchor not in anchors(place.read_text(encoding="utf-8"))):
            found.append(match["target"])
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    assert broken(page, page.read_text(encoding="utf-8")) == []


def test_a_broken_link_and_a_broken_anchor_are_seen() -> None:
    text = "[a](gone.md) [b](README.md#no-such-heading) [c](README.md) `[d](shown.md)`\n"
    assert broken(ROOT / "x.md", text) == ["gone.md", "README.md#no-such-heading"]


def test_every_page_below_docs_can_be_reached_from_the_index() -> None:
    seen, todo = set(), [ROOT / "docs/README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        for match in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
            target = (page.parent / match["target"].partition("#")[0]).resolve()
            todo += [target] if target.is_file() else []
            todo += sorted(target.glob("*.md")) if target.is_dir() else []
    assert [str(page.relative_to(ROOT)) for page in PAGES if (ROOT / "docs") in page.parents and page not in seen] == []
