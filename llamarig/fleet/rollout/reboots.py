"""Hosts whose change lacks nothing but a reboot: who is rebooted within a rollout, and who is left for later."""

from __future__ import annotations

from collections.abc import Sequence

from llamarig.fleet.rollout import state
from llamarig.fleet.rollout.hands import Gate, Hands, Reboot, Result
from llamarig.fleet.rollout.journal import Record
from llamarig.fleet.rollout.log import Log, words


class Reboots:
    """The step between the two halves of such a change; ``asked``: somebody wants what ``maintenance.reboot: ask``
    asks about; ``silent_fails``: a host that does not answer counts as failed."""

    def __init__(self, log: Log, hands: Hands, gate: Gate, *, asked: bool, silent_fails: bool = False) -> None:
        self._log, self._hands, self._gate = log, hands, gate
        self._asked, self._silent_fails = asked, silent_fails

    def make(self, hosts: Sequence[str]) -> tuple[list[str], dict[str, Result]]:
        """Reboot those that may be now.

        Returns those whose change goes on, and how the others failed. Whoever is left for later is told here.
        """
        found = self._hands.may_reboot(hosts)
        lost = [name for name in hosts if not found[name].result.reached]
        told = {name: each.verdict for name, each in found.items() if each.result.error is None}
        asking = [name for name in hosts if told.get(name) == "ask" and self._asked]
        # Hours may lie between its first look and this, and an answer from the start has named nobody.
        closed = self._gate(asking) if asking else {}
        now = [name for name in hosts if told.get(name) == "now" or (name in asking and name not in closed)]
        back = [name for name in hosts if told.get(name) == "not-needed"]
        later = [name for name in hosts if name not in {*lost, *now, *back}]
        self._log.tell(
            *(self._silent(name, found[name]) for name in lost),
            *(self._later(name, found[name], closed.get(name, "")) for name in later),
            *(self._log.host(name, state.APPLYING, reason="", reboot="") for name in back),
        )
        made, failed = self._reboot(now, found)
        return [*back, *made], failed

    def _reboot(self, hosts: Sequence[str], found: dict[str, Reboot]) -> tuple[list[str], dict[str, Result]]:
        if not hosts:
            return [], {}
        self._log.tell(
            *(
                self._log.host(name, state.REBOOTING, reason="; ".join(found[name].needed), reboot=state.BEGUN)
                for name in hosts
            )
        )
        ended = self._hands.reboot(hosts)
        failed = {name: ended[name].result for name in hosts if ended[name].result.error is not None}
        made = [name for name in hosts if name not in failed and ended[name].made]
        # The host decides again before it goes down: what is not safe or shut by now holds for all, and who came
        # meanwhile for `now`; for `ask` that was asked of the gate a moment ago.
        over = [name for name in hosts if name not in {*failed, *made} and ended[name].verdict == "not-needed"]
        later = [name for name in hosts if name not in {*failed, *made, *over}]
        self._log.tell(
            *(self._log.host(name, state.APPLYING, reason="", reboot=state.MADE) for name in made),
            *(self._log.host(name, state.APPLYING, reason="", reboot="") for name in over),
            *(self._later(name, ended[name]) for name in later),
        )
        return [*made, *over], failed

    def _silent(self, name: str, found: Reboot) -> Record:
        """A host that was lost when it was asked: no change of it was on its way, but a reboot from before may be."""
        known = self._log.state.hosts[name]
        return self._log.host(
            name,
            state.UNREACHABLE,
            reason=words(found.result.error),
            between=True,
            reboot=None if known.reboot in (state.BEGUN, state.MADE) else state.WAITS,
            failed=self._silent_fails or None,
        )

    def _later(self, name: str, found: Reboot, closed: str = "") -> Record:
        needed = f" ({'; '.join(found.needed)})" if found.needed else ""
        reason = f"a reboot is needed{needed}, {_why(found, closed, asked=self._asked)}"
        if found.result.error is not None:
            reason = f"nobody knows whether it may be rebooted: {words(found.result.error)}"
        return self._log.host(name, state.DEFERRED, reason=reason, between=True, reboot=state.WAITS)


def _why(found: Reboot, closed: str, *, asked: bool) -> str:
    """What stands against a reboot now, and what to do."""
    why = closed or "; ".join(found.why)
    if found.verdict == "refused":
        # What is not safe must not be made by hand either; what the spec forbids is its owner's to make.
        return f"which is refused: {why}; once that is settled, resume"
    if found.verdict == "ask" and not asked:
        return "and `maintenance.reboot` is `ask`: resume with --reboot"
    return f"and not now: {why}; resume later" if why else "and was not made; resume"


__all__ = ["Reboots"]
