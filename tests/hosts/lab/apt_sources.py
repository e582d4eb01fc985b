"""Reads how this machine is set up for apt, so that the lab's machines use the same mirror.

No mirror is named in this project: whatever /etc/apt says here (one-line and deb822
forms, ``signed-by``, proxies) is carried over to Debian 13.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.packages import LabError

SUITE = "trixie"
"""Debian 13's code name."""
FORMER_SUITE = "bookworm"
"""Debian 12's."""


@dataclass(frozen=True)
class AptSource:
    """One suite of one archive."""

    uri: str
    suite: str
    components: tuple[str, ...]
    keyring: str = ""

    def line(self) -> str:
        """The one-line form, without a keyring: the lab's machines trust what is in trusted.gpg.d."""
        return f"deb {self.uri} {self.suite} {' '.join(self.components)}"


def parse_one_line(text: str) -> Iterator[AptSource]:
    """Sources in the classic form, ``deb [options] URI SUITE COMPONENT...``."""
    for raw in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<rest>[^#]+)", raw)
        if match is None:
            continue
        uri, suite, *components = match["rest"].split()
        options = dict(part.split("=", 1) for part in (match["options"] or "").split() if "=" in part)
        yield AptSource(uri.rstrip("/"), suite, tuple(components), options.get("signed-by", ""))


def parse_deb822(text: str) -> Iterator[AptSource]:
    """Sources in deb822 form, one stanza for several URIs and suites."""
    for stanza in re.split(r"\n\s*\n", text):
        fields = _fields(stanza)
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in {"no", "false"}:
            continue
        signed = fields.get("signed-by", "").strip()
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                components = tuple(fields.get("components", "").split())
                yield AptSource(uri.rstrip("/"), suite, components, signed if signed.startswith("/") else "")


def _fields(stanza: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    key = ""
    for line in stanza.splitlines():
        if line.startswith("#"):
            continue
        if line[:1] in {" ", "\t"} and key:
            fields[key] += "\n" + line.strip()
        elif ":" in line:
            key, value = line.split(":", 1)
            key = key.strip().lower()
            fields[key] = value.strip()
    return fields


def machine_sources(root: Path = Path("/etc/apt")) -> list[AptSource]:
    """Every enabled source of this machine."""
    found: list[AptSource] = []
    for path in [root / "sources.list", *sorted((root / "sources.list.d").glob("*"))]:
        if not path.is_file():
            continue
        if path.suffix == ".list":
            found += parse_one_line(path.read_text(errors="replace"))
        elif path.suffix == ".sources":
            found += parse_deb822(path.read_text(errors="replace"))
    return found


def for_debian_13(sources: list[AptSource], codename: str) -> list[AptSource]:
    """The machine's own Debian sources, moved to Debian 13; third parties are left out."""
    return for_suite(sources, codename, SUITE)


def for_suite(sources: list[AptSource], codename: str, wanted: str) -> list[AptSource]:
    """The machine's own Debian sources, moved to another suite of Debian.

    A source is Debian's own when its suite is the machine's code name, alone or
    followed by ``-updates`` or ``-security``.
    """
    moved: dict[tuple[str, str], AptSource] = {}
    for source in sources:
        for ending in ("", "-updates", "-security"):
            if source.suite == codename + ending:
                key = (source.uri, wanted + ending)
                moved.setdefault(key, AptSource(source.uri, wanted + ending, source.components, source.keyring))
    if not any(source.suite == wanted for source in moved.values()):
        return []
    return sorted(moved.values(), key=lambda source: source.suite)


def codename(os_release: Path = Path("/etc/os-release")) -> tuple[str, str]:
    """(distribution, code name) of this machine, for example ``("debian", "bookworm")``."""
    pairs = dict(line.split("=", 1) for line in os_release.read_text().splitlines() if "=" in line)
    return pairs.get("ID", "").strip('"'), pairs.get("VERSION_CODENAME", "").strip('"')


def proxies() -> str:
    """The proxy settings of this machine's apt, as lines for apt.conf.d; empty when there are none."""
    done = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"apt-config dump failed: {done.stderr.strip()}")
    wanted = [line for line in done.stdout.splitlines() if re.match(r'Acquire::https?::Proxy(::\S+)? "[^"]', line)]
    return "".join(f"{line}\n" for line in wanted)
