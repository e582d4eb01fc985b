"""The hands of a rollout: the same functions that ``apply`` and ``rollback`` use, one ansible-playbook a batch."""

from __future__ import annotations

import itertools
import json
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.compare.load import wanted_from_json
from llamarig.compare.view import as_map, as_text, as_texts
from llamarig.converge import apply as work
from llamarig.converge import rebuild
from llamarig.converge.connection import lend_password
from llamarig.converge.controller import is_gone, machine
from llamarig.converge.events import Sink
from llamarig.converge.explain import explain_all
from llamarig.converge.hosts import host_variables
from llamarig.converge.private import write_private
from llamarig.converge.run import HostOutcome, Run, run_playbook
from llamarig.converge.wanted import spec_of
from llamarig.converge.way_back import held_by
from llamarig.errors import ExitCode, RigError, RigErrors
from llamarig.fleet.rollout.hands import Pin, Reboot, Result, Seen
from llamarig.fleet.rollout.journal import sync_directory
from llamarig.fleet.rollout.pin import spec_digest, wanted_digest, whole_digest
from llamarig.fleet.wake import wake_sleepers, with_waking
from llamarig.spec.load import load_project

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost
    from llamarig.spec.overlay import Overlay

_WANTED = "wanted"
_ENDING_S = 30.0
"""How long an Ansible whose llamarig was killed may take to end."""
_MOST_NAMES = 20
_DRIVER = "nvidia_driver"
"""The role whose own check ends an apply that lacks a reboot."""


