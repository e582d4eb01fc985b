"""The form of a journal's records: whatever reads one may rely on the types and names that are checked here.

A sum says that a record is the one that was written, not that this version of llamarig would have written it.
Events and keys that it does not know are passed over, since a later version may tell more; those that it knows hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from llamarig.compare.text import printable

MOST_TEXT = 8000
"""Characters of any one text. The journal cuts them at a quarter of that; hiding a secret may make one longer."""
_MOST_NUMBER = 10**9
"""Of counts and of seconds: a rollout of thirty years."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""A host's name (``spec.base.HostName``); of a refused spec it may be anything, and no file is named after it."""

_Check = tuple[Callable[[Any], bool], str]
"""Whether a value is right, and what it has to be in words."""


def _is_text(value: Any) -> bool:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair: no page and no file can hold it
        return False
    return True


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and 0 <= value <= _MOST_NUMBER  # which no infinity is, and nothing that is no number


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(each) for each in value)


def _is_checks(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return not value or (
        _is_count(value.get("passed")) and _is_count(value.get("of")) and _is_texts(value.get("failed", []))
    )


def _one_of(words: Collection[str]) -> _Check:
    named = ", ".join(word or "nothing" for word in sorted(words))
    return lambda value: isinstance(value, str) and value in words, f"one of {named}"


_TEXT: _Check = (_is_text, f"a text of {MOST_TEXT} characters at most")
_MAYBE: _Check = (lambda value: value is None or _is_text(value), f"{_TEXT[1]}, or null")
_COUNT: _Check = (_is_count, f"a whole number from 0 to {_MOST_NUMBER}")
_NUMBER: _Check = (_is_number, f"a number from 0 to {_MOST_NUMBER}")
_FLAG: _Check = (lambda value: isinstance(value, bool), "true or false")
_MAP: _Check = (lambda value: isinstance(value, Mapping), "a map")
_LIST: _Check = (lambda value: isinstance(value, list), "a list")
_CHECKS: _Check = (_is_checks, "a map of the numbers `passed` and `of` and the names `failed`")

_EVERY: dict[str, _Check] = {"at": _TEXT, "event": _TEXT, "reason": _TEXT}
_START: dict[str, _Check] = {
    "id": _TEXT,
    "by": _TEXT,
    "policy": _MAP,
    "options": _MAP,
    "waves": _LIST,
    "hosts": _MAP,
}
_POLICY: dict[str, _Check] = {"canary": _COUNT, "failures": _COUNT, "unreachable": _one_of(("defer", "fail"))}
_OPTIONS: dict[str, _Check] = {"verify": _FLAG, "accept-changed": _FLAG, "reboot": _FLAG, "overlay": _MAP}
_OVERLAY: dict[str, _Check] = {"path": _TEXT, "digest": _TEXT}
_PINNED: dict[str, _Check] = {"spec": _TEXT, "wanted": _TEXT, "to-release": _MAYBE}
_HOST: dict[str, _Check] = {
    **_PINNED,
    "from-release": _MAYBE,
    "run": _MAYBE,
    "before-run": _MAYBE,
    "former-run": _TEXT,
    "checks": _CHECKS,
    "seconds": _NUMBER,
    "actions": _COUNT,
    "changed": _COUNT,
    "between": _FLAG,
    "failed": _FLAG,
    "reboot": _one_of(("", "waits", "begun", "made")),
}


class _FlawError(ValueError):
    """What is wrong with a record."""


class Form:
    """Checks the records of one journal in their order; ``phases`` and ``statuses`` are those that there are."""

    def __init__(self, phases: Collection[str], statuses: Collection[str]) -> None:
        self._phase, self._status = _one_of(phases), _one_of(statuses)
        self._hosts: frozenset[str] | None = None
        """None until the first record has named them."""
        self._waves: frozenset[str] = frozenset()

    def flaw(self, record: Mapping[str, Any]) -> str:
        """What is wrong with the next record, in words; empty when it is of the form."""
        try:
            self._check(record)
        except _FlawError as error:
            return str(error)
        return ""

    def _check(self, record: Mapping[str, Any]) -> None:
        _hold(record, _EVERY, "")
        event = record["event"]
        if (event == "rollout-started") == (self._hosts is not None):
            raise _FlawError("it begins a rollout a second time" if self._hosts is not None else "it begins no rollout")
        if event == "rollout-started":
            self._start(record)
        elif event == "host":
            self._host(record)
        elif event == "wave" and not (_is_text(record.get("name")) and record["name"] in self._waves):
            raise _FlawError(f"`name` is {_shown(record.get('name'))}, and no wave of this rollout has that name")
        elif event == "resumed":
            _hold(record, {"reboot": _FLAG}, "")
        elif event in ("finished", "rollback-finished"):
            _hold(record, {"status": self._status}, "", needed=True)

    def _start(self, record: Mapping[str, Any]) -> None:
        _hold(record, _START, "")
        _hold(record.get("policy", {}), _POLICY, "policy.")
        options = record.get("options", {})
        _hold(options, _OPTIONS, "options.")
        _hold(options.get("overlay", {}), _OVERLAY, "options.overlay.")
        hosts = record.get("hosts", {})
        for name, given in hosts.items():
            _hold({"name": name, "given": given}, {"name": _TEXT, "given": _MAP}, f"hosts.{printable(name, 60)}.")
            _hold(given, _PINNED, f"hosts.{printable(name, 60)}.")
            _named(name, given)
        self._waves = frozenset(_wave(each) for each in record.get("waves", []))
        placed = [name for wave in record.get("waves", []) for name in wave["hosts"]]
        if len(placed) != len(set(placed)):
            raise _FlawError("a host stands in more than one place of its waves")
        if odd := sorted(set(placed) ^ set(hosts)):
            raise _FlawError(f"the host {_shown(odd[0])} stands in one of `waves` and `hosts` alone")
        self._hosts = frozenset(hosts)

    def _host(self, record: Mapping[str, Any]) -> None:
        name = record.get("host")
        if not isinstance(name, str) or name not in (self._hosts or ()):
            raise _FlawError(f"`host` is {_shown(name)}, and no host of this rollout has that name")
        _hold(record, {"phase": self._phase}, "", needed=True)
        _hold(record, _HOST, "")
        _named(name, record)


def _wave(given: Any) -> str:
    """The name of a wave."""
    if not isinstance(given, Mapping):
        raise _FlawError(f"a wave is {_shown(given)}, not {_MAP[1]}")
    _hold(given, {"name": _TEXT, "hosts": (_is_texts, "a list of names")}, "waves.", needed=True)
    return str(given["name"])


def _named(name: str, given: Mapping[str, Any]) -> None:
    if given.get("spec") and not _NAME.fullmatch(name):
        raise _FlawError(f"{_shown(name)} has a spec, and is no name of a host")


def _hold(given: Mapping[str, Any], checks: Mapping[str, _Check], prefix: str, *, needed: bool = False) -> None:
    for key, (right, words) in checks.items():
        if (key in given or needed) and not right(given.get(key)):
            raise _FlawError(f"`{prefix}{key}` is {_shown(given.get(key))}, not {words}")


def _shown(value: Any) -> str:
    """A value in a few words, whatever it holds."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        return repr(printable(value, 60)) if len(value) <= MOST_TEXT else f"a text of {len(value)} characters"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if abs(value) <= _MOST_NUMBER else "a number beyond all reason"
    return "a list" if isinstance(value, list) else "a map"
