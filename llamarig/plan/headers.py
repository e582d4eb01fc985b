"""Gathers the headers that a spec's plan needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from llamarig.catalog.known_files import Table, table
from llamarig.gguf import Header, default_cache, find_header
from llamarig.plan.host import plan_known
from llamarig.plan.measured import read_measured
from llamarig.plan.stand_in import composed
from llamarig.plan.types import Plan
from llamarig.spec.host import HostSpec
from llamarig.spec.models import Model


def gather_headers(
    spec: HostSpec, project_root: Path, cache: Path | None = None, *, known: Table | None = None
) -> dict[str, Header | None]:
    """The headers of all models and projectors of ``spec``, as far as they are at hand.

    With ``known`` files, the header of a model that is one of them is composed where it is not at hand, and says so.
    Raises :class:`RigError` when a sidecar or file is there and wrong.
    """
    cache = default_cache() if cache is None else cache
    headers: dict[str, Header | None] = {}
    for name, model in spec.models.items():
        found = find_header(model, project_root, cache)
        headers[name] = _composed(model, known) if found is None and known is not None else found
        if model.projector is not None:
            headers[f"{name}/projector"] = find_header(model.projector, project_root, cache)
    return headers


def _composed(model: Model, known: Table) -> Header | None:
    """A header made of what the table knows of the model's file; None when that is not enough, and for shards."""
    size = model.size if isinstance(model.size, int) else None
    file = known.identify(sha256=model.sha256, repo=model.repo, file=model.file, size=size)
    if file is None or file.quant is None or model.shards:
        return None
    made = composed(known.models[file.model], file if size is None else replace(file, size=size))
    return None if made is None else replace(made, composed=True)


def plan_project(spec: HostSpec, project_root: Path, *, cache: Path | None = None) -> Plan:
    """Plan ``spec`` with what the project and the cache hold, and with what was measured on the host.

    Headers of known files that they do not hold are composed.
    """
    measured = read_measured(project_root, spec.host)
    known = table(project_root)
    return plan_known(spec, gather_headers(spec, project_root, cache, known=known), known, measured=measured)
