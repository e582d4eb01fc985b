"""The pages of refusals against the code: which rules and findings there are, and what each example makes them say.

An example is a fence ```` ```yaml on=BASE breaks=RULE ```` (or ``finds=CODE``): keys that are laid on a spec of the
inventory, as a host's file is laid on its fleet's. The fence behind it holds what the rule or finding says then.
``python -m tests.support.docs.refusals`` writes those fences anew.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from llamarig.plan import plan_project
from llamarig.spec.host import HostSpec
from llamarig.spec.read_yaml import read_bytes, read_file
from llamarig.spec.rules import RULES
from llamarig.spec.rules.base import View
from llamarig.spec.tree import merge

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs/refusals"
BASES = {
    "cpu": ROOT / "inventory/demo.yml",
    "sourceless": ROOT / "inventory/demo.yml",
    "cuda": ROOT / "inventory/rtx-4090.yml",
}
"""``sourceless`` lacks the engine's source, so that an example can give another."""
EXAMPLE = re.compile(
    r"^```yaml on=(?P<base>\w+) (?P<kind>breaks|finds)=(?P<name>[\w.-]+)\n(?P<yaml>.*?)^```\n(\n```text\n.*?^```\n)?",
    re.MULTILINE | re.DOTALL,
)
MARK = re.compile(r"^(?P<kind>Rule|Finding)s?: (?P<names>`.*`)\.?$", re.MULTILINE)


def rules() -> dict[str, object]:
    """Every rule by the name that the pages give it: its module and its function."""
    return {f"{rule.__module__.rpartition('.')[2]}.{rule.__name__}": rule for rule in RULES}


def finding_codes() -> set[str]:
    """Every code that is given to a Finding anywhere in the package, read from the source."""
    found = set()
    for path in (ROOT / "llamarig").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                given = node.args[0] if node.args else next(k.value for k in node.keywords if k.arg == "code")
                assert isinstance(given, ast.Constant), f"{path}:{node.lineno}: the code is no plain text"
                found.add(str(given.value))
    return found


def marked(text: str, kind: str) -> set[str]:
    """The rules or findings that a page says it is about."""
    found: set[str] = set()
    for match in MARK.finditer(text):
        if match["kind"] == kind:
            found |= set(re.findall(r"`([^`]+)`", match["names"]))
    return found


INDEXED = re.compile(r"^\| `(?P<code>[\w-]+)` \| \[[^\]]+\]\((?P<page>[\w-]+\.md)\) \|$", re.MULTILINE)


def indexed(text: str) -> dict[str, str]:
    """The page of each code of a finding, as an index lists them."""
    return {match["code"]: match["page"] for match in INDEXED.finditer(text)}


def spec_of(base: str, fragment: str) -> tuple[HostSpec, dict[str, object]]:
    """The spec that an example makes of a base."""
    below, _ = read_file(BASES[base])
    above, problems = read_bytes(fragment.encode(), Path("example.yml"))
    assert below is not None
    if base == "sourceless" and (engine := below.child("engine")) is not None and isinstance(engine.value, dict):
        del engine.value["source"]
    assert above is not None, problems
    assert problems == []
    document = merge(below, above).data()
    return HostSpec.model_validate(document), document


def said(base: str, kind: str, name: str, fragment: str) -> str:
    """What the rule or finding says of an example; empty when it says nothing."""
    spec, document = spec_of(base, fragment)
    if kind == "breaks":
        rule = rules()[name]
        assert callable(rule)
        found = [(each.severity, each) for each in rule(View(spec, document, ROOT))]
        return "".join(f"{word:<7} {each.message}\nfix:    {each.fix}\n" for word, each in found).replace(
            str(ROOT), "/home/you/project"
        )
    findings = [each for each in plan_project(spec, ROOT, cache=ROOT / "no-cache").findings if each.code == name]
    return "".join(
        f"{each.severity} {each.code}: {each.message}\n" + (f"  fix: {each.fix}\n" if each.severity != "note" else "")
        for each in findings
    )


def refreshed(text: str) -> str:
    """A page with what its examples say now."""

    def fill(match: re.Match[str]) -> str:
        words = said(match["base"], match["kind"], match["name"], match["yaml"])
        head = f"```yaml on={match['base']} {match['kind']}={match['name']}\n{match['yaml']}```\n"
        return f"{head}\n```text\n{words}```\n"

    return EXAMPLE.sub(fill, text)


def pages() -> list[Path]:
    """Every page, the index among them."""
    return sorted(PAGES.glob("*.md"))


def main() -> None:
    """Write what the examples say into the pages."""
    for path in pages():
        before = path.read_text(encoding="utf-8")
        after = refreshed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
