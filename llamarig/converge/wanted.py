"""From a spec to what its host shall be: headers, plan, wanted state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llamarig.converge.mirror.adopt import held_release
from llamarig.spec.problem import combined

if TYPE_CHECKING:
    from llamarig.plan.types import Plan
    from llamarig.render.wanted import Wanted
    from llamarig.spec.host import HostSpec
    from llamarig.spec.load import LoadedHost


def spec_of(loaded: LoadedHost) -> HostSpec:
    """The spec of a host; :class:`~llamarig.errors.RigError` with all that is wrong when it has errors."""
    if loaded.spec is None:
        raise combined(loaded.errors, loaded.path)
    return loaded.spec


def plan_for(project_root: Path, loaded: LoadedHost) -> Plan:
    """Plan a host from the headers that are at hand; one that is not gives a finding, never an error."""
    from llamarig.plan import plan_project  # noqa: PLC0415 - planning is heavy, many verbs do without

    return plan_project(spec_of(loaded), project_root)


def wanted_for(project_root: Path, loaded: LoadedHost, plan: Plan | None = None) -> Wanted:
    """The wanted state of a host; plans it unless ``plan`` is given.

    A release that the controller holds is copied: the host then needs neither compiler nor toolkit.
    """
    from llamarig.render import wanted_state  # noqa: PLC0415 - rendering is heavy, many verbs do without
    from llamarig.render.build import copied  # noqa: PLC0415 - rendering is heavy

    wanted = wanted_state(spec_of(loaded), plan or plan_for(project_root, loaded), project_root)
    held = held_release(spec_of(loaded), project_root)
    return wanted if held is None else copied(wanted, held.sha256, held.size)
