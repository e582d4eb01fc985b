"""A rollout on its way back: only what it changed, the last first, each host to what it ran before."""

from __future__ import annotations

from collections.abc import Sequence

from llamarig.fleet.rollout import state
from llamarig.fleet.rollout.hands import Hands, Result, Seen
from llamarig.fleet.rollout.journal import Record
from llamarig.fleet.rollout.log import Log, words

_ASKED = "asked for"
_SINCE = "it was changed again after this rollout, by run {run}: going back would undo that instead"
_KEPT = "this rollout changed nothing of it that a way back restores (a driver stays)"
_NOTHING = "it ran nothing before this rollout, so there is nothing to go back to"


class Back:
    """Takes hosts that a rollout has changed to their own former releases."""

    def __init__(self, log: Log, hands: Hands) -> None:
        self._log, self._hands = log, hands

    def all(self) -> None:
        """Every changed host that is not back yet: the waves in reverse order."""
        if self._log.state.status != state.ROLLING_BACK:
            self._log.tell({"event": "rollback-started"})
        for wave in reversed(self._log.state.waves):
            batch = [name for name in reversed(wave.hosts) if name in changed(self._log.state)]
            if batch:
                self._some(batch)
        self._log.tell({"event": "rollback-finished", "status": state.BACK})

    def _some(self, batch: Sequence[str]) -> None:
        errors = {name: error for name in batch if (error := self._hands.load_pinned(name)) is not None}
        self._log.tell(*(self._log.host(name, state.DEFERRED, reason=words(error)) for name, error in errors.items()))
        ready = [name for name in batch if name not in errors]
        if not ready:
            return
        seen = self._hands.look(ready)
        records = {name: self._settled(name, seen[name]) for name in ready}
        self._log.tell(*(record for record in records.values() if record is not None))
        todo = [name for name, record in records.items() if record is None]
        if not todo:
            return
        self._log.tell(*(self._log.host(name, state.RETURNING) for name in todo))
        results = self._hands.back(todo)
        # A way back that was killed between two of its last steps has swapped former and present state already.
        again = [name for name in todo if results[name].error is None and not self._is_back(name, results[name])]
        if again:
            results |= self._hands.back(again)
        self._log.tell(*(self._judge(name, results[name]) for name in todo))

    def _settled(self, name: str, seen: Seen) -> Record | None:
        """What is told of a host that is left as it is; None when it is to go back."""
        known = self._log.state.hosts[name]
        if seen.error is not None:
            phase = state.DEFERRED if seen.reached else state.UNREACHABLE
            return self._log.host(name, phase, reason=words(seen.error))
        if known.between and seen.run != known.run and seen.release == known.from_release and not seen.unfinished:
            return self._log.host(name, state.ROLLED_BACK, reason=_ASKED)
        why = _why_not(known, seen)
        return self._log.host(name, state.DEFERRED, reason=why) if why else None

    def _is_back(self, name: str, result: Result) -> bool:
        return result.release == self._log.state.hosts[name].from_release

    def _judge(self, name: str, result: Result) -> Record:
        told = {"checks": result.checks or None, "seconds": result.seconds}
        if result.error is None and self._is_back(name, result):
            return self._log.host(name, state.ROLLED_BACK, reason=_ASKED, **told)
        if result.error is None:
            reason = f"it went back to {result.release}, not to {self._log.state.hosts[name].from_release}"
            return self._log.host(name, state.FAILED, reason=reason, between=False, **told)
        phase = state.DEFERRED if result.untouched else state.FAILED if result.reached else state.UNREACHABLE
        between = None if phase == state.UNREACHABLE else False
        return self._log.host(name, phase, reason=words(result.error), between=between, **told)


def changed(told: state.State) -> list[str]:
    """Hosts that the rollout has changed and that are not back, the last first."""
    done = {name: host.done_at for name, host in told.hosts.items() if host.phase != state.ROLLED_BACK}
    return sorted((name for name, at in done.items() if at is not None), key=lambda name: -(done[name] or 0))


def _why_not(known: state.HostState, seen: Seen) -> str:
    """Why a host is not taken back; empty when it may be."""
    if seen.locked:
        return f"somebody works on it: {seen.locked}"
    if known.from_release is None:
        return _NOTHING
    if seen.run != known.run and not known.between:
        return _SINCE.format(run=seen.run or "unknown")
    # Whatever alters release or files makes another former state. The run of its record will not do for this: that of a
    # host that was rolled back is none of a state.
    if not known.between and known.former_run is not None and (seen.former_run or "") == known.former_run:
        return _KEPT
    return ""
