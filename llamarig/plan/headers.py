"""Gathers the headers that a spec's plan needs."""

from __future__ import annotations

from pathlib import Path

from llamarig.catalog.known_files import table
from llamarig.gguf import Header, default_cache, find_header
from llamarig.plan.host import plan_known
from llamarig.plan.measured import read_measured
from llamarig.plan.types import Plan
from llamarig.spec.host import HostSpec


def gather_headers(spec: HostSpec, project_root: Path, cache: Path | None = None) -> dict[str, Header | None]:
    """The headers of all models and projectors of ``spec``, as far as they are at hand.

    Raises :class:`RigError` when a sidecar or file is there and wrong.
    """
    cache = default_cache() if cache is None else cache
    headers: dict[str, Header | None] = {}
    for name, model in spec.models.items():
        headers[name] = find_header(model, project_root, cache)
        if model.projector is not None:
            headers[f"{name}/projector"] = find_header(model.projector, project_root, cache)
    return headers


def plan_project(spec: HostSpec, project_root: Path, *, cache: Path | None = None) -> Plan:
    """Plan ``spec`` with whatever headers the project and the cache hold, and what was measured on the host."""
    measured = read_measured(project_root, spec.host)
    return plan_known(spec, gather_headers(spec, project_root, cache), table(project_root), measured=measured)
