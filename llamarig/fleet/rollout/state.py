"""What a rollout's journal says: every record folded into one state. Whoever shows a rollout reads this alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llamarig.compare.text import printable
from llamarig.errors import RigError
from llamarig.fleet.rollout import journal
from llamarig.fleet.rollout.form import Form

PENDING, OBSERVING, APPLYING, RETURNING = "pending", "observing", "applying", "returning"
NOTHING, DONE, FAILED, ROLLED_BACK = "nothing-to-do", "done", "failed", "rolled-back"
DEFERRED, UNREACHABLE = "deferred", "unreachable"
REBOOTING = "rebooting"
REFUSED = "refused"
"""Its spec must not be applied, so it was not even looked at; `resume` takes it up once that is mended."""
AT_WORK = (APPLYING, RETURNING, REBOOTING)
"""Phases in which a host is worked on: a controller that died then leaves it in the middle."""
PHASES = (PENDING, OBSERVING, *AT_WORK, NOTHING, DONE, FAILED, ROLLED_BACK, DEFERRED, UNREACHABLE, REFUSED)
SETTLED = frozenset({NOTHING, DONE, FAILED, ROLLED_BACK})
"""Phases in which a rollout leaves a host for good; every other one is taken up again by ``resume``."""

WAITS, BEGUN, MADE = "waits", "begun", "made"
"""Of a reboot that a host's change needs: it is left for later, was begun, came true."""
REBOOTS = ("", WAITS, BEGUN, MADE)

RUNNING, PAUSED, STOPPED, ABORTED, INCOMPLETE, ENDED = "running", "paused", "stopped", "aborted", "incomplete", "done"
ROLLING_BACK, BACK = "rolling-back", "rolled-back"
FLAWED = "done-with-failures"
"""Every host had its turn, and no more failed than may."""
OVER = frozenset({STOPPED, ABORTED, ENDED, FLAWED, BACK})
"""Statuses after which a rollout does not go on forwards."""
STATUSES = (RUNNING, PAUSED, ROLLING_BACK, INCOMPLETE, *sorted(OVER))
_STATUS = {
    "rollout-started": RUNNING,
    "resumed": RUNNING,
    "paused": PAUSED,
    "stopped": STOPPED,
    "aborted": ABORTED,
    "rollback-started": ROLLING_BACK,
}
_KEPT = {
    "reason": "reason",
    "from-release": "from_release",
    "to-release": "to_release",
    "run": "run",
    "before-run": "before_run",
    "former-run": "former_run",
    "checks": "checks",
    "seconds": "seconds",
    "actions": "actions",
    "changed": "changed",
    "spec": "spec",
    "wanted": "wanted",
    "reboot": "reboot",
}
"""Keys of a host's record, and the field of :class:`HostState` that keeps the last one told."""


@dataclass
class HostState:
    """One host on its way through a rollout."""

    phase: str = PENDING
    reason: str = ""
    from_release: str | None = None
    """What ran before; None until it was looked at, or where nothing did."""
    to_release: str | None = None
    run: str | None = None
    """The run of llamarig that the host's record names since it was done."""
    before_run: str | None = None
    """The one that its record named before."""
    former_run: str | None = None
    """The run of the state that it would have gone back to before; empty without one, None where that was not told."""
    checks: dict[str, Any] = field(default_factory=dict)
    """``passed``, ``of``, and the names of those that ``failed``."""
    seconds: float | None = None
    actions: int | None = None
    changed: int | None = None
    between: bool = False
    """Whether a change of it was begun, and how that ended is not known: it has to be looked at before all else."""
    failed: bool = False
    """Whether it counts against the budget."""
    reboot: str = ""
    """How far the reboot is that its change needs: one of :data:`REBOOTS`; empty where none does."""
    spec: str = ""
    """Digest of the spec that was loaded at the start; empty while it is refused."""
    wanted: str = ""
    """Digest of the wanted state that was made of it."""
    done_at: int | None = None
    """Number of the record that said it was done: the order for a way back."""

    def to_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "phase": self.phase,
            "reason": self.reason,
            "from-release": self.from_release,
            "to-release": self.to_release,
            "checks": self.checks,
            "seconds": self.seconds,
            "actions": self.actions,
            "between": self.between,
            "failed": self.failed,
            "reboot": self.reboot,
        }

    @property
    def halfway(self) -> bool:
        """Whether nobody knows what it runs; one that waits for its reboot runs what it ran."""
        return self.between and self.reboot != WAITS


@dataclass
class Wave:
    """Hosts that are changed together."""

    name: str
    hosts: list[str]


