"""Plans many hosts: each by itself, on all cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from llamarig.errors import RigError
from llamarig.plan.headers import plan_project
from llamarig.plan.types import Plan
from llamarig.spec.host import HostSpec

WORTHWHILE = 48
"""Hosts from which on further processes are worth their start."""
_PART = 16
"""Hosts that a process is handed at once."""

Result = TypeVar("Result")
_work: Callable[[int], Any] | None = None
"""What a child finds in its memory; specs are not copied to it one by one."""


def plan_projects(specs: Sequence[HostSpec], project_root: Path) -> list[Plan]:
    """A plan a spec, in their order.

    Raises the first error of a host whose headers or measurement cannot be read.
    """
    plans: list[Plan] = []
    for each in plan_each(specs, project_root):
        if isinstance(each, RigError):
            raise each
        plans.append(each)
    return plans


def plan_each(specs: Sequence[HostSpec], project_root: Path) -> list[Plan | RigError]:
    """A plan a spec, in their order, or the error of a host that cannot be planned; nothing is kept from one host to
    the next."""
    return on_all_cores(lambda number: _plan_or_error(specs[number], project_root), len(specs))


def on_all_cores(work: Callable[[int], Result], count: int) -> list[Result]:
    """What ``work`` says of every number below ``count``, in their order.

    Of few it is asked here, of many in forked children: what it reads is in their memory already, what it returns is
    copied back.
    """
    global _work  # noqa: PLW0603 - children are forked and read it; it lives for this call alone
    cores = len(os.sched_getaffinity(0))
    if count < WORTHWHILE or cores < 2 or "fork" not in multiprocessing.get_all_start_methods():  # noqa: PLR2004 - one core has nobody to share with
        return [work(number) for number in range(count)]
    _work = work
    try:
        with multiprocessing.get_context("fork").Pool(cores) as pool:
            return pool.map(_worked, range(count), chunksize=_PART)
    finally:
        _work = None


def _worked(number: int) -> Any:
    if _work is None:
        raise RuntimeError("a child has nothing to do")
    return _work(number)


def _plan_or_error(spec: HostSpec, project_root: Path) -> Plan | RigError:
    try:
        return plan_project(spec, project_root)
    except RigError as error:
        return error
