"""Writes docs/reference/diagnoses.md: ``python -m llamarig.cli.reference_diagnoses``."""

from __future__ import annotations

import ast
from pathlib import Path

from llamarig.catalog.error_texts import error_texts
from llamarig.catalog.xids import xids

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/diagnoses.md"
RULES = ROOT / "llamarig/prove/doctor"


def rule_codes() -> dict[str, str]:
    """Code -> the first line of the rule that gives it, read from the source."""
    found: dict[str, str] = {}
    for path in sorted(RULES.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            about = (ast.get_docstring(node) or "").split("\n", 1)[0].rstrip(".")
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Diagnosis":
                    code = call.args[0]
                    if isinstance(code, ast.Constant):
                        found[str(code.value)] = about
    return found


def page() -> str:
    """The text of the page."""
    lines = [
        "# Diagnoses",
        "",
        "What `llamarig doctor` can say ([how to use it](../how-to/diagnose.md)). This page is generated: `python -m",
        "llamarig.cli.reference_diagnoses`.",
        "",
        "## From what a machine's tools say",
        "",
        "| code | it means |",
        "|---|---|",
        *(f"| `{code}` | {about} |" for code, about in sorted(rule_codes().items())),
        "",
        "## From an error text, in a log or pasted",
        "",
        "| code | it means | cause | what to do | read in |",
        "|---|---|---|---|---|",
    ]
    for code, known in sorted(error_texts().items()):
        fix = f"{known.fix} ([more](../{known.page}))" if known.page else known.fix
        cells = (known.what, known.cause, fix, known.source)
        lines.append(f"| `{code}` | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += ["", "## Xid codes that are known", "", "| Xid | cause | what to do | severity |", "|---|---|---|---|"]
    for number, xid in sorted(xids().items()):
        lines.append(f"| {number} | {xid.cause} | {xid.fix} | {'warning' if xid.gentle else 'error'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
