"""Whether a host has to reboot, whether that is safe, and whether it may happen now. Pure: nothing is touched here.

A reboot for which nothing calls is the commonest mistake (field case 58f), one into a kernel without its module the
most expensive (field case 49).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from llamarig.compare.driver import REBOOT, driver, upstream_version
from llamarig.compare.reboot_tried import in_vain, purpose
from llamarig.compare.text import printable
from llamarig.compare.view import View, as_int, as_map, as_text, as_texts
from llamarig.compare.window import closed
from llamarig.spec.window import parse_window

Verdict = Literal["not-needed", "refused", "ask", "waits", "now"]
IDLE_MINUTES = 10
"""Without a request, where the spec names no number."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the spec says about reboots."""

    reboot: Literal["never", "ask", "now"] = "ask"
    idle_minutes: int | None = None
    local: bool = False
    """Whether the controller is the host itself."""
    window: tuple[str, ...] = ()
    """Maintenance windows as the spec has them; none: at any time."""
    timezone: str | None = None
    """Of the windows; None for the host's own."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Policy:
        """The policy that comes as a variable of Ansible's, with a list for the windows."""
        return cls(**{**given, "window": tuple(given.get("window", ()))})


@dataclass(frozen=True, slots=True)
class Reboot:
    """The decision, with every reason in words."""

    verdict: Verdict
    kernel: str
    """That would boot; empty where nobody knows."""
    running: str
    needed: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    """Why it is refused or waits; with ``ask``, what speaks against doing it now."""
    purpose: Mapping[str, str] = field(default_factory=dict)
    """What it is to bring, as it is written down on the host before it is made."""

    def to_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "verdict": self.verdict,
            "kernel": self.kernel,
            "running": self.running,
            "needed": list(self.needed),
            "why": list(self.why),
            "purpose": dict(self.purpose),
        }


def newest(kernels: Mapping[str, Any]) -> str:
    """The kernel that boots when nobody chooses: GRUB sorts by version, runs of digits as numbers."""
    return max(kernels, key=lambda name: [(int(d), "") if d else (-1, w) for d, w in _RUNS.findall(name)], default="")


_RUNS = re.compile(r"(\d+)|(\D+)")


def needed(view: View) -> list[str]:
    """What only a reboot brings about; nothing on a host whose driver llamarig does not manage."""
    wanted, seen = view.wanted.driver, view.part("driver")
    if wanted is None or not seen:
        return []
    running, kernel = as_text(view.observed.get("kernel")) or "", newest(as_map(seen.get("kernels")))
    newer = [f"kernel {printable(running)} runs and {printable(kernel)} is installed"]
    return (newer if kernel not in ("", running) else []) + [
        action.reason for action in driver(view) if action.subject == REBOOT
    ]


def ahead(view: View) -> str:
    """Why an apply cannot end without a reboot, as far as a look can tell; empty where it may. Where no module is
    loaded and nothing else holds the cards, an apply loads the one that it installs."""
    seen = view.part("driver")
    if not (as_text(seen.get("loaded")) or as_texts(seen.get("nouveau"))):
        return ""
    return next((action.reason for action in driver(view) if action.subject == REBOOT), "")


def unsafe(view: View) -> list[str]:
    """Why the host might not come back with its driver: whatever of the driver is not as wanted, for any kernel."""
    left = [action for action in driver(view) if action.subject != REBOOT]
    found = [each.reason if each.subject in each.reason else f"{each.subject}: {each.reason}" for each in left]
    # One that was killed before it changed anything of what runs is in nobody's way, and could not end itself: the next
    # apply ends for the reboot, before it comes to that.
    if view.observed.get("unfinished") is not None and view.part("unfinished").get("begun") is not False:
        found.append(
            "an apply has not ended, and had begun to change what runs; apply again first, and where that ends for "
            "the reboot, reboot the host yourself"
        )
    return found


