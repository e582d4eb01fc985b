"""A fleet of hosts that are a few fields each, in the place of Ansible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llamarig.errors import ExitCode, RigError
from llamarig.fleet.rollout import journal, state
from llamarig.fleet.rollout.hands import Pin, Reboot, Result, Seen
from llamarig.fleet.rollout.log import Log
from llamarig.fleet.rollout.machine import Machine
from llamarig.fleet.rollout.state import State, Wave


class Killed(BaseException):
    """SIGKILL of the controller: nothing of it runs after that."""


def trouble(what: str) -> RigError:
    return RigError(what, code=ExitCode.HOST_FAILED)


@dataclass
class Machinery:
    """One host: what it runs, and what is wrong with it."""

    release: str = "old"
    run: str = "run-0"
    former: tuple[str, str] | None = None
    """Release and run of the state that it would go back to."""
    proven: str = ""
    """The run of the state that it is in, where its record names another: it was rolled back to it."""
    half: bool = False
    """In the middle of a change."""
    reachable: bool = True
    locked: str = ""
    bad: bool = False
    """Whether the proof of any change fails."""
    sticks: bool = False
    """Whether it does not even come back to what it was."""
    lost: bool = False
    """Whether it is cut off while it is changed."""
    touched: int = 0
    spec: str = "spec"
    module: str = ""
    """The driver's module that is loaded; empty where no driver is managed."""
    installed: str = ""
    """The version of the driver's packages."""
    verdict: str = "now"
    """What the host decides about a reboot that it needs."""
    why: tuple[str, ...] = ()
    boots: str = "well"
    """How it comes up: ``well``, ``not`` at all, or with the ``old`` module."""
    rebooted: int = 0
    early: bool = False
    """Whether every change of it fails before the driver is come to."""


@dataclass
class Fleet:
    """The stand-in of the layer below; ``calls`` is all that it was asked to do."""

    hosts: dict[str, Machinery]
    wanted: str = "new"
    driver: str = ""
    """The version that is wanted where a driver is managed."""
    builds: bool = False
    calls: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    broken: dict[str, RigError] = field(default_factory=dict)
    """Hosts whose spec cannot be loaded."""
    unbuilt: dict[str, RigError] = field(default_factory=dict)
    """Hosts whose release cannot be made elsewhere."""
    proven: list[str] = field(default_factory=list)
    """Hosts that were to be proven though nothing was to be done."""
    taken: set[str] = field(default_factory=set)
    """Hosts whose lock somebody takes right before they are changed."""
    held: set[str] = field(default_factory=set)
    wholes: bool = False
    """Whether older journals have another digest of the same spec."""
    runs: int = 0
    kill_at: int = -1
    """The step at which the controller dies; each call has two: before and within."""
    steps: int = 0
    on_apply: Callable[[], None] | None = None
    on_reboot: Callable[[], None] | None = None

    def _step(self) -> None:
        if self.steps == self.kill_at:
            raise Killed
        self.steps += 1

    def load(self, hosts: Sequence[str]) -> dict[str, Pin | RigError]:
        self._step()
        self.calls.append(("load", tuple(hosts)))
        return {
            name: self.broken.get(name)
            or Pin(
                self.hosts[name].spec,
                f"w-{self.hosts[name].spec}",
                self.wanted,
                f"{self.hosts[name].spec}, whole" if self.wholes else "",
            )
            for name in hosts
        }

    def load_pinned(self, host: str) -> RigError | None:
        return None if host in self.kept else trouble("nothing is kept")

    def build(self, hosts: Sequence[str]) -> dict[str, RigError]:
        self._step()
        return {name: error for name, error in self.unbuilt.items() if name in hosts}

    def share(self, host: str) -> RigError | None:
        self._step()
        self.calls.append(("share", (host,)))
        self.held.add(self.wanted)
        return None

    def look(self, hosts: Sequence[str]) -> dict[str, Seen]:
        self._step()
        self.calls.append(("look", tuple(hosts)))
        return {name: self._seen(self.hosts[name]) for name in hosts}

    def _seen(self, host: Machinery) -> Seen:
        if not host.reachable:
            return Seen(error=trouble("the host cannot be reached"), reached=False)
        todo = host.release != self.wanted or host.half or host.module not in ("", self.driver)
        return Seen(
            release=host.release,
            run=host.run,
            former_run=host.former[1] if host.former else None,
            actions=2 if todo else 0,
            up=frozenset({"chat"} if not host.half else ()),
            unfinished=host.half,
            locked=host.locked,
            waits=self._waits(host),
            builds=self.wanted if self.builds and todo and self.wanted not in self.held else "",
        )

    def _waits(self, host: Machinery) -> str:
        if not host.module or host.module == self.driver or host.installed != self.driver:
            return ""
        return f"module {host.module} is loaded, wanted {self.driver}"

    def keep(self, hosts: Sequence[str]) -> None:
        self._step()
        self.kept |= dict.fromkeys(hosts, self.wanted)

    def apply(self, hosts: Sequence[str], *, prove: bool) -> dict[str, Result]:
        self._step()
        self.calls.append(("apply", tuple(hosts)))
        self.runs += 1
        self.proven += [name for name in hosts if prove]
        for name in hosts:
            self.hosts[name].touched += 1
            if self.hosts[name].module not in ("", self.driver):
                continue
            self.hosts[name].half = self.hosts[name].release != self.wanted or self.hosts[name].half
        self._step()  # killed here, every host of the batch is half changed
        if self.on_apply is not None:
            self.on_apply()
        found = {name: self._changed(name, f"run-{self.runs}", prove=prove) for name in hosts}
        self._step()  # killed here, it is all done, and nobody knows
        return found

    def _changed(self, name: str, run: str, *, prove: bool) -> Result:
        host = self.hosts[name]
        if name in self.taken:
            host.half = False
            return Result(error=trouble("another apply holds this host's lock"), untouched=True)
        if (ended := self._before_services(host)) is not None:
            return ended
        if not host.half and not prove:
            # The run looks again by itself, and ends where nothing is to be done.
            return Result()
        if host.lost:
            host.reachable = False
            return Result(error=trouble("the host cannot be reached"), reached=False)
        if host.bad and host.half:
            host.half = host.sticks
            return Result(error=trouble("Prove failed"), checks={"passed": 1, "of": 2, "failed": ["answer"]})
        if host.half:
            if host.release != self.wanted:
                host.former, host.proven = (host.release, host.proven or host.run), ""
            host.release, host.run, host.half = self.wanted, run, False
        return Result(checks={"passed": 2, "of": 2, "failed": []}, changed=3, run=host.run, release=host.release)

    def _before_services(self, host: Machinery) -> Result | None:
        if host.early:
            host.half = False
            return Result(error=trouble("apt has failed"))
        if host.module in ("", self.driver):
            return None
        host.installed = self.driver
        return Result(error=trouble("A reboot is needed"), at_driver=True)

    def may_reboot(self, hosts: Sequence[str]) -> dict[str, Reboot]:
        self._step()
        self.calls.append(("may_reboot", tuple(hosts)))
        return {name: self._decided(self.hosts[name]) for name in hosts}

    def _decided(self, host: Machinery) -> Reboot:
        if not host.reachable:
            return Reboot(result=Result(error=trouble("the host cannot be reached"), reached=False))
        if host.verdict == "error":
            return Reboot(result=Result(error=trouble("rig_idle has failed")))
        why = self._waits(host)
        return Reboot(host.verdict, (why,), host.why) if why else Reboot("not-needed")

    def reboot(self, hosts: Sequence[str]) -> dict[str, Reboot]:
        self._step()
        self.calls.append(("reboot", tuple(hosts)))
        if self.on_reboot is not None:
            self.on_reboot()
        found = {name: self._rebooted(name) for name in hosts}
        self._step()  # killed here, they are up again, and nobody knows
        return found

    def _rebooted(self, name: str) -> Reboot:
        host = self.hosts[name]
        if name in self.taken:
            return Reboot(result=Result(error=trouble("another apply holds this host's lock"), untouched=True))
        if host.verdict not in ("now", "ask"):
            return self._decided(host)
        host.rebooted += 1
        if host.boots == "not":
            host.reachable = False
            return Reboot(result=Result(error=trouble("the host did not come back within 900 s after its reboot")))
        if host.boots == "old":
            return Reboot(result=Result(error=trouble("after the reboot not all of it agrees")))
        host.module = self.driver
        self._step()  # killed here, this one is up, and the next is not down yet
        return Reboot(made=True)

    def back(self, hosts: Sequence[str]) -> dict[str, Result]:
        self._step()
        self.calls.append(("back", tuple(hosts)))
        self.runs += 1
        found = {}
        for name in hosts:
            host = self.hosts[name]
            if host.bad or host.former is None:
                found[name] = Result(error=trouble("rolling back failed"))
                continue
            now = (host.release, host.run)
            host.release, host.former = host.former[0], now
            self._step()  # killed here, former and present have changed places and the record does not say so
            host.run = f"run-{self.runs}"
            found[name] = Result(run=host.run, release=host.release, checks={"passed": 2, "of": 2, "failed": []})
        return found

    def touched(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.touched]


