"""Writes ``docs/evidence/not-run.md`` from the reference spec and the overlay that the tests lay on it.

``python -m tests.support.docs.not_run``; a test holds the page against both files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from llamarig.spec.overlay import Overlay, read_overlay
from llamarig.spec.read_yaml import read_file
from llamarig.spec.tree import Tree, dotted, find

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/evidence/not-run.md"
SPEC = ROOT / "inventory/dual-gpu-256k.yml"
OVERLAY = ROOT / "tests/overlays/dual-gpu-256k.yml"
_SHOWN = 160
_HEAD = """\
# Not run

Written by `python -m tests.support.docs.not_run` from the reference spec (`inventory/dual-gpu-256k.yml`) and the
overlay that the tests lay on it (`tests/overlays/dual-gpu-256k.yml`); do not edit it here. `tests/hosts/reference`
applies the two together to a fresh Debian 13 host, check mode included, up to the point where a card is needed.
What that does not show:

## What the spec names and the tests replace

"""
_LACKING = """
## What no key names and the test machines have not

"""
_TAIL = """
What is not in these tables runs as the spec has it: packages, users and directories, the exact version of the driver
with pins and holds, both architectures, the commit and its source, the memory plan, arguments, environment, keys,
units and their sandbox. [How an overlay works](../how-to/overlays.md).
"""


def text(spec: Path = SPEC, overlay: Path = OVERLAY) -> str:
    """The whole page."""
    tree, problems = read_file(spec)
    if tree is None:
        raise ValueError(problems)
    given = read_overlay(overlay)
    return "".join((_HEAD, *_replaced(tree, given), _LACKING, *_lacking(given), _TAIL))


def _replaced(spec: Tree, overlay: Overlay) -> Iterator[str]:
    yield "| key | the spec has | the tests have | why | not proven |\n|---|---|---|---|---|\n"
    for each in overlay.replaced:
        here, taken = find(spec, each.key)
        before = _value(here) if taken == each.key else "nothing"
        cells = (f"`{dotted(each.key)}`", before, _value(each.value), each.reason, each.unproven or "-")
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |\n"


def _lacking(overlay: Overlay) -> Iterator[str]:
    yield "| what | instead | not proven |\n|---|---|---|\n"
    for each in overlay.lacking:
        yield f"| {_cell(each.what)} | {_cell(each.instead)} | {_cell(each.unproven or '-')} |\n"


def _value(tree: Tree) -> str:
    """A value on one line of YAML, cut where it is long."""
    data: Any = tree.data()
    if data is None:
        return "nothing"
    line = yaml.safe_dump(data, default_flow_style=True, sort_keys=False, width=10_000).strip().removesuffix("\n...")
    return f"`{line if len(line) <= _SHOWN else line[: _SHOWN - 1] + '…'}`"


def _cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")


def main(page: Path = PAGE) -> None:
    """Write the page."""
    page.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
