"""A rollout on its way forwards: look, change in waves, gate, stop. Each step is in the journal before it is taken."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llamarig.errors import RigError
from llamarig.fleet.rollout import control, state
from llamarig.fleet.rollout.hands import Gate, Hands, Pin, Result, Seen
from llamarig.fleet.rollout.journal import Record
from llamarig.fleet.rollout.log import Log, words
from llamarig.fleet.rollout.reboots import Reboots
from llamarig.fleet.rollout.state import State

LOOK_LASTS_S = 60.0
"""After this a host is looked at again before its turn."""
_THEN = "; put it back and resume, or abort and start anew"
CHANGED = f"its spec was changed since the rollout began{_THEN}"
OTHERWISE = (
    "what it is to become has changed since the rollout began, though its spec has not (a template, llamarig itself)"
    + _THEN
)
_LEFT = "it waited for a reboot, and this rollout makes none any more; its services are left as they are: see `rebuild`"


@dataclass(frozen=True)
class Rules:
    """What a rollout was started with."""

    canary: int = 1
    failures: int = 0
    unreachable_fails: bool = False
    prove: bool = False
    """Prove also the hosts on which nothing is to be done."""
    accept_changed: bool = False
    reboot: bool = False
    """Whether hosts are rebooted whose ``maintenance.reboot`` is ``ask``."""

    @classmethod
    def of(cls, told: State) -> Rules:
        """Those that the journal's first record has."""
        return cls(
            canary=int(told.policy.get("canary", 1)),
            failures=int(told.policy.get("failures", 0)),
            unreachable_fails=told.policy.get("unreachable") == "fail",
            prove=bool(told.options.get("verify")),
            accept_changed=bool(told.options.get("accept-changed")),
            reboot=bool(told.options.get("reboot")),
        )


