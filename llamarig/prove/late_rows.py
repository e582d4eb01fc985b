"""Rows of output that a plan has and a server's start has not: the host's buffer grows with what is asked.

A context begins with one row of logits a slot. Rows of a draft come with the first draft; the target's rows, which an
MTP head or a drafter reads, and the drafter's answers with the first batch. Source: ``output_reserve`` in
src/llama-context.cpp.
"""

from __future__ import annotations

from llamarig.errors import RigError
from llamarig.memory import read_shape
from llamarig.memory.draft_outputs import draft_output_bytes, reader_output_bytes
from llamarig.memory.drafter import drafter_settings
from llamarig.memory.logits import logit_bytes
from llamarig.memory.units import MIB
from llamarig.plan.load import Headers
from llamarig.plan.settings import settings_of
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service


def late_rows_mib(spec: HostSpec, service: Service, headers: Headers) -> float:
    """MiB of the compute terms that no line of a start shows; 0 where the header is not at hand, or does not fit."""
    header = headers.get(service.model)
    if header is None:
        return 0.0
    try:
        shape, settings = read_shape(header), settings_of(spec, service)
    except RigError:
        return 0.0
    first = logit_bytes(shape, settings, settings.parallel)
    late = logit_bytes(shape, settings) - first
    if drafted := draft_output_bytes(shape, settings):
        late += drafted - first
    drafter = headers.get(service.speculation.model or "") if service.speculation else None
    if drafter is not None:
        late += reader_output_bytes(drafter, read_shape(drafter), shape, drafter_settings(settings))
    return late / MIB
