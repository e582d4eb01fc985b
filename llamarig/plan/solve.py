"""The largest value of one setting that fits, proven by the plan of one step more."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from llamarig.catalog.known_files import table
from llamarig.errors import RigError
from llamarig.plan.alternatives import Change, Replan, Subject
from llamarig.plan.alternatives.kinds import STEP, drafting, least_window, setting, trained_window
from llamarig.plan.alternatives.placing import file_change, identified, usable_files
from llamarig.plan.alternatives.search import Verdict, first_fitting
from llamarig.plan.alternatives.tries import Tries
from llamarig.plan.headers import gather_headers
from llamarig.plan.host import planned_subject
from llamarig.plan.measured import read_measured
from llamarig.plan.short import MEMORY_CODES, key, others, shortage
from llamarig.plan.types import Finding, Plan
from llamarig.spec.host import HostSpec
from llamarig.spec.models import Model
from llamarig.spec.service import Service

What = Literal["context", "quant", "n-max", "slots", "ubatch"]
WHATS: tuple[str, ...] = get_args(What)

_MOST_TOKENS = 16_777_216
_MOST_DRAFTS = 64
_MOST_SLOTS = 256
_LEAST_UBATCH = 32
"""Ends of what a spec may say; see llamarig/spec/service.py."""


@dataclass(frozen=True)
class Bound:
    """What keeps the value from being larger."""

    by: Literal["gpu", "ram", "trained-length", "spec", "batch", "files", "error"]
    where: str = ""
    """The card, for ``gpu``; what is wrong, for ``error``; the rule, for ``spec``, where it is one of several keys."""
    next: int | str | None = None
    """The next value, which does not fit; None where there is no next one."""
    short_mib: float = 0.0
    """What the next value is short of there."""

    def to_json(self) -> dict[str, Any]:
        """The documented form."""
        return {"by": self.by, "where": self.where, "next": self.next, "short-mib": round(self.short_mib, 2)}


@dataclass(frozen=True)
class Solution:
    """The answer for one service."""

    host: str
    service: str
    what: str
    value: int | str | None
    """None when not even the smallest value fits."""
    now: int | str | None
    bound: Bound
    change: dict[str, Any] = field(default_factory=dict)
    """What the spec must say, in its own keys."""
    free_mib: dict[str, float] = field(default_factory=dict)
    slot_context: int = 0
    """Tokens that one slot holds with the value."""
    findings: tuple[Finding, ...] = ()
    """What the plan of the value warns of as for the memory that it leaves."""

    def to_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "host": self.host,
            "service": self.service,
            "solve": self.what,
            "value": self.value,
            "now": self.now,
            "change": self.change,
            "free-mib": self.free_mib,
            "slot-context": self.slot_context,
            "bound": self.bound.to_json(),
            "findings": [finding.to_json() for finding in self.findings],
        }


@dataclass(frozen=True)
class _Domain:
    """The values of a setting, largest first."""

    count: int
    value: Callable[[int], int | str]
    change: Callable[[int], Change]
    now: int | str | None
    end: Bound
    """What bounds the largest value."""
    runs: tuple[range, ...] = ()
    """Stretches of values, largest first, within which memory falls from each to the next; one when none is given."""


def solve(subject: Subject, replan: Replan, what: str, service: str | None = None) -> Solution:
    """The largest ``what`` of a service with which the whole host fits and whose spec ``check`` accepts.

    Everything else stays as the spec has it, but an ``n-min`` above the n-max, which comes down with it. The value is
    planned, and so is the next one, which does not fit. Raises :class:`RigError` when the service has no
    such setting or its model's header is not at hand, for then nothing could be proven.
    """
    spec = subject.spec
    require_what(what)
    name = _service(spec, service)
    if subject.header(name) is None:
        raise RigError(
            what=f"the header of model {spec.services[name].model} is not at hand, so nothing can be solved",
            fix=f"run `llamarig lock {spec.host}`, which stores the header under headers/",
        )
    return _largest(subject, (name, what), _DOMAINS[what](subject, name), Tries(subject, replan))


def solve_project(spec: HostSpec, project_root: Path, what: str, service: str | None = None) -> Solution:
    """The same, with what the project holds: headers, measurements, known files."""
    known, measured = table(project_root), read_measured(project_root, spec.host)
    headers = gather_headers(spec, project_root, known=known)
    return solve(*planned_subject(spec, headers, known=known, measured=measured), what, service)


def require_what(what: str) -> None:
    """Raise :class:`RigError` when ``what`` is no setting that can be solved for."""
    if what not in WHATS:
        near = difflib.get_close_matches(what, WHATS, n=2, cutoff=0.4) or WHATS
        raise RigError(what=f"nothing can be solved for {what!r}", fix=f"use {' or '.join(near)}")


def _service(spec: HostSpec, name: str | None) -> str:
    if name is None:
        if len(spec.services) == 1:
            return next(iter(spec.services))
        raise RigError(
            what=f"{spec.host} has {len(spec.services)} services", why=", ".join(spec.services),
            fix="say which one: --service NAME",
        )  # fmt: skip
    if name not in spec.services:
        near = difflib.get_close_matches(name, spec.services, n=3, cutoff=0.4) or list(spec.services)
        raise RigError(what=f"{spec.host} has no service {name!r}", fix=f"did you mean {' or '.join(near)}?")
    return name


def _largest(subject: Subject, asked: tuple[str, str], domain: _Domain, tries: Tries) -> Solution:
    name, what = asked

    def found(value: int | str | None, bound: Bound, change: Change | None = None) -> Solution:
        if change is None:
            return Solution(subject.spec.host, name, what, value, domain.now, bound)
        plan = tries.plan((change,))
        free, slot = tries.sizes(plan)["free-mib"], plan.services[name].context
        told = tuple(each for each in plan.findings if each.code in _LEFT and each.severity == "warning")
        return Solution(subject.spec.host, name, what, value, domain.now, bound, change.shown, free, slot, told)

    def verdict(at: int) -> Verdict:
        return tries.verdict((domain.change(at),))

    runs = domain.runs or (range(domain.count),)
    best = next((at for run in runs if (at := _first(run, verdict)) is not None), None)
    if best == 0:
        return found(domain.value(0), domain.end, domain.change(0))
    beyond = domain.count - 1 if best is None else best - 1
    refused = tries.refused((domain.change(beyond),))
    plan = tries.plan((domain.change(beyond),))
    bound = Bound("spec", refused, domain.value(beyond)) if refused else _bound(subject, plan, domain.value(beyond))
    return found(None, bound) if best is None else found(domain.value(best), bound, domain.change(best))


def _first(run: range, verdict: Callable[[int], Verdict]) -> int | None:
    """The first number of a run that fits; what is returned was planned, and so was the one before it."""
    if not verdict(run[-1]).fits:
        return None
    top = verdict(run[0])
    if top.fits:
        return run[0]
    at = first_fitting(len(run) - 1, lambda at: verdict(run[at + 1]), min(top.short_mib, _LARGE))
    return None if at is None else run[at + 1]


_LARGE = 1e8

_LEFT = frozenset({"thin-margin", "memory-grows"})
"""Findings that speak of what a plan leaves free."""


def _bound(subject: Subject, plan: Plan, value: int | str) -> Bound:
    """What the next value is short of, and where most."""
    errors = [finding for finding in plan.findings if finding.severity == "error"]
    before = others(subject.plan)
    other = next((each for each in errors if each.code not in MEMORY_CODES and key(each) not in before), None)
    if other is not None:
        return Bound("error", f"{other.code}: {other.message}", value)
    (kind, where), short = max(shortage(subject.spec, plan).items(), key=lambda item: item[1])
    return Bound("ram" if kind == "ram" else "gpu", where, value, short)


def _context(subject: Subject, name: str) -> _Domain:
    service = subject.spec.services[name]
    trained = trained_window(subject, name)
    least = least_window(service)
    longest = max(min(trained, _MOST_TOKENS) or _MOST_TOKENS, least)

    def value(at: int) -> int:
        return longest - at * STEP

    def change(at: int) -> Change:
        return Change(name, {"context": value(at)}, "", setting(context=value(at)))

    end = Bound("trained-length" if trained else "spec")
    return _Domain((longest - least) // STEP + 1, value, change, service.context, end)


def _n_max(subject: Subject, name: str) -> _Domain:
    now = subject.spec.services[name].speculation
    if now is None:
        raise RigError(what=f"service {name} has no speculation", fix="add `speculation: {type: draft-mtp}` first")

    def change(at: int) -> Change:
        return drafting(name, now, _MOST_DRAFTS - at)

    return _Domain(_MOST_DRAFTS, lambda at: _MOST_DRAFTS - at, change, now.n_max, Bound("spec"))


def _slots(subject: Subject, name: str) -> _Domain:
    service = subject.spec.services[name]
    most = _MOST_SLOTS if service.kv_unified else max(min(_MOST_SLOTS, service.context // STEP), 1)

    def change(at: int) -> Change:
        return Change(name, {"parallel": most - at}, "", setting(parallel=most - at))

    # Fewer slots may take more: parts of the window and the tokens that each has in a pass are rounded.
    end = Bound("spec", "" if most == _MOST_SLOTS else f"{STEP} tokens a slot")
    single = tuple(range(at, at + 1) for at in range(most))
    return _Domain(most, lambda at: most - at, change, service.parallel, end, single)


def _ubatch(subject: Subject, name: str) -> _Domain:
    service: Service = subject.spec.services[name]
    sizes = [service.batch]
    power = _LEAST_UBATCH
    while power < service.batch:
        sizes.insert(1, power)
        power *= 2

    def change(at: int) -> Change:
        return Change(name, {"ubatch": sizes[at]}, "", setting(ubatch=sizes[at]))

    return _Domain(len(sizes), sizes.__getitem__, change, service.ubatch, Bound("batch"))


def _naming(model: Model) -> str:
    """What makes the files of a model known."""
    if model.repo is not None:
        return "`llamarig lock --known-files` asks the hub for the files of the repositories that the specs name"
    return (
        "give the model's `repo`, `revision` and `file` instead of its present source, or solve for context, "
        "slots or ubatch: only of a repository on the hub can the other files be asked for"
    )


def _quant(subject: Subject, name: str) -> _Domain:
    service = subject.spec.services[name]
    model = subject.spec.models[service.model]
    own = identified(subject, model)
    if own is None or model.shards:
        raise RigError(
            what=f"the file of model {service.model} is none that the catalog knows, so no other quant can be named",
            fix=_naming(model),
        )
    files = usable_files(subject, service, own)
    files.sort(key=lambda each: -each.most_bytes)
    return _Domain(
        len(files),
        lambda at: f"{files[at].repo}/{files[at].file}",
        lambda at: file_change(subject, name, own, files[at]),
        f"{own.repo}/{own.file}",
        Bound("files"),
    )


_DOMAINS: dict[str, Callable[[Subject, str], _Domain]] = {
    "context": _context,
    "quant": _quant,
    "n-max": _n_max,
    "slots": _slots,
    "ubatch": _ubatch,
}