class AnsibleHands:
    """Works on the hosts of one project; ``place`` is the rollout's directory, ``private`` one of mode 0700."""

    def __init__(  # noqa: PLR0913 - what every call needs, given once
        self,
        root: Path,
        place: Path,
        private: Path,
        options: work.Options,
        sink: Sink,
        *,
        overlay: Overlay | None = None,
    ) -> None:
        self._root, self._place, self._private = root, place, private
        self._options, self._sink, self._overlay = options, sink, overlay
        self._hosts: dict[str, work.HostApply] = {}
        self._loaded: dict[str, LoadedHost] = {}
        self._runs = itertools.count()

    def loaded(self, hosts: Sequence[str]) -> list[LoadedHost]:
        """The specs that :meth:`load` has read."""
        return [self._loaded[name] for name in hosts if name in self._loaded]

    def load(self, hosts: Sequence[str]) -> dict[str, Pin | RigError]:
        """Read the specs again and plan them."""
        project = load_project(self._root, self._overlay)
        private = self._own_directory()
        found: dict[str, Pin | RigError] = {}
        for name in hosts:
            try:
                self._loaded[name] = project.named(name)
                spec = spec_of(self._loaded[name])
                (prepared,) = work.prepare(self._root, [self._loaded[name]], private, self._options)
            except RigErrors as errors:
                found[name] = _as_one(errors.errors)
            except RigError as error:
                found[name] = error
            else:
                self._hosts[name] = prepared
                wanted = prepared.variables["llamarig_wanted"]
                release, digest = str(wanted["release"]["id"]), wanted_digest(wanted)
                found[name] = Pin(spec_digest(spec), digest, release, whole_digest(spec))
        return found

    def load_pinned(self, host: str) -> RigError | None:
        """Take what was kept for the host in the place of what its spec says now."""
        try:
            kept = json.loads((self._place / _WANTED / f"{host}.json").read_bytes())
            loaded = self._loaded[host] = load_project(self._root, self._overlay).named(host)
            wanted = wanted_from_json(kept)
            variables = host_variables(self._root, loaded, wanted, self._own_directory())
        except (OSError, ValueError) as error:
            return RigError("what the host was to become is not known any more", host, str(error))
        except RigError as error:
            return error
        lend_password(variables, self._options.become_password_file)
        self._hosts[host] = work.HostApply(host, variables)
        return None

    def build(self, hosts: Sequence[str]) -> dict[str, RigError]:
        """Have the releases of those hosts that do not build their own."""
        chosen = [loaded for loaded in self.loaded(hosts) if spec_of(loaded).engine.build.where != "host"]
        if not chosen:
            return {}
        from llamarig.converge.build.ensure import make_releases  # noqa: PLC0415 - most fleets build on their hosts
        from llamarig.converge.build.play import Given  # noqa: PLC0415 - as the line above

        given = Given(self._options.become_password_file, self._options.break_lock, self._overlay)
        return make_releases(self._root, chosen, self._own_directory(), self._sink, given)

    def share(self, host: str) -> RigError | None:
        """Fetch the release that a host has built."""
        from llamarig.converge.build.collect import collect  # noqa: PLC0415 - only where one host builds for others

        try:
            collect(self._hosts[host], self._own_directory(), self._sink)
        except RigError as error:
            return error
        return None

    def look(self, hosts: Sequence[str]) -> dict[str, Seen]:
        """Look at hosts, all at once; a process of this machine that works on one is given a moment to end.

        An Ansible whose llamarig was killed ends by itself, but not at once.
        """
        seen = self._look(hosts)
        deadline = time.monotonic() + _ENDING_S
        ended = [name for name, each in seen.items() if each.locked and _ends(each.observed, deadline)]
        return seen | (self._look(ended) if ended else {})

    def _look(self, hosts: Sequence[str]) -> dict[str, Seen]:
        chosen = [self._hosts[name] for name in hosts]
        for host in chosen:
            host.error, host.decision, host.observed = None, None, {}
        woken = wake_sleepers(self.loaded(hosts), self._sink)
        work.look(chosen, self._own_directory(), sink=self._sink)
        for host in chosen:
            if host.error is not None and host.host in woken:
                host.error = with_waking(host.error, woken[host.host])
        return {host.host: _seen(host) for host in chosen}

    def keep(self, hosts: Sequence[str]) -> None:
        """Keep the wanted state of each host beside the journal."""
        place = self._place / _WANTED
        place.mkdir(mode=0o700, exist_ok=True)
        for name in hosts:
            temporary = place / f".{name}.{secrets.token_hex(8)}"
            write_private(temporary, json.dumps(self._hosts[name].variables["llamarig_wanted"]))
            temporary.replace(place / f"{name}.json")
        sync_directory(place)

    def apply(self, hosts: Sequence[str], *, prove: bool) -> dict[str, Result]:
        """One ansible-playbook over the hosts."""
        chosen = [self._hosts[name] for name in hosts]
        options = work.Options(
            verify=prove,
            break_lock=self._options.break_lock,
            become_password_file=self._options.become_password_file,
        )
        started = time.monotonic()
        run = work.converge(chosen, self._own_directory(), options, self._sink)
        seconds = round(time.monotonic() - started, 1)
        return {host.host: _result(host.host, run, seconds, host.error) for host in chosen}

    def may_reboot(self, hosts: Sequence[str]) -> dict[str, Reboot]:
        """One ansible-playbook over the hosts, which looks and decides."""
        asked = self._rebuilt(hosts)
        started = time.monotonic()
        run = rebuild.decide(asked, self._own_directory())
        return _reboots(asked, run, started)

    def reboot(self, hosts: Sequence[str]) -> dict[str, Reboot]:
        """One ansible-playbook over the hosts; each decides again before it goes down."""
        asked = self._rebuilt(hosts)
        started = time.monotonic()
        run = rebuild.reboot(asked, self._own_directory(), self._options, self._sink, allowed=True)
        return _reboots(asked, run, started)

    def _rebuilt(self, hosts: Sequence[str]) -> list[rebuild.Rebuilt]:
        for name in hosts:
            # Of the apply that ended for the reboot.
            self._hosts[name].error = None
        return [rebuild.Rebuilt(self._hosts[name]) for name in hosts]

    def back(self, hosts: Sequence[str]) -> dict[str, Result]:
        """One ansible-playbook over the hosts."""
        started = time.monotonic()
        variables = {name: self._hosts[name].variables for name in hosts}
        extra = {"llamarig_break_lock": self._options.break_lock}
        run = run_playbook("rollback", variables, self._own_directory(), sink=self._sink, extra=extra)
        seconds = round(time.monotonic() - started, 1)
        return {name: _result(name, run, seconds) for name in hosts}

    def _own_directory(self) -> Path:
        """A run of Ansible leaves files of fixed names, so each gets a directory of its own."""
        path = self._private / str(next(self._runs))
        path.mkdir(mode=0o700)
        return path


