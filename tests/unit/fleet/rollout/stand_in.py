"""A fleet of hosts that are a few fields each, in the place of Ansible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llamarig.errors import ExitCode, RigError
from llamarig.fleet.rollout import journal, state
from llamarig.fleet.rollout.hands import Pin, Result, Seen
from llamarig.fleet.rollout.machine import Log, Machine
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


@dataclass
class Fleet:
    """The stand-in of the layer below; ``calls`` is all that it was asked to do."""

    hosts: dict[str, Machinery]
    wanted: str = "new"
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
    runs: int = 0
    kill_at: int = -1
    """The step at which the controller dies; each call has two: before and within."""
    steps: int = 0
    on_apply: Callable[[], None] | None = None

    def _step(self) -> None:
        if self.steps == self.kill_at:
            raise Killed
        self.steps += 1

    def load(self, hosts: Sequence[str]) -> dict[str, Pin | RigError]:
        self._step()
        self.calls.append(("load", tuple(hosts)))
        return {
            name: self.broken.get(name) or Pin(self.hosts[name].spec, f"w-{self.hosts[name].spec}", self.wanted)
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
        todo = host.release != self.wanted or host.half
        return Seen(
            release=host.release,
            run=host.run,
            former_run=host.former[1] if host.former else None,
            actions=2 if todo else 0,
            up=frozenset({"chat"} if not host.half else ()),
            unfinished=host.half,
            locked=host.locked,
            builds=self.wanted if self.builds and todo and self.wanted not in self.held else "",
        )

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
                host.former = (host.release, host.run)
            host.release, host.run, host.half = self.wanted, run, False
        return Result(checks={"passed": 2, "of": 2, "failed": []}, changed=3, run=host.run, release=host.release)

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
    options = {key.replace("_", "-"): policy.pop(key) for key in ("verify", "accept_changed") if key in policy}
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
