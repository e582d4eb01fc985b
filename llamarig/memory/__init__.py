"""The memory of a llama.cpp server, computed from a model's header: one file a term."""

from __future__ import annotations

from llamarig.memory.estimate import Beside, Estimate, estimate
from llamarig.memory.projector import projector_mib
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape, read_shape
from llamarig.memory.terms import TERMS

__all__ = ["TERMS", "Beside", "Estimate", "Settings", "Shape", "estimate", "projector_mib", "read_shape"]
