"""The verbs of a rollout, each under the fleet's lock: start, resume, abort, rollback; and pause, from aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from llamarig import __version__
from llamarig.converge.apply import Options
from llamarig.converge.controller import controller_facts
from llamarig.converge.events import Sink
from llamarig.converge.private import private_directory
from llamarig.errors import ExitCode, RigError, RigErrors
from llamarig.fleet.rollout import control, journal, places, refuse, state
from llamarig.fleet.rollout.ansible import AnsibleHands
from llamarig.fleet.rollout.back import Back, changed
from llamarig.fleet.rollout.hands import Gate, Hands, Pin
from llamarig.fleet.rollout.lock import fleet_lock, holder
from llamarig.fleet.rollout.log import Log, Watch
from llamarig.fleet.rollout.machine import Machine
from llamarig.fleet.rollout.pin import overlay_digest
from llamarig.fleet.rollout.state import State
from llamarig.spec.overlay import Overlay


def no_gate(_hosts: Sequence[str]) -> dict[str, str]:
    """Every host may be changed at any time."""
    return {}


def silent(_state: State) -> None:
    """Nobody watches."""


def deaf(_event: dict[str, Any]) -> None:
    """Nobody listens to Ansible."""


MakeHands = Callable[[Path, Path, Path], Hands]
"""Project, the rollout's directory, a private directory."""


@dataclass(frozen=True)
class Session:
    """What every verb that works on hosts is given."""

    root: Path
    options: Options = field(default_factory=Options)
    sink: Sink = deaf
    watch: Watch = silent
    known: Watch = silent
    """Sees what a rollout is when it is taken up again, before anything new is told of it."""
    gate: Gate = no_gate
    make_hands: MakeHands | None = None
    overlay: Overlay | None = None
    """Laid on the spec that it names, as by every other verb."""

    def hands(self, place: Path, private: Path) -> Hands:
        """The layer below."""
        if self.make_hands is not None:
            return self.make_hands(self.root, place, private)
        return AnsibleHands(self.root, place, private, self.options, self.sink, overlay=self.overlay)


@dataclass(frozen=True)
class Start:
    """What a new rollout is to be."""

    waves: Sequence[state.Wave]
    policy: dict[str, Any]
    """``canary``, ``failures``, ``unreachable``: as the journal keeps them."""
    options: dict[str, Any]
    """``verify``, ``accept-changed``, ``reboot``."""
    refused: Mapping[str, RigError] = field(default_factory=dict)
    """Hosts of the waves whose specs have errors, and files that are no host's."""

    @property
    def hosts(self) -> list[str]:
        """All hosts, in the order of the waves."""
        return [name for wave in self.waves for name in wave.hosts]


def start(session: Session, wish: Start) -> State:
    """Begin a rollout and go on until it is over or stops.

    A host that cannot be planned or must not be applied is refused alone, and not looked at. Raises :class:`RigError`
    while another one is unfinished, and :class:`RigErrors` when every host is refused; nothing is touched then.
    """
    with fleet_lock(session.root, "start"), private_directory() as private:
        refuse.refuse_unfinished(session.root)
        place = places.new(session.root)
        hands = session.hands(place, private)
        pins = {**hands.load([name for name in wish.hosts if name not in wish.refused]), **wish.refused}
        errors = {name: pin for name, pin in pins.items() if isinstance(pin, RigError)}
        if len(errors) == len(pins):
            raise RigErrors([_of_host(name, error) for name, error in errors.items()])
        places.make(place)
        log = Log(journal.Journal.create(place / journal.FILE), session.watch)
        log.tell(_first(place.name, wish, pins, session.overlay))
        with _closing(log):
            Machine(log, hands, place, session.gate).forward(pins)
        return log.state


def _first(name: str, wish: Start, pins: dict[str, Pin | RigError], overlay: Overlay | None) -> journal.Record:
    facts = controller_facts()
    laid = {} if overlay is None else {"overlay": {"path": str(overlay.path), "digest": overlay_digest(overlay)}}
    return {
        "event": "rollout-started",
        "id": name,
        "by": f"{facts['who']}@{facts['from']}",
        "llamarig": __version__,
        "policy": wish.policy,
        "options": {**wish.options, **laid},
        "waves": [{"name": wave.name, "hosts": wave.hosts} for wave in wish.waves],
        "hosts": {
            host: {"spec": pin.spec, "wanted": pin.wanted, "to-release": pin.release} if isinstance(pin, Pin) else {}
            for host, pin in pins.items()
        },
    }


def _of_host(host: str, error: RigError) -> RigError:
    """The same, with the host's name: several of one reason would look like one told several times."""
    return replace(error, where=f"{host}: {error.where}" if error.where and error.where != host else host)


