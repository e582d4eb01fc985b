"""Whether a host is in use now, and so left for later: users, requests, maintenance windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from llamarig.compare.text import printable
from llamarig.compare.view import as_int, as_map
from llamarig.compare.window import closed
from llamarig.spec.window import Window, parse_window

if TYPE_CHECKING:
    from llamarig.spec.host import HostSpec
    from llamarig.spec.rollout import Rollout

_SHOWN_USERS = 3


@dataclass(frozen=True, slots=True)
class Rules:
    """What keeps one host from being changed."""

    requests: Literal["drain", "defer", "ignore"] = "drain"
    within_min: int = 10
    drain_s: int = 300
    users: Literal["defer", "ignore"] = "defer"
    windows: tuple[Window, ...] = ()
    timezone: str | None = None
    """Of the windows; None for the host's own."""

    @property
    def asks_servers(self) -> bool:
        """Whether the servers have to be asked at all."""
        return self.requests != "ignore"


@dataclass(frozen=True, slots=True)
class Use:
    """Why a host is not changed now."""

    reason: str
    drains: bool = False
    """Whether running requests are all that stands against it, and they may be waited for."""


def rules_of(spec: HostSpec, policy: Rollout) -> Rules:
    """The rules of one host: the fleet's, and its own windows and minutes."""
    own, given = spec.maintenance, policy.busy
    texts = [own.window] if isinstance(own.window, str) else own.window or []
    minutes = given.requests_within_min if own.idle_minutes is None else own.idle_minutes
    windows = tuple(parse_window(text) for text in texts)
    return Rules(given.requests, minutes, given.drain_s, given.users, windows, own.timezone)


def busy(idle: Mapping[str, Any] | None, rules: Rules, now: float) -> Use | None:
    """Why the host must not be changed at ``now`` (seconds of the epoch); None when nothing stands against it.

    ``idle`` is what the module rig_idle saw. What cannot be told counts as use.
    """
    if idle is None:
        return Use("nobody has looked whether it is in use")
    if shut := closed(rules.windows, rules.timezone, as_map(idle.get("clock")), now):
        return Use(shut)
    if rules.users == "defer" and (someone := _users(idle.get("users"))):
        return Use(someone)
    if not rules.asks_servers:
        return None
    found = [each for name, entry in as_map(idle.get("services")).items() if (each := _service(name, entry, rules))]
    if not found:
        return None
    return Use("; ".join(use.reason for use in found), all(use.drains for use in found))


def _users(users: object) -> str:
    if not isinstance(users, list):
        return "nobody knows whether somebody is logged in"
    if not users:
        return ""
    named = ", ".join(printable(name) for name in users[:_SHOWN_USERS])
    more = f" and {len(users) - _SHOWN_USERS} more" if len(users) > _SHOWN_USERS else ""
    return f"logged in: {named}{more}"


def _service(name: str, entry: object, rules: Rules) -> Use | None:
    state = as_map(entry)
    if state.get("running") is False:
        return None
    shown = printable(name)
    processing, recent = as_int(state.get("processing")), as_int(state.get("recent"))
    if processing is None or (recent is None and rules.requests == "defer"):
        return Use(f"nobody knows whether {shown} answers requests: {printable(state.get('error'))}")
    if processing > 0:
        return Use(f"{shown} answers {_requests(processing)}", drains=rules.requests == "drain" and rules.drain_s > 0)
    if rules.requests == "defer" and recent:
        return Use(f"{shown} had {_requests(recent)} within {rules.within_min} minutes")
    return None


def _requests(count: int) -> str:
    return f"{count} request{'' if count == 1 else 's'}"
