"""The presets of a router: one section for each model that it chooses from.

What all models share is on the router's own command line, which its children inherit and which wins over the file.
Source: "Model presets" in tools/server/README.md, ``parse_ini_from_file`` in common/preset.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass

from llamarig.plan.places import model_path
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service


@dataclass(frozen=True, slots=True)
class Preset:
    """One model of a router: its name in requests, and the arguments that are its own."""

    model: str
    arguments: tuple[tuple[str, str], ...]


def presets(spec: HostSpec, service: Service, offload: bool) -> tuple[Preset, ...]:
    """The models of a service's router in the spec's order; none for a server of one model.

    ``offload`` tells whether projectors go to a card.
    """
    if service.router is None:
        return ()
    found = []
    for name in service.router.models:
        arguments = [("model", model_path(spec, name))]
        projector = spec.models[name].projector
        if projector is not None:
            arguments.append(("mmproj", model_path(spec, name, projector)))
            arguments.append(("mmproj-offload", "true" if offload else "false"))
        found.append(Preset(name, tuple(arguments)))
    return tuple(found)
