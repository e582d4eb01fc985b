"""Labels that a fleet's `rollout` goes by and that no host carries: a slip of the pen would choose other hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llamarig.spec.problem import SpecProblem
from llamarig.spec.rules.base import near

if TYPE_CHECKING:
    from llamarig.spec.fleet import Fleet
    from llamarig.spec.load import LoadedHost
    from llamarig.spec.rollout import Rollout


def uncarried(labels: Sequence[Mapping[str, str]], policy: Rollout) -> Iterator[tuple[str, str, str]]:
    """Key of the policy, what it comes to, and a fix, for each that none of the hosts with these ``labels`` carries."""
    marks = policy.canary_labels
    if policy.canary and marks and not any(marks.items() <= own.items() for own in labels):
        pairs = " and ".join(f"{name}={value}" for name, value in marks.items())
        message = f"no host carries {pairs}, so the canary is chosen by name"
        known = sorted({f"{name}={own[name]}" for own in labels for name in marks if name in own})
        fix = near(pairs, known) if known else f"give the host that is to go first the labels {pairs}"
        yield "canary-labels", message, fix
    if policy.by is not None and not any(policy.by in own for own in labels):
        message = f"no host carries the label {policy.by!r}, so the waves are spread over nothing"
        known = sorted({name for own in labels for name in own})
        yield "by", message, near(policy.by, known) if known else f"give the hosts labels: {{{policy.by}: NAME}}"


def uncarried_by(hosts: Sequence[LoadedHost], policy: Rollout) -> tuple[tuple[str, str], ...]:
    """Message and fix of each for hosts; nothing where a spec has errors, whose labels are not known."""
    labels = [each.spec.labels for each in hosts if each.spec is not None]
    return tuple(told[1:] for told in uncarried(labels, policy)) if len(labels) == len(hosts) else ()


def label_warnings(fleets: Mapping[Path, Fleet], hosts: Sequence[LoadedHost]) -> Iterator[SpecProblem]:
    """The same at its line, for each of these fleet files and the hosts below it that go by what it says.

    Where a spec has errors its labels are not known, and nothing is said.
    """
    for path, fleet in fleets.items():
        tree, policy = fleet.section_trees.get("rollout"), fleet.sections.rollout
        if tree is None or policy is None:
            continue
        ours = [each for each in hosts if path.parent in each.path.parents and _same(each.fleet.rollout, policy)]
        labels = [each.spec.labels for each in ours if each.spec is not None]
        if not ours or len(labels) < len(ours):
            continue
        for key, message, fix in uncarried(labels, policy):
            here = tree.child(key)
            values = here.value if here is not None else None
            for at in [*(values.values() if isinstance(values, dict) else []), here]:
                # What a fleet.yml further up says is told there.
                if at is not None and at.path == path:
                    yield SpecProblem(path, at.line, message, fix)
                    break


def _same(one: Rollout | None, other: Rollout) -> bool:
    """Whether both go by the same labels; a fleet.yml further down may say otherwise."""
    return one is not None and (one.canary_labels, one.by) == (other.canary_labels, other.by)


__all__ = ["label_warnings", "uncarried", "uncarried_by"]
