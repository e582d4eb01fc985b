"""The pages on the memory model against the code: each example is a server that is planned, and each sum is reckoned.

An example is a fence ```` ```yaml server=MODEL ```` with settings under the names of :class:`llamarig.memory.Settings`
and, if need be, ``engine`` and ``projector`` (bytes). The fence behind it holds what is planned for it;
``python -m tests.support.docs.memory`` writes those anew. A fence ```` ```text sums ```` has lines like
``16 layers x 2 x 1,024 values x 2 bytes = 0.06 MiB (kv-cache)``: bytes become MiB, other units stay, and a term in
brackets is that of the last example above it.
"""

from __future__ import annotations

import ast
import operator
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from llamarig.memory import Beside, Estimate, Settings, estimate
from llamarig.memory.engines import of_version
from tests.support.big_models import header_of, qwen35_27b
from tests.support.models import compose
from tests.support.published.computed import REFERENCE
from tests.support.published.models import MODELS

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "docs/explanation/memory-model.md", *sorted((ROOT / "docs/explanation/memory").glob("*.md"))]
FENCE = re.compile(
    r"^```yaml server=(?P<model>[\w.-]+)\n(?P<yaml>.*?)^```\n(\n```text\n(?P<shown>.*?)^```\n)?"
    r"|^```text sums\n(?P<sums>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)
SUM = re.compile(r"(?P<left>[^=]+)=\s*(?P<result>-?[\d,.]+) (?P<unit>\w+)(?: \((?P<term>[A-Za-z -]+)\))?")
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
MIB = 1 << 20
HALF_A_DIGIT = 0.0051
"""MiB by which a rounded figure may be off."""


def planned(model: str, text: str) -> Estimate:
    """The server of an example."""
    given: dict[str, Any] = yaml.safe_load(text)
    composed = qwen35_27b() if model == REFERENCE else compose(MODELS[model])
    beside = Beside(projector_size=given.pop("projector", None))
    era = of_version(given.pop("engine", "b10454")).era
    return estimate(header_of(composed), Settings(**given, era=era), beside)


def lines(found: Estimate) -> Iterator[str]:
    """What is planned, as the pages show it."""
    for number, card in enumerate(found.devices):
        where = "card" if len(found.devices) == 1 else f"card {number}"
        for term, mib in card.items():
            yield f"{where:<8}{term:<18}{mib:>12,.2f}"
    for term, mib in found.host.items():
        yield f"{'RAM':<8}{term:<18}{mib:>12,.2f}"


def value(text: str) -> float:
    """The number that a sum's left side comes to; words are for readers, ``x`` is times."""
    bare = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    bare = re.sub(r"\bx\b", "*", bare)
    bare = re.sub(r"[A-Za-z_-]*[A-Za-z_][A-Za-z_0-9-]*", " ", bare)
    return _value(ast.parse(bare.strip(), mode="eval").body)


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError(ast.dump(node))


def wrong_sums(text: str, last: Estimate | None) -> Iterator[str]:
    """Lines whose two sides differ, or whose term is planned otherwise."""
    for line in filter(str.strip, text.splitlines()):
        match = SUM.search(line)
        if match is None:
            yield f"{line}: is no sum"
            continue
        ours = value(match["left"])
        if match["unit"] == "MiB" and "MiB" not in match["left"]:
            ours /= MIB
        stated = float(match["result"].replace(",", ""))
        if abs(ours - stated) > HALF_A_DIGIT:
            yield f"{line}: comes to {ours:,.4f}"
        if match["term"] and last is not None:
            planned_mib = _term(last, match["term"])
            if abs(planned_mib - stated) > 3 * HALF_A_DIGIT:
                yield f"{line}: the plan has {planned_mib:,.2f}"


def _term(found: Estimate, term: str) -> float:
    if term == "total":
        return found.device_mib
    host = term.startswith("RAM ")
    return found.host[term.removeprefix("RAM ")] if host else found.device[term]


def problems(text: str) -> list[str]:
    """What a page says that the code does not."""
    found: list[str] = []
    last: Estimate | None = None
    for match in FENCE.finditer(text):
        if match["sums"] is not None:
            found += wrong_sums(match["sums"], last)
            continue
        last = planned(match["model"], match["yaml"])
        wanted = "".join(f"{line}\n" for line in lines(last))
        if match["shown"] != wanted:
            found.append(f"the example of {match['model']} now gives\n{wanted}")
    return found


def rewritten(text: str) -> str:
    """The page with each example's plan as it is now."""

    def replace(match: re.Match[str]) -> str:
        if match["sums"] is not None:
            return match[0]
        shown = "".join(f"{line}\n" for line in lines(planned(match["model"], match["yaml"])))
        return f"```yaml server={match['model']}\n{match['yaml']}```\n\n```text\n{shown}```\n"

    return FENCE.sub(replace, text)


def main() -> str:
    """Write the plans of all examples anew; returns what has to be put right by hand."""
    left = []
    for page in PAGES:
        text = rewritten(page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
        left += [f"{page.name}: {problem}" for problem in problems(text)]
    return "\n".join(left)


if __name__ == "__main__":
    sys.exit(main() or None)
