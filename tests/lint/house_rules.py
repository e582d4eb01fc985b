"""The rules that no linter knows: where addresses may stand, and that nothing is skipped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CODE = ("llamarig/", "plugins/", "roles/", "playbooks/", "templates/", "scripts/", "tests/hosts/", "benchmarks/")
UPSTREAM_FILE = "llamarig/catalog/upstream.yml"
LONGEST = 450
"""Lines; a longer file holds more than one idea."""

# Spelled in parts, so that this file does not hold what it forbids.
_REGISTRIES = re.compile(
    r"(deb|security|ftp)\.(debian)\.org|(pypi)\.org|files\.python(hosted)\.org|registry\.(npm)js", re.IGNORECASE
)
_UPSTREAM = re.compile(
    r"https?://[\w.-]*(hugging" + r"face\.co|git" + r"hub(usercontent)?\.com|nvi" + r"dia\.com)", re.IGNORECASE
)
_SKIP = re.compile(r"(no" + r"qa|type: ig" + r"nore|yamllint dis" + r"able|shellcheck dis" + r"able)(?P<rest>.*)")
_REASON = re.compile(r"\s[-#]\s?\S.{9,}")


@dataclass(frozen=True)
class Breach:
    """A line that breaks a rule."""

    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text.strip()[:120]}"


def breaches(path: str, content: str) -> Iterator[Breach]:
    """Every breach in one text file; ``path`` is relative to the repository."""
    lines = content.splitlines()
    for number, line in enumerate(lines, 1):
        if _REGISTRIES.search(line) and path != "requirements.lock":
            yield Breach(path, number, "names a package registry or mirror", line)
        if path.startswith(CODE) and path != UPSTREAM_FILE and _UPSTREAM.search(line):
            yield Breach(path, number, f"names an upstream address outside {UPSTREAM_FILE}", line)
        skipped = _SKIP.search(line)
        if skipped and path.endswith((".py", ".yml", ".yaml")) and not _REASON.search(skipped["rest"]):
            yield Breach(path, number, "silences a check without a reason on the line", line)
    if path.endswith(".py") and len(lines) > LONGEST:
        yield Breach(path, len(lines), f"is longer than {LONGEST} lines", lines[0])
