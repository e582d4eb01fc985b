"""The words and colours in which a rollout is told, the same on a terminal and on a page."""

from __future__ import annotations

from typing import Literal

from llamarig.compare.text import printable
from llamarig.fleet.rollout.state import (
    ABORTED,
    APPLYING,
    AT_WORK,
    BACK,
    DEFERRED,
    DONE,
    ENDED,
    FAILED,
    FLAWED,
    INCOMPLETE,
    NOTHING,
    OBSERVING,
    PAUSED,
    PENDING,
    REBOOTING,
    REFUSED,
    RETURNING,
    ROLLED_BACK,
    ROLLING_BACK,
    RUNNING,
    STOPPED,
    UNREACHABLE,
    HostState,
    State,
    Wave,
)

Tone = Literal["good", "thin", "bad", "work", "soft"]

PHASES: dict[str, tuple[Tone, str]] = {
    PENDING: ("soft", "waits"),
    OBSERVING: ("work", "is looked at"),
    APPLYING: ("work", "is changed"),
    REBOOTING: ("work", "is rebooted"),
    RETURNING: ("work", "goes back"),
    NOTHING: ("good", "nothing to do"),
    DONE: ("good", "done"),
    FAILED: ("bad", "failed"),
    ROLLED_BACK: ("bad", "rolled back"),
    DEFERRED: ("thin", "deferred"),
    UNREACHABLE: ("thin", "unreachable"),
    REFUSED: ("bad", "refused"),
}
"""Phase -> its tone, and how it is said."""

STATUSES: dict[str, Tone] = {
    RUNNING: "work",
    ROLLING_BACK: "work",
    PAUSED: "thin",
    INCOMPLETE: "thin",
    STOPPED: "bad",
    ABORTED: "bad",
    FLAWED: "bad",
    BACK: "thin",
    ENDED: "good",
}
ACTIVE = frozenset({OBSERVING, *AT_WORK})
_GOING = frozenset({RUNNING, ROLLING_BACK})
GOOD = frozenset({NOTHING, DONE})
REASON = 300
"""Characters of a reason that stand in a line."""


def phase_words(phase: str) -> tuple[Tone, str]:
    """Tone and words of a phase, also of one that a later version has added."""
    return PHASES.get(phase, ("soft", printable(phase, 40)))


def status_words(state: State) -> tuple[Tone, str]:
    """Tone and words of the whole rollout."""
    return STATUSES.get(state.status, "soft"), printable(state.status, 40).replace("-", " ")


def shown_phases(state: State) -> dict[str, str]:
    """The phase of each host as people mean it: one that was looked at and whose turn has not come waits."""
    changing = any(host.phase in AT_WORK for host in state.hosts.values())
    current = {name for wave in state.waves if wave.name == state.wave for name in wave.hosts}

    def shown(name: str, phase: str) -> str:
        looked_at = phase == OBSERVING and bool(state.wave) and (changing or name not in current)
        return PENDING if looked_at or (phase == OBSERVING and state.status not in _GOING) else phase

    return {name: shown(name, host.phase) for name, host in state.hosts.items()}


def counts(state: State) -> dict[str, int]:
    """How many hosts are in each phase; those that there are, in the order of :data:`PHASES`."""
    found: dict[str, int] = {}
    for phase in shown_phases(state).values():
        found[phase] = found.get(phase, 0) + 1
    ordered = [phase for phase in PHASES if phase in found]
    return {phase: found[phase] for phase in (*ordered, *(each for each in found if each not in PHASES))}


def counts_words(state: State) -> str:
    """``12 done, 3 nothing to do, 1 failed``."""
    return ", ".join(f"{count} {phase_words(phase)[1]}" for phase, count in counts(state).items())


def budget_words(state: State) -> str:
    """``1 failed, 2 allowed``, and whether that stops the rollout."""
    used, allowed = state.budget["used"], state.budget["allowed"]
    return f"{used} failed, {allowed} allowed" + ("; no other host is begun" if used > allowed else "")


def wave_words(wave: Wave, state: State) -> str:
    """``2 of 5 done``, with what went otherwise."""
    phases = [state.hosts[name].phase for name in wave.hosts if name in state.hosts]
    good = sum(1 for phase in phases if phase in GOOD)
    other = [
        f"{count} {phase_words(phase)[1]}"
        for phase in (FAILED, ROLLED_BACK, DEFERRED, UNREACHABLE, REFUSED)
        if (count := phases.count(phase))
    ]
    return ", ".join([f"{good} of {len(wave.hosts)} done", *other])


def host_words(host: HostState) -> str:
    """What is to be said of a host beside its phase: why it is so, or what was done; one printable line."""
    if host.reason and host.phase != DONE:
        return printable(host.reason.partition("\n")[0], REASON)
    words = []
    if host.actions and host.phase in (APPLYING, DONE):
        words.append(f"{host.actions} action{'' if host.actions == 1 else 's'}")
    if checks := checks_words(host):
        words.append(checks)
    if host.phase == DONE and host.to_release and host.from_release != host.to_release:
        words.append(f"release {printable(host.from_release or 'none', 40)} -> {printable(host.to_release, 40)}")
    return ", ".join(words)


def checks_words(host: HostState) -> str:
    """``7 of 8 checks passed``, with the names of some that did not."""
    passed, of = host.checks.get("passed"), host.checks.get("of")
    if passed is None or of is None:
        return ""
    failed = failed_checks(host)
    names = f": {', '.join(failed)}" if failed else ""
    return f"{printable(passed, 10)} of {printable(of, 10)} checks passed{names}"


def failed_checks(host: HostState, most: int = 5) -> list[str]:
    """The names of checks that failed, as words that may be shown."""
    failed = host.checks.get("failed")
    return [printable(name, 60) for name in failed[:most]] if isinstance(failed, list) else []


def ordered(state: State) -> list[Wave]:
    """The waves; hosts that stand in none, as an old journal may have, in a last one."""
    placed = {name for wave in state.waves for name in wave.hosts}
    rest = [name for name in state.hosts if name not in placed]
    return [*state.waves, *([Wave("without a wave", rest)] if rest else [])]


def active(state: State) -> list[str]:
    """Hosts on which something is being done."""
    return [name for name, phase in shown_phases(state).items() if phase in ACTIVE]