@dataclass
class State:
    """A rollout as its journal tells it."""

    id: str = ""
    status: str = RUNNING
    reason: str = ""
    """Why it stopped, was paused or aborted."""
    waves: list[Wave] = field(default_factory=list)
    wave: str = ""
    """Name of the wave that was begun last."""
    hosts: dict[str, HostState] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    started_at: str = ""
    updated_at: str = ""
    by: str = ""
    records: int = 0

    @classmethod
    def read(cls, path: Path) -> State:
        """The state of the journal at ``path`` (or of the one in that directory)."""
        if not path.is_dir():
            return cls.fold(journal.read(path).records, str(path))
        file = path / journal.FILE
        state = cls.fold(journal.read(file).records, str(file))
        if state.records and state.id != path.name:
            why = f"it is the journal of the rollout {printable(state.id, 60)!r}, in the directory of another"
            raise RigError("the journal is not understood", f"{file}:1", why, journal.FIX)
        return state

    @classmethod
    def fold(cls, records: Iterable[Mapping[str, Any]], where: str = "") -> State:
        """The state after ``records``, those of a journal from its first one on.

        Raises :class:`RigError` for one that is not of their form (:mod:`llamarig.fleet.rollout.form`), with the number
        of its line.
        """
        state, form = cls(), Form(PHASES, STATUSES)
        for number, record in enumerate(records, start=1):
            if flaw := form.flaw(record):
                place = f"{where}:{number}" if where else f"line {number}"
                why = f"the line is not of the form that this version of llamarig writes: {flaw}"
                raise RigError("the journal is not understood", place, why, journal.FIX)
            state.add(record)
        return state

    def add(self, record: Mapping[str, Any]) -> None:
        """Take in one more record; one that was read, or is about to be written."""
        event = str(record["event"])
        self.records += 1
        self.updated_at = str(record.get("at", ""))
        if event == "host":
            self._host(record)
        elif event == "wave":
            self.wave = str(record.get("name", ""))
        elif event == "rollout-started":
            self._start(record)
        elif event in ("finished", "rollback-finished"):
            self.status = str(record.get("status", ENDED))
        if event in _STATUS:
            self.status = _STATUS[event]
        if event == "resumed" and record.get("reboot"):
            self.options["reboot"] = True
        if event in _STATUS or event == "finished":
            self.reason = str(record.get("reason", ""))
        if self.status not in (RUNNING, ROLLING_BACK):
            # Nobody looks any more: a controller that died in the middle of a look has left them so.
            for host in self.hosts.values():
                host.phase = PENDING if host.phase == OBSERVING else host.phase

    def _start(self, record: Mapping[str, Any]) -> None:
        self.id, self.started_at = str(record.get("id", "")), self.updated_at
        self.by = str(record.get("by", ""))
        self.policy, self.options = dict(record.get("policy", {})), dict(record.get("options", {}))
        self.waves = [Wave(str(wave["name"]), list(wave["hosts"])) for wave in record.get("waves", [])]
        self.hosts = {
            str(name): HostState(
                spec=given.get("spec", ""), wanted=given.get("wanted", ""), to_release=given.get("to-release")
            )
            for name, given in record.get("hosts", {}).items()
        }

    def _host(self, record: Mapping[str, Any]) -> None:
        host = self.hosts.setdefault(str(record["host"]), HostState())
        phase = str(record["phase"])
        if phase in AT_WORK:
            host.between = True
        elif "between" in record:
            host.between = bool(record["between"])
        elif phase in SETTLED:
            host.between = False
        if phase == OBSERVING:
            host.reason = ""
        if phase == DONE:
            host.done_at = self.records
        host.phase = phase
        host.failed = host.failed or bool(record.get("failed"))
        for key, name in _KEPT.items():
            if key in record:
                setattr(host, name, record[key])

    def open(self) -> list[str]:
        """Hosts that are not settled, in the order of the waves."""
        ordered = [name for wave in self.waves for name in wave.hosts]
        return [name for name in ordered if self.hosts[name].phase not in SETTLED]

    @property
    def failures(self) -> int:
        """Hosts that count against the budget."""
        return sum(1 for host in self.hosts.values() if host.failed)

    @property
    def budget(self) -> dict[str, int]:
        """How many hosts may fail, and how many did."""
        return {"allowed": int(self.policy.get("failures", 0)), "used": self.failures}

    def to_json(self) -> dict[str, Any]:
        """The documented form of ``rollout status --json`` without the controller."""
        return {
            "id": self.id,
            "status": self.status,
            "reason": self.reason,
            "started-at": self.started_at,
            "updated-at": self.updated_at,
            "by": self.by,
            "wave": self.wave,
            "waves": [{"name": wave.name, "hosts": wave.hosts} for wave in self.waves],
            "hosts": {name: host.to_json() for name, host in self.hosts.items()},
            "budget": self.budget,
        }