def busy(idle: Mapping[str, Any] | None, minutes: int) -> list[str]:
    """Who would notice a reboot; what cannot be told counts as busy."""
    if idle is None:
        return ["nobody has looked whether the host is idle"]
    users = idle.get("users")
    found = [f"{printable(name)} is logged in" for name in users] if isinstance(users, list) else ["users are unknown"]
    for name, entry in as_map(idle.get("services")).items():
        state = as_map(entry)
        if state.get("running") is False:
            continue
        processing, recent = as_int(state.get("processing")), as_int(state.get("recent"))
        if processing is None or recent is None:
            found.append(f"nobody knows whether {printable(name)} is idle: {printable(state.get('error'))}")
        elif processing > 0:
            found.append(f"{printable(name)} answers {processing} request{'s' if processing > 1 else ''}")
        elif recent > 0:
            found.append(f"{printable(name)} had {recent} request{'s' if recent > 1 else ''} within {minutes} minutes")
    return found


def outside(idle: Mapping[str, Any], policy: Policy, now: float | None) -> list[str]:
    """Why the host's maintenance window is closed at ``now`` (seconds of the epoch); an unknown time is outside."""
    if not policy.window:
        return []
    if now is None:
        return ["nobody has said what time it is, and it has a maintenance window"]
    windows = [parse_window(text) for text in policy.window]
    shut = closed(windows, policy.timezone, as_map(idle.get("clock")), now)
    return [shut] if shut else []


def _forbidden(policy: Policy) -> str:
    """Why the spec allows no reboot at all; empty where it may."""
    if policy.reboot == "never":
        return "maintenance.reboot is `never`"
    return "the host is the controller itself, and a run does not survive its own reboot" if policy.local else ""


def decide_reboot(
    view: View,
    policy: Policy,
    idle: Mapping[str, Any] | None = None,
    *,
    allowed: bool = False,
    now: float | None = None,
) -> Reboot:
    """The whole decision. ``idle`` is what rig_idle saw at ``now`` (seconds of the epoch); ``allowed``: somebody has
    answered the question with yes, which opens no maintenance window."""
    kernel = newest(as_map(view.part("driver").get("kernels")))
    running = as_text(view.observed.get("kernel")) or ""
    reasons = tuple(needed(view))

    def is_(verdict: Verdict, why: list[str]) -> Reboot:
        return Reboot(verdict, kernel, running, reasons, tuple(why), purpose(view, kernel))

    if not reasons:
        return is_("not-needed", [])
    if against := unsafe(view):
        return is_("refused", against)
    if refused := _forbidden(policy) or in_vain(view, kernel):
        return is_("refused", [refused])
    if idle is not None and (shut := outside(idle, policy, now)):
        return is_("waits", shut)
    someone = busy(idle, policy.idle_minutes if policy.idle_minutes is not None else IDLE_MINUTES)
    if policy.reboot == "ask":
        return is_("now" if allowed else "ask", someone)
    return is_("waits", someone) if someone else is_("now", [])


def differs_after(view: View, kernel: str) -> list[str]:
    """After a reboot: which of kernel, module, library and record do not agree; none when all do."""
    wanted, seen = view.wanted.driver, view.part("driver")
    running = as_text(view.observed.get("kernel")) or "unknown"
    found = [] if running == kernel else [f"kernel: {printable(running)} runs, {printable(kernel)} was to boot"]
    if wanted is None:
        return found
    loaded = as_text(seen.get("loaded")) or "none"
    if loaded != wanted.version and (loaded != "none" or view.observed.get("gpus")):
        found.append(f"module: {printable(loaded)} is loaded, wanted {wanted.version}")
    for name, entry in sorted(as_map(seen.get("packages")).items()):
        version = upstream_version(as_text(as_map(entry).get("version")) or "")
        if name.partition(":")[0].startswith(("libcuda1", "libnvidia-ml1")) and version != wanted.version:
            found.append(f"library: {printable(name)} is {printable(version)}, wanted {wanted.version}")
    pins = as_map(view.record.get("gpus"))
    told = {as_text(as_map(gpu).get("uuid")) for gpu in _list(view.observed.get("gpus"))} - {None}
    gone = [f"record: card {printable(name)} ({printable(uuid)}) is not there" for name, uuid in pins.items()]
    return found + [words for words, uuid in zip(gone, pins.values(), strict=True) if told and uuid not in told]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
