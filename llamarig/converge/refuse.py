"""What apply refuses before it touches anything: unpinned, unbuilt, or not fitting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llamarig.converge.wanted import spec_of
from llamarig.errors import ExitCode, RigError
from llamarig.render.site import mirror_of, read_manifest

if TYPE_CHECKING:
    from llamarig.plan.types import Plan
    from llamarig.spec.host import HostSpec
    from llamarig.spec.load import LoadedHost


def refusals(loaded: LoadedHost, plan: Plan, project_root: Path) -> list[RigError]:
    """Why this host must not be applied; empty when it may."""
    from llamarig.spec.unbuilt import refused_by_apply  # noqa: PLC0415 - the spec's own rules, needed here only

    spec = spec_of(loaded)
    errors = [*refused_by_apply(spec), *_mirror(spec, project_root)]
    errors += [
        RigError(
            what=finding.message,
            where=f"{loaded.host}: {finding.subject}".rstrip(": "),
            fix=finding.fix,
            code=ExitCode.FINDING,
        )
        for finding in plan.findings
        if finding.severity == "error"
    ]
    if not plan.fits and not any(error.code == ExitCode.FINDING for error in errors):
        errors.append(
            RigError(
                what="the plan does not fit",
                where=loaded.host,
                fix=f"llamarig plan {loaded.host} shows by how much, and what would fit",
                code=ExitCode.FINDING,
            )
        )
    return errors


def _mirror(spec: HostSpec, project_root: Path) -> list[RigError]:
    """A mirror that the spec names and that is not there: what is looked for in it would come from elsewhere."""
    place = mirror_of(spec, project_root)["path"]
    try:
        if place:
            read_manifest(Path(place))
    except RigError as error:
        return [error]
    return []
