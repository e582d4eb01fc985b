"""What rig_probe is asked to look at, and one service as the checks see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llamarig.prove.fit_tool import fit_arguments
from llamarig.prove.hostile import integer, mapping, text
from llamarig.render.wanted import RELEASES


def probe_services(wanted: dict[str, Any], *, memory: bool = False) -> list[dict[str, Any]]:
    """The ``services`` argument of the module rig_probe for a wanted state (``Wanted.to_json()``).

    ``memory`` asks for the process's memory and the engine's fit tool as well.
    """
    key_files = {credential["service"]: credential["path"] for credential in wanted["credentials"]}
    return [
        {
            "name": service["name"],
            "unit": service["unit"],
            "address": service["address"],
            "port": service["port"],
            "tls": service["tls"],
            "key_file": key_files.get(service["name"], "") if service["keyed"] else "",
            "gpu": service["backend"] == "cuda",
            "release": f"{RELEASES}/{wanted['release']['id']}",
            "fit": fit_arguments(service["argv"]) if memory else [],
        }
        for service in wanted["services"]
    ]


@dataclass(frozen=True, slots=True)
class View:
    """One service: what is wanted of it, and all that was seen of the host and said by the server."""

    service: dict[str, Any]
    wanted: dict[str, Any]
    observed: dict[str, Any]
    probe: dict[str, Any]
    """This service's part of what was probed."""
    vram: dict[str, Any]
    before: dict[str, Any] | None = None
    """The observed units when this run began; None where the proof belongs to no run."""

    @property
    def unit(self) -> dict[str, Any]:
        """The observed state of its unit."""
        return mapping(self.observed, "units", self.service["unit"])

    @property
    def pid(self) -> int:
        """Its unit's main process, 0 when there is none."""
        return integer(self.unit, "main-pid") or 0

    @property
    def process(self) -> dict[str, Any]:
        """The observed main process."""
        return mapping(self.observed, "processes", str(self.pid))

    @property
    def release_dir(self) -> str:
        """Where the wanted release lies on the host."""
        return f"{RELEASES}/{self.wanted['release']['id']}"

    @property
    def release(self) -> dict[str, Any]:
        """The wanted release as it was observed."""
        return mapping(self.observed, "releases", self.wanted["release"]["id"])

    @property
    def provenance(self) -> dict[str, Any]:
        """sha256 per file of the release, by its provenance."""
        return mapping(self.release, "provenance", "files")

    @property
    def port_key(self) -> str:
        """How the observed state names its address."""
        return f"{self.service['address']}:{self.service['port']}"

    def said(self, what: str) -> dict[str, Any]:
        """The JSON object that the server answered to one question."""
        return mapping(self.probe, what, "json")

    def status(self, what: str) -> int | None:
        """The HTTP status of one answer, None when there was none."""
        return integer(self.probe, what, "status")

    def trouble(self, what: str) -> str:
        """Why there was no answer, or what the server said instead of a result."""
        answer = mapping(self.probe, what)
        error = mapping(answer, "json", "error")
        return text(answer, "error") or text(error, "message") or text(answer, "text") or "no answer"
