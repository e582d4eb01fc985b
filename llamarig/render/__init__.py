"""The wanted state of a host as files and plain data: units, probe, release, models, credentials."""

from llamarig.render.assemble import wanted_state

__all__ = ["wanted_state"]