class Machine:
    """Takes the hosts of a rollout that are not settled yet through their waves."""

    def __init__(self, log: Log, hands: Hands, place: Path, gate: Gate) -> None:
        self._log, self._hands, self._place, self._gate = log, hands, place, gate
        self._rules = Rules.of(log.state)
        fails = self._rules.unreachable_fails
        self._reboots = Reboots(log, hands, gate, asked=self._rules.reboot, silent_fails=fails)
        self._settling = False
        """Whether the rollout is over, and hosts in the middle are only brought to an end."""
        self._left: set[str] = set()
        """Hosts that are still to have their turn in this run."""
        self._shared: set[str] = set()
        """Releases that one host has built and the controller holds since."""
        self._seen: dict[str, Seen] = {}
        self._at: dict[str, float] = {}
        self._middle: set[str] = set()
        """Hosts that were in the middle when their turn came."""
        self._by_others: set[str] = set()
        """Hosts that waited for a reboot, and need none any more: somebody else made it."""
        self._lost = ""
        """A host that was lost while it was changed, before any other had proven the change."""

    def forward(self, pins: Mapping[str, Pin | RigError] | None = None) -> None:
        """Go on until every host had its turn, or something stops it; the journal says which. ``pins`` are what was
        loaded a moment ago."""
        self._survey(self._log.state.open(), pins)
        self._build()
        if self._go_through(self._log.state.waves):
            self._finish()

    def settle(self, *, waiting: bool = True) -> None:
        """Bring only those hosts to an end that a killed controller left in the middle; not those that wait for a
        reboot without ``waiting``."""
        hosts, self._settling = self._log.state.hosts, True
        middle = [name for name in self._log.state.open() if hosts[name].between]
        left = [name for name in middle if not waiting and not hosts[name].halfway]
        self._log.tell(*(self._log.host(name, state.DEFERRED, reason=_LEFT, between=False) for name in left))
        self._survey([name for name in middle if name not in left])
        control.clear(self._place)
        for wave in self._log.state.waves:
            while batch := [name for name in wave.hosts if name in self._left]:
                self._turn(batch)

    def _go_through(self, waves: Sequence[state.Wave]) -> bool:
        # Hosts in the middle come first: what they are half-way to is proven by no other.
        hosts = self._log.state.hosts
        middle = {name for name in self._left if hosts[name].between}
        for wave, among in [*((wave, middle) for wave in waves), *((wave, self._left) for wave in waves)]:
            while batch := self._batch(wave, among):
                if self._stops(begins=among is not middle):
                    return False
                if wave.name != self._log.state.wave:
                    self._log.tell({"event": "wave", "name": wave.name})
                self._turn(batch)
        return not self._stops(at_end=True)

    def _stops(self, *, at_end: bool = False, begins: bool = True) -> bool:
        """Whether no further host may be begun (or gone on with: not ``begins``); told to the journal."""
        now = self._log.state
        if self._lost and not self._proven():
            why = f"{self._lost} was lost while it was changed, before any host has proven the change"
            self._log.tell({"event": "stopped", "reason": why})
            return True
        if now.failures > self._rules.failures:
            why = f"{now.failures} failed, and {self._rules.failures} may"
            self._log.tell({"event": "stopped", "reason": why})
            return True
        asked = "" if at_end else control.asked(self._place)
        if asked:
            control.clear(self._place)
            self._log.tell({"event": "paused" if asked == control.PAUSE else "aborted", "reason": "asked for"})
            return True
        held = self._held() if begins else ""
        if held:
            self._log.tell({"event": "finished", "status": state.INCOMPLETE, "reason": held})
        return bool(held)

    def _held(self) -> str:
        """Which host had its turn and is in the middle still, while none has proven the change: a second one would only
        be brought as far."""
        hosts = self._log.state.hosts
        left = [name for name in self._log.state.open() if hosts[name].between and name not in self._left]
        if not left or self._proven():
            return ""
        what = "waits for a reboot" if hosts[left[0]].reboot == state.WAITS else "is in the middle of its change"
        return f"{left[0]} {what}, and no host has proven the change yet"

    def _proven(self) -> bool:
        """Whether a host of this rollout was changed, and has passed its proof."""
        return any(host.phase == state.DONE for host in self._log.state.hosts.values())

    def _batch(self, wave: state.Wave, among: set[str]) -> list[str]:
        """The next hosts of a wave that are among these: while nothing is proven no more than a canary, whoever was to
        be it; and of those that would build the same release one, for all."""
        left = [name for name in wave.hosts if name in self._left and name in among]
        if self._rules.canary and not self._proven():
            changing = [name for name in left if self._seen[name].actions][: self._rules.canary]
            left = [name for name in left if name in changing or not self._seen[name].actions]
        return self._first_builders(left)

    def _first_builders(self, hosts: list[str]) -> list[str]:
        building: set[str] = set()
        chosen = []
        for name in hosts:
            release = self._seen[name].builds
            if release and release not in self._shared:
                if release in building:
                    continue
                building.add(release)
            chosen.append(name)
        return chosen

    def _share(self, hosts: Sequence[str]) -> None:
        """Fetch what the hosts of a batch have built, for those that come behind them."""
        known = self._log.state.hosts
        for name in hosts:
            release = self._seen[name].builds
            wanting = any(self._seen[other].builds == release for other in self._left)
            if release and release not in self._shared and known[name].phase == state.DONE and wanting:
                # Where it cannot be fetched the others build for themselves: slower, and right all the same.
                self._shared.add(release)
                error = self._hands.share(name)
                told = {"error": words(error)} if error else {}
                self._log.tell({"event": "shared", "host": name, "release": release, **told})

    def _build(self) -> None:
        """Have the releases that are made elsewhere, before any host is touched."""
        errors = self._hands.build([name for name in self._log.state.open() if name in self._left])
        self._left -= set(errors)
        self._log.tell(*(self._log.host(name, state.DEFERRED, reason=words(error)) for name, error in errors.items()))

    def _survey(self, hosts: Sequence[str], pins: Mapping[str, Pin | RigError] | None = None) -> None:
        """Look at all hosts at once; on those with nothing to do the rollout is over."""
        ready = self._load(hosts, pins)
        before = self._log.state.hosts
        self._look(ready)
        records = []
        for name in ready:
            seen = self._seen[name]
            if seen.error is not None:
                records.append(self._not_seen(name, seen))
            elif seen.actions or before[name].between or self._rules.prove:
                self._left.add(name)
                waits = {} if before[name].between else {"actions": seen.actions}
                records.append(self._log.host(name, state.PENDING, **waits))
            else:
                records.append(self._nothing(name, seen))
        self._log.tell(*records)

    def _nothing(self, name: str, seen: Seen, result: Result | None = None) -> Record:
        return self._log.host(
            name,
            state.NOTHING,
            from_release=seen.release,
            before_run=seen.run,
            actions=0,
            seconds=round(seen.seconds + (result.seconds if result else 0), 1),
            checks=result.checks if result else None,
        )

    def _not_seen(self, name: str, seen: Seen) -> Record:
        """A host that did not answer, or answered what nobody understands: nothing of it was touched."""
        phase = state.DEFERRED if seen.reached else state.UNREACHABLE
        fails = not seen.reached and self._rules.unreachable_fails
        return self._log.host(name, phase, reason=words(seen.error), failed=fails or None)

    def _load(self, hosts: Sequence[str], pins: Mapping[str, Pin | RigError] | None = None) -> list[str]:
        """The hosts that may go on: their specs are what they were. One that is in the middle goes on with what it was
        to become."""
        known, records, ready = self._log.state.hosts, [], []
        found = pins if pins is not None else self._hands.load(hosts) if hosts else {}
        for name in hosts:
            pin = found[name]
            if not known[name].spec and not isinstance(pin, RigError):
                # It was refused at the start, and is mended.
                pinned = {"spec": pin.spec, "wanted": pin.wanted, "to_release": pin.release, "reason": ""}
                records.append(self._log.host(name, state.PENDING, **pinned))
                ready.append(name)
                continue
            why = self._differs(name, pin)
            if why and known[name].between:
                error = self._hands.load_pinned(name)
                why = "" if error is None else f"{why}; {words(error)}"
            if why:
                phase = state.DEFERRED if known[name].spec else state.REFUSED
                records.append(self._log.host(name, phase, reason=why))
                self._left.discard(name)
            else:
                ready.append(name)
        self._log.tell(*records)
        return ready

    def _differs(self, name: str, pin: Pin | RigError) -> str:
        """Why a host cannot go on with what was loaded now; empty when it can."""
        if isinstance(pin, RigError):
            return f"{words(pin)}; fix: {pin.fix}" if pin.fix else words(pin)
        pinned = self._log.state.hosts[name]
        same = pinned.spec in (pin.spec, pin.whole)
        if self._rules.accept_changed or (same and pin.wanted == pinned.wanted):
            return ""
        return OTHERWISE if same else CHANGED

    def _look(self, hosts: Sequence[str]) -> None:
        if not hosts:
            return
        self._log.tell(*(self._log.host(name, state.OBSERVING) for name in hosts))
        self._seen |= self._hands.look(hosts)
        self._at |= dict.fromkeys(hosts, time.monotonic())

    def _turn(self, batch: Sequence[str]) -> None:
        """Change the hosts of a batch together, and judge each."""
        self._left -= set(batch)
        ready = self._ready(batch)
        if not ready:
            return
        self._hands.keep(ready)
        self._log.tell(*(self._begin(name) for name in ready))
        # An apply of those that waited before would end at the same place.
        known = self._log.state.hosts
        waiting = [name for name in ready if self._seen[name].waits and known[name].reboot]
        waiting += self._change([name for name in ready if name not in waiting])
        if waiting:
            self._reboot(waiting)
        self._share(ready)

    def _change(self, hosts: Sequence[str], *, rebooted: bool = False) -> list[str]:
        """Change hosts together and judge each; those that lack only a reboot are returned instead."""
        if not hosts:
            return []
        prove = rebooted or self._rules.prove or bool(self._middle & set(hosts))
        return self._judge_all(self._hands.apply(hosts, prove=prove), may_wait=not rebooted)

    def _judge_all(self, results: Mapping[str, Result], *, may_wait: bool) -> list[str]:
        failed = [name for name, result in results.items() if result.error is not None and result.reached]
        after = self._hands.look(failed) if failed else {}
        waiting = [name for name in failed if may_wait and results[name].at_driver and after[name].waits]
        judged = [name for name in results if name not in waiting]
        self._log.tell(*(self._judge(name, results[name], after.get(name)) for name in judged))
        return waiting

    def _reboot(self, hosts: Sequence[str]) -> None:
        """Hosts that lack only a reboot: make it where it may be made, and go on with those."""
        if self._settling:
            why = "a reboot is needed, and this rollout makes none any more; its services run as before: see `rebuild`"
            given = {"reason": why, "between": False, "reboot": state.WAITS}
            self._log.tell(*(self._log.host(name, state.DEFERRED, **given) for name in hosts))
            return
        back, failed = self._reboots.make(hosts)
        self._judge_all(failed, may_wait=False)
        self._by_others |= {name for name in back if not self._log.state.hosts[name].reboot}
        self._change(back, rebooted=True)

    def _ready(self, batch: Sequence[str]) -> list[str]:
        """Those of a batch that may be changed now, by their specs, a fresh look and the gate."""
        ready = self._load(batch)
        stale = [name for name in ready if time.monotonic() - self._at[name] > LOOK_LASTS_S]
        self._look(stale)
        changing = [name for name in ready if self._begins(name)]
        closed = self._gate(changing) if changing else {}
        records, may = [], []
        for name in ready:
            seen = self._seen[name]
            if seen.error is not None:
                records.append(self._not_seen(name, seen))
            elif seen.locked:
                records.append(self._log.host(name, state.DEFERRED, reason=f"somebody works on it: {seen.locked}"))
            elif name in closed:
                records.append(self._log.host(name, state.DEFERRED, reason=closed[name]))
            elif not seen.actions and not self._log.state.hosts[name].between and not self._rules.prove:
                records.append(self._nothing(name, seen))
            else:
                may.append(name)
        self._log.tell(*records)
        return may

    def _begins(self, name: str) -> bool:
        """Whether a host that runs what it ran is about to be changed, so that its users have a say.

        One in the middle is brought to an end whoever uses it: nobody is served well by half a change. One that still
        waits for its reboot is asked about that alone; one that somebody has rebooted serves, and is applied now.
        """
        seen, known = self._seen[name], self._log.state.hosts[name]
        goes_on = known.halfway or seen.unfinished or bool(seen.waits)
        return bool(seen.actions) and not (known.between and goes_on)

    def _begin(self, name: str) -> Record:
        seen, known = self._seen[name], self._log.state.hosts[name]
        if known.between:
            self._middle.add(name)
            # What it ran before the rollout was told when it was begun first. A reboot that nobody saw the end of is
            # judged by what came up. One that still waits is not applied; of any other nobody knows what it runs now.
            if known.reboot == state.WAITS and not seen.waits:
                self._by_others.add(name)
            over = {state.BEGUN: state.MADE, state.WAITS: ""}
            return self._log.host(name, state.APPLYING, reboot=None if seen.waits else over.get(known.reboot))
        return self._log.host(
            name,
            state.APPLYING,
            actions=seen.actions,
            from_release=seen.release,
            before_run=seen.run,
            former_run=seen.former_run or "",
        )

    def _judge(self, name: str, result: Result, after: Seen | None) -> Record:
        """What became of a host that was changed."""
        known = self._log.state.hosts[name]
        told: dict[str, Any] = {
            "checks": result.checks or None,
            "changed": result.changed,
            "seconds": result.seconds,
        }
        if result.error is None:
            # One that waited for its reboot may have been rebooted by hand, with which all was done.
            ours = known.reboot or name in self._by_others or self._seen[name].run != known.before_run
            if not result.checks or (not self._seen[name].actions and not ours):
                # Nothing was to be done any more, by what the run itself saw; or it was only proven.
                return self._nothing(name, self._seen[name], result)
            return self._log.host(name, state.DONE, run=result.run, to_release=result.release, reason="", **told)
        reason = words(result.error)
        if result.untouched:
            between = name in self._middle or name in self._by_others or bool(known.reboot)
            # Whoever holds the lock kept it from going down, or from being changed after its reboot.
            waits = state.WAITS if name in self._by_others or known.reboot == state.BEGUN else None
            return self._log.host(name, state.DEFERRED, reason=reason, between=between, reboot=waits)
        if not result.reached or (after is not None and not after.reached):
            if not self._proven():
                self._lost = self._lost or name
            fails = self._rules.unreachable_fails or None
            return self._log.host(name, state.UNREACHABLE, reason=reason, between=True, failed=fails, **told)
        # After a reboot that did not come true its services may run, but not on what they ran.
        is_back = known.reboot != state.BEGUN and after is not None and self._is_back(name, after)
        phase = state.ROLLED_BACK if is_back else state.FAILED
        return self._log.host(name, phase, reason=reason, failed=True, between=False, **told)

    def _is_back(self, name: str, after: Seen) -> bool:
        """Whether a host runs what it ran before this rollout: its own look says so, not the run that failed."""
        before, known = self._seen[name], self._log.state.hosts[name]
        same = after.release == known.from_release and not after.unfinished
        return after.error is None and same and before.up <= after.up

    def _finish(self) -> None:
        now = self._log.state
        status = state.INCOMPLETE if now.open() else state.FLAWED if now.failures else state.ENDED
        self._log.tell({"event": "finished", "status": status})
