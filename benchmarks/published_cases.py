"""Memory that other people's servers printed against the same computed: a table, and what is missed and why.

    python benchmarks/published_cases.py [CASE...]

A held figure must be within 1 % (0.2 % for the reference's depths) or 2 MiB; each that is not carries its explanation
in the data (tests/fixtures/published/cases.yml). Figures that no formula can be held to are counted with their reasons.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.published import Case, Figure, load  # noqa: E402 - found below the checkout only
from tests.support.published.computed import Computed  # noqa: E402 - found below the checkout only

NARROW = 34
"""Columns of a case's name and words."""


def shown(figure: Figure) -> str:
    """MiB as the servers print them, cards joined by a plus."""
    figures = figure if isinstance(figure, tuple) else (figure,)
    return " + ".join(f"{mib:,.2f}" for mib in figures)


def rows(case: Case) -> Iterator[tuple[str, str, str, str, str, str]]:
    """One row a held term: case, term, published, computed, difference, verdict."""
    found = Computed(case)
    for term, published in case.held.items():
        verdict = "within" if found.within(term) else "MISSED"
        ours = shown(found.term(term))
        yield case.name[:NARROW], term, shown(published), ours, f"{found.difference(term):+,.2f}", verdict


def main() -> int:
    """Print the table, the misses and the totals; 1 when a miss is not explained."""
    wanted = set(sys.argv[1:])
    cases = [case for case in load() if not wanted or str(case.number) in wanted]
    found = [row for case in cases if case.held for row in rows(case)]
    heads = ("case", "term", "published", "computed", "difference", "")
    widths = [max(len(row[column]) for row in (heads, *found)) for column in range(len(heads))]
    for row in (heads, *found):
        left = f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}"
        print(f"{left}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}  {row[4]:>{widths[4]}}  {row[5]}".rstrip())
    missed = [(row[0], row[1]) for row in found if row[5] == "MISSED"]
    explained = {(case.name[:NARROW], term): text for case in cases for term, text in case.why.items()}
    if missed:
        print("\nmissed:")
    for name, term in missed:
        print(f"  {name}, {term}: {explained.get((name, term), 'NOT EXPLAINED')}")
    reasons = Counter(reason for case in cases for reason in case.seen.values())
    print("\npublished, and not held:")
    for reason, count in reasons.most_common():
        print(f"  {count} x {reason}")
    unexplained = [miss for miss in missed if miss not in explained]
    kept = len(found) - len(missed)
    verdict = "MISSED" if unexplained else "met"
    print(f"\npublished figures within 1 % or 2 MiB  {kept} of {len(found)}  misses explained  {verdict}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