def no_gate(_hosts: Sequence[str]) -> dict[str, str]:
    return {}


def begin(place: Path, fleet: Fleet, sizes: Sequence[int], **policy: object) -> Log:
    """A new rollout over all hosts of the fleet, in waves of these sizes."""
    names, waves = list(fleet.hosts), []
    for number, size in enumerate(sizes):
        waves.append(Wave(f"wave {number}", names[:size]))
        names = names[size:]
    place.mkdir(parents=True, exist_ok=True)
    log = Log(journal.Journal.create(place / journal.FILE), lambda _state: None)
    options = {
        key.replace("_", "-"): policy.pop(key) for key in ("verify", "accept_changed", "reboot") if key in policy
    }
    log.tell(
        {
            "event": "rollout-started",
            "id": place.name,
            "policy": {"canary": sizes[0], "failures": 0, **policy},
            "options": options,
            "waves": [{"name": wave.name, "hosts": wave.hosts} for wave in waves],
            "hosts": {
                name: {"spec": host.spec, "wanted": f"w-{host.spec}", "to-release": fleet.wanted}
                for name, host in fleet.hosts.items()
            },
        }
    )
    return log


def again(place: Path) -> Log:
    """The journal as another controller finds it."""
    return Log(journal.Journal.open(place / journal.FILE), lambda _state: None)


def forward(log: Log, fleet: Fleet, place: Path, gate: Callable[[Sequence[str]], dict[str, str]] = no_gate) -> State:
    Machine(log, fleet, place, gate).forward()
    return log.state


def phases(told: State) -> dict[str, str]:
    return {name: host.phase for name, host in told.hosts.items()}


__all__ = ["Fleet", "Killed", "Machinery", "again", "begin", "forward", "no_gate", "phases", "state", "trouble"]