def _reboots(asked: Sequence[rebuild.Rebuilt], run: Run, started: float) -> dict[str, Reboot]:
    seconds = round(time.monotonic() - started, 1)
    found = {}
    for host in asked:
        decided = as_map(host.reboot)
        found[host.host] = Reboot(
            verdict=as_text(decided.get("verdict")) or "",
            needed=tuple(as_texts(decided.get("needed"))),
            why=tuple(as_texts(decided.get("why"))),
            made=host.rebooted,
            result=_result(host.host, run, seconds, host.error),
        )
    return found


def _as_one(errors: Sequence[RigError]) -> RigError:
    """Every reason why a host is refused, as the one error that it has."""
    if len(errors) == 1:
        return errors[0]
    code = max(error.code for error in errors)
    return RigError("; ".join(error.what for error in errors), errors[0].where, fix=errors[0].fix, code=code)


def _seen(host: work.HostApply) -> Seen:
    observed = host.observed
    current = as_text(observed.get("current")) or ""
    units = as_map(observed.get("units"))
    return Seen(
        error=host.error,
        reached=bool(observed),
        release=current.removeprefix("releases/") or None,
        run=as_text(as_map(observed.get("record")).get("run")),
        former_run=as_text(as_map(observed.get("former")).get("run")),
        actions=len(host.decision.actions) if host.decision else 0,
        restarts=len(host.running),
        up=frozenset(name for name, unit in units.items() if as_map(unit).get("active") == "active"),
        unfinished=observed.get("unfinished") is not None,
        locked=held_by(observed),
        builds=_builds(host),
        waits=rebuild.waits_for_reboot(host),
        seconds=host.seconds,
        observed=observed,
    )


def _builds(host: work.HostApply) -> str:
    release = host.variables["llamarig_wanted"]["release"]
    at_work = host.decision is not None and "release" in host.decision.todo
    return str(release["id"]) if at_work and not release.get("artifact") else ""


def _ends(observed: dict[str, Any], deadline: float) -> bool:
    """Wait for the process of this machine that holds a host's lock; whether it has ended."""
    lock = dict(as_map(observed.get("lock")))
    if lock.get("machine") != machine():
        return False
    while not (gone := is_gone(lock)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return gone


def _result(host: str, run: Run, seconds: float, error: RigError | None = None) -> Result:
    outcome = run.hosts[host]
    failures = outcome.failures
    if error is None and failures:
        error = explain_all(host, failures)
    elif error is None and not outcome.ran:
        error = RigError("Ansible ended early", host, run.messages[-4000:], code=ExitCode.HOST_FAILED)
    record = as_map(as_map(outcome.results.get("rig_record")).get("record"))
    reached = all(failure.get("status") != "unreachable" for failure in failures)
    return Result(
        error=error,
        reached=reached,
        # A host that is lost while it is asked for its lock may have given it: that is no refusal.
        untouched=reached and bool(failures) and failures[0].get("action") == "rig_lock",
        at_driver=any(each.get("role") == _DRIVER and each.get("action") == "fail" for each in failures),
        checks=_checks(outcome),
        changed=outcome.changed,
        seconds=seconds,
        run=as_text(record.get("run")),
        release=as_text(record.get("release")),
    )


def _checks(outcome: HostOutcome) -> dict[str, Any]:
    """The proof of the change: where it failed, not the one of the state that was gone back to."""
    made = as_map(outcome.results.get("rig_prove")).get("checks")
    if outcome.failures:
        proofs = (failure for failure in outcome.failures if failure.get("action") == "rig_prove")
        made = as_map(as_map(next(proofs, None)).get("result")).get("checks")
    if not isinstance(made, list) or not made:
        return {}
    failed = [str(check.get("name")) for check in made if not check.get("ok")]
    return {"passed": len(made) - len(failed), "of": len(made), "failed": failed[:_MOST_NAMES]}
