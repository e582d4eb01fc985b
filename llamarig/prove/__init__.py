"""Checks that the running services are what was planned: pure functions over what was observed and probed."""

from llamarig.prove.check import Check
from llamarig.prove.evaluate import evaluate
from llamarig.prove.services import probe_services

__all__ = ["Check", "evaluate", "probe_services"]
