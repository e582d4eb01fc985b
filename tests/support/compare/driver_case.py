"""A host of the CUDA backend with a driver, as its spec wants it."""

from __future__ import annotations

from pathlib import Path

from llamarig.render import driver as rendered
from llamarig.render.wanted import WantedDriver
from tests.support.compare.cases import Case, observation
from tests.support.docs.refusals import spec_of


def wanted_driver(flavour: str = "open") -> WantedDriver | None:
    """What the spec's driver of that flavour is on the host."""
    spec, _ = spec_of("cuda", f"driver: {{flavour: {flavour}}}")
    return rendered.driver(spec, Path("/nowhere"))


def driver_case() -> Case:
    """The host with its open driver, and an observation of it in which all is as wanted."""
    made = Case()
    made.want(driver=wanted_driver())
    made.observed = observation(made.wanted)
    return made
