"""The sections of a fleet.yml beside ``defaults``; a new one is a field here, and nothing else."""

from __future__ import annotations

from llamarig.spec.base import SpecModel
from llamarig.spec.rollout import Rollout


class FleetSections(SpecModel):
    """What a fleet.yml says beside the defaults; like those, laid on what the directories above say."""

    rollout: Rollout | None = None
    """How a rollout goes over these hosts."""


NO_SECTIONS = FleetSections()
"""Where no fleet.yml says anything; a model is frozen, so that one serves all."""

SECTIONS = tuple(str(field.alias) for field in FleetSections.model_fields.values())
"""The keys of all sections."""

__all__ = ["NO_SECTIONS", "SECTIONS", "FleetSections"]
