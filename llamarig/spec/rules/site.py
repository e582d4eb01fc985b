"""The mirror of a host's site, and what is fetched from it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from llamarig.spec.rules.base import Broken, View

_KEPT_ON_HOST = "host-path"


def address(view: View) -> Iterator[Broken]:
    """The address of a mirror is a plain one: it is written into apt's sources, and a path is added to it."""
    mirror = view.spec.mirror
    if mirror is None or mirror.url is None:
        return
    wrong = _wrong(mirror.url)
    if wrong:
        yield Broken(("mirror", "url"), f"the address {wrong}", "for example http://cache.lan/llamarig")


def _wrong(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return "is no address"
    if parts.scheme not in ("http", "https") or not host:
        return "is no http or https address"
    if "@" in parts.netloc:
        return "carries a user or a password, which would stand in apt's sources for all to read"
    if parts.query or parts.fragment or not url.isascii() or any(character in url for character in " []"):
        return "holds more than host, port and path"
    return ""


def fetched(view: View) -> Iterator[Broken]:
    """A model that is fetched from a mirror needs one, and does not lie on the host already."""
    for name, model in view.spec.models.items():
        if model.fetch != "mirror":
            continue
        if view.spec.mirror is None:
            yield Broken(
                ("models", name, "fetch"),
                "the spec names no mirror to fetch from",
                "add `mirror` with `path` or `url` (`llamarig mirror DIR HOST` makes one), or write `fetch: host`",
                rests_on=(("mirror",),),
            )
        if model.host_path is not None:
            yield Broken(
                ("models", name, "fetch"),
                "a model with a `host-path` lies on the host already: nothing is fetched",
                "remove `fetch`, or name where the file comes from",
                rests_on=(("models", name, _KEPT_ON_HOST),),
            )


RULES = (address, fetched)