def resume(session: Session, name: str | None, *, reboot: bool = False) -> State:
    """Go on with a rollout that was paused, was cut off, or has left hosts for later.

    One that was stopped or aborted does not go on; hosts that it left in the middle are brought to an end.
    ``reboot``: from now on hosts are rebooted whose ``maintenance.reboot`` is ``ask``. Raises :class:`RigError` when
    there is nothing to go on with.
    """
    with _open(session, "resume", name) as (log, hands, place):
        if log.state.status == state.ROLLING_BACK:
            Back(log, hands).all()
        elif log.state.status in state.OVER:
            Machine(log, hands, place, session.gate).settle()
        else:
            control.clear(place)
            log.tell({"event": "resumed", **({"reboot": True} if reboot else {})})
            Machine(log, hands, place, session.gate).forward()
        return log.state


def abort(session: Session, name: str | None) -> State:
    """End a rollout that nobody drives: hosts in the middle are brought to an end, no other is begun."""
    with _open(session, "abort", name) as (log, hands, place):
        Machine(log, hands, place, session.gate).settle()
        log.tell({"event": "aborted", "reason": "asked for"})
        return log.state


def rollback(session: Session, name: str | None) -> State:
    """Take back what a rollout has changed; hosts in the middle are brought to an end first.

    One that waits for its reboot runs what it ran, and is left so. Raises :class:`RigError` when it has changed
    nothing, and when a newer rollout has changed one of its hosts since.
    """
    with _open(session, "rollback", name) as (log, hands, place):
        if log.state.status not in (state.ROLLING_BACK, state.BACK):
            Machine(log, hands, place, session.gate).settle(waiting=False)
        Back(log, hands).all()
        return log.state


def pause(root: Path, name: str | None) -> State:
    """Ask the rollout that runs to stop after the hosts that it works on; one that nobody drives is paused at once."""
    place = places.find(root, name)
    told = State.read(place)
    refuse.refuse_unbegun(told, place)
    if told.status == state.INCOMPLETE:
        raise refuse.had_its_turn(told)
    if told.status in state.OVER:
        raise refuse.over(told)
    if told.status == state.ROLLING_BACK:
        raise RigError("a way back is not paused", told.id, fix="wait for its end; it is taken up again when cut off")
    if driver(root, told) is not None:
        control.ask(place, control.PAUSE)
        return told
    with fleet_lock(root, "pause"):
        log = Log(journal.Journal.open(place / journal.FILE), silent)
        with _closing(log):
            log.tell({"event": "paused", "reason": "asked for while nobody drove it"})
        return log.state


def ask_to_abort(root: Path, name: str | None) -> State | None:
    """Ask the rollout that runs to end after the hosts that it works on; None when nobody drives it."""
    place = places.find(root, name)
    told = State.read(place)
    if driver(root, told) is None:
        return None
    control.ask(place, control.ABORT)
    return told


def driver(root: Path, told: State) -> dict[str, Any] | None:
    """Who drives this rollout now (``who`` ``from`` ``pid`` ``verb`` ``since``); None when nobody does."""
    who = holder(root)
    if who is None or "command" in who or (who.get("rollout") or places.find(root, None).name) != told.id:
        return None
    return {key: who.get(key) for key in ("who", "from", "pid", "verb", "since")}


@contextmanager
def _open(session: Session, verb: str, name: str | None) -> Iterator[tuple[Log, Hands, Path]]:
    with fleet_lock(session.root, verb, name), private_directory() as private:
        refuse.may(session.root, verb, name, session.overlay)
        place = places.find(session.root, name)
        log = Log(journal.Journal.open(place / journal.FILE), session.watch)
        session.known(log.state)
        with _closing(log):
            yield log, session.hands(place, private), place


@contextmanager
def _closing(log: Log) -> Iterator[None]:
    try:
        yield
    finally:
        log.journal.close()


def exit_code(told: State) -> ExitCode:
    """0 when every host is what was asked (after a way back: what it was), 1 when some were left, 2 when a spec was
    refused, 3 when a host failed."""
    hosts = told.hosts.values()
    if any(host.phase == state.FAILED for host in hosts):
        return ExitCode.HOST_FAILED
    if told.status == state.BACK:
        return ExitCode.FINDING if changed(told) else ExitCode.OK
    if told.status == state.STOPPED or told.failures:
        return ExitCode.HOST_FAILED
    if any(host.phase == state.REFUSED for host in hosts):
        return ExitCode.BAD_INPUT
    done = all(host.phase in (state.DONE, state.NOTHING) for host in hosts)
    return ExitCode.OK if done and told.status == state.ENDED else ExitCode.FINDING
