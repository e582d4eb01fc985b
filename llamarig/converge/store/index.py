"""Find a Python distribution by exact name and version, in the indexes that pip would ask."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal
from urllib.parse import urldefrag, urljoin

import httpx
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from llamarig.converge.store.download import local_file, shown
from llamarig.converge.store.pip_config import PipConfig
from llamarig.errors import ExitCode, RigError

Kind = Literal["sdist", "wheel"]
ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
PAGE_LIMIT = 64 << 20


@dataclass(frozen=True)
class Distribution:
    """One file of an index. ``sha256`` is what the index says, not what anybody pinned."""

    filename: str
    url: str
    sha256: str | None


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.found.append(href)


def parse_page(text: str, base: str, is_json: bool) -> list[Distribution]:
    """The files that a project's page lists (PEP 691 JSON or PEP 503 HTML)."""
    if is_json:
        files = json.loads(text).get("files", [])
        return [
            Distribution(
                str(entry["filename"]), urljoin(base, str(entry["url"])), entry.get("hashes", {}).get("sha256")
            )
            for entry in files
        ]
    anchors = _Anchors()
    anchors.feed(text)
    found = []
    for href in anchors.found:
        url, fragment = urldefrag(urljoin(base, href))
        digest = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else None
        found.append(Distribution(url.rpartition("/")[2].replace("%2B", "+"), url, digest))
    return found


def _runs_here(platform: str) -> bool:
    """Whether a wheel for this platform is for the hosts, which are x86_64 machines with Linux and glibc."""
    return platform == "any" or (platform.endswith("_x86_64") and platform.startswith(("linux", "manylinux")))


def fits(filename: str, name: str, version: str, kind: Kind) -> bool:
    """Whether a file is that distribution; of a wheel for some platforms, whether the hosts' is one of them."""
    try:
        if kind == "sdist":
            got_name, got_version = parse_sdist_filename(filename)
        else:
            got_name, got_version, _, tags = parse_wheel_filename(filename)
            if not any(_runs_here(tag.platform) for tag in tags):
                return False
        return got_name == canonicalize_name(name) and got_version == Version(version)
    except (InvalidSdistFilename, InvalidWheelFilename, InvalidVersion):
        return False


def _page(http: httpx.Client, url: str) -> list[Distribution] | None:
    """A project's page, or None when the index does not have it. Raises httpx errors."""
    folder = local_file(url)
    if folder is not None:
        page = folder / "index.html"
        return parse_page(page.read_text(errors="replace"), url, False) if page.is_file() else None
    answer = http.get(url, headers={"Accept": ACCEPT})
    if answer.is_error or len(answer.content) > PAGE_LIMIT:
        return None
    return parse_page(answer.text, str(answer.url), "json" in answer.headers.get("content-type", ""))


def find(http: httpx.Client, config: PipConfig, requirement: str, kind: Kind) -> Distribution:
    """The file of ``name==version``; local directories first, then the indexes in order.

    Raises :class:`RigError` when no index has it.
    """
    name, _, version = requirement.partition("==")
    said: list[str] = []
    for entry in config.find_links:
        folder = local_file(entry) or Path(entry)
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if fits(path.name, name, version, kind):
                return Distribution(path.name, path.resolve().as_uri(), None)
    for index in config.indexes:
        url = f"{index}/{canonicalize_name(name)}/"
        try:
            page = _page(http, url)
        except (httpx.HTTPError, OSError, ValueError, KeyError) as error:
            said.append(f"{shown(url)}: {error}")
            continue
        fitting = [entry for entry in page or [] if fits(entry.filename, name, version, kind)]
        if fitting:
            return min(fitting, key=lambda entry: ("-none-any" not in entry.filename, entry.filename))
        said.append(f"{shown(url)}: {'no such project' if page is None else f'no {kind} of {version}'}")
    raise RigError(
        what=f"no {kind} of {requirement} found",
        where=requirement,
        why="; ".join(said) or "pip is configured with no index",
        fix="check name and version, or pip's configuration on this machine (pip config list)",
        code=ExitCode.HOST_FAILED,
    )
