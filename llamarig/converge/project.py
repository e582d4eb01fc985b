"""The variables of a host for plain ``ansible-playbook``: planned here, refused there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.converge.hosts import host_variables
from llamarig.converge.refuse import refusals
from llamarig.converge.wanted import plan_for, wanted_for

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost


def project_variables(root: Path, loaded: LoadedHost, private: Path) -> dict[str, Any]:
    """What :func:`host_variables` gives, and in ``llamarig_refused`` why the host must not be applied.

    The refusal is a variable, not an error, so that looking at a host (drift) works before everything is pinned.
    """
    plan = plan_for(root, loaded)
    variables = host_variables(root, loaded, wanted_for(root, loaded, plan), private)
    refused = "\n".join(str(error) for error in refusals(loaded, plan, root))
    return {**variables, "llamarig_refused": refused}
