"""The spec of the machine as it is found, and what llamarig plans and renders for it."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from llamarig.catalog.gpus import Card as Known
from llamarig.catalog.gpus import cards as catalog
from llamarig.converge.wanted import plan_for, spec_of, wanted_for
from llamarig.paths import data_root
from llamarig.plan.headers import gather_headers
from llamarig.plan.types import Plan
from llamarig.prove.late_rows import late_rows_mib
from llamarig.render.wanted import Wanted
from llamarig.spec.load import LoadedHost, load_project
from scripts.gpu_check.smi import Card
from scripts.gpu_check.words import CannotAskError

HOST = "gpu-check"
GPU = "card"
SMOL, MTP = "gpu-check-smol", "gpu-check-mtp"
"""Services; no unit of a real service bears such a name."""
PORTS = {SMOL: 38471, MTP: 38472}
MODELS = "/srv/llamarig-gpu-check/models"
"""In the spec, which takes no directory below /home or /tmp; where they really lie says :class:`serve.Place`."""
TINY = "tiny-qwen35-mtp.gguf"
_SYSTEMS = ("debian 12", "debian 13", "ubuntu 24.04")


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the check works with."""

    root: Path
    loaded: LoadedHost
    plan: Plan
    wanted: Wanted
    late_mib: dict[str, float]
    """MiB of each service that are planned, but not yet there when the engine prints its lines."""


def reference() -> dict[str, Any]:
    """The demo's spec: engine and model come from there, pinned."""
    spec: dict[str, Any] = yaml.safe_load((data_root() / "inventory" / "demo.yml").read_text(encoding="utf-8"))
    return spec


def system(os_release: Path = Path("/etc/os-release")) -> str:
    """``debian 13`` of this machine."""
    pairs = dict(line.split("=", 1) for line in os_release.read_text().splitlines() if "=" in line)
    return f"{pairs.get('ID', '')} {pairs.get('VERSION_ID', '')}".replace('"', "")


def planned_as(card: Card) -> tuple[str, Known, bool]:
    """The catalog's name and facts of a card, and whether it is this very one.

    One that the catalog does not know is planned as the nearest by memory among those of its compute capability.
    """
    exact = [(name, known) for name, known in catalog().items() if _same_name(known.name, card.name)]
    near = [(name, known) for name, known in catalog().items() if known.compute_capability == card.capability]
    found = exact or near
    if not found:
        raise CannotAskError(
            f"the catalog knows no card of compute capability {card.capability} ({card.name})",
            "add the card to llamarig/catalog/gpus.yml, with its source",
        )
    name, known = min(found, key=lambda pair: abs(pair[1].total_mib - card.total_mib))
    return name, known, bool(exact)


def _same_name(one: str, other: str) -> bool:
    return " ".join(one.lower().replace("nvidia", "").split()) == " ".join(other.lower().replace("nvidia", "").split())


def compose(card: Card | None, toolkit: dict[str, Any] | None, smol: Path, tiny: dict[str, Any]) -> dict[str, Any]:
    """The spec of this machine; ``card`` is None for a rehearsal on the cpu backend."""
    base = reference()
    runs = system()
    # What is not known builds with a compiler as old as Debian 12's, or older: every toolkit takes that.
    distribution, _, release = (runs if runs in _SYSTEMS else "debian 12").partition(" ")
    common: dict[str, Any] = {} if card is None else {"gpu": GPU}
    spec: dict[str, Any] = {
        "schema-version": 1,
        "host": HOST,
        "connection": {"type": "local"},
        "os": {"distribution": distribution, "release": release},
        # Nothing here speaks TLS, and its headers are one thing less to install.
        "engine": {**base["engine"], "backend": "cpu", "build": {"openssl": False}},
        "models-dir": MODELS,
        "models": {
            "smol": {
                "controller-path": str(smol),
                "sha256": base["models"]["smol"]["sha256"],
                "size": base["models"]["smol"]["size"],
                "fetch": "controller",
            },
            "tiny": {**tiny, "fetch": "controller"},
        },
        "services": {
            SMOL: {"model": "smol", "context": 4096, "parallel": 2, "listen": {"port": PORTS[SMOL]}, **common},
            MTP: {
                "model": "tiny",
                "context": 8192,
                "parallel": 1,
                "speculation": {"type": "draft-mtp", "n-max": 4},
                "listen": {"port": PORTS[MTP]},
                **common,
            },
        },
    }
    if card is not None:
        name, known, _ = planned_as(card)
        spec["gpus"] = {GPU: {"model": name, "bus-id": card.bus_id, "uuid": card.uuid}}
        spec["engine"] |= {"backend": "cuda", "architectures": [f"{known.architecture}-real"]}
        spec["cuda"] = toolkit
    return spec


def prepare(root: Path, spec: dict[str, Any]) -> Prepared:
    """Plan and render it. Raises :class:`CannotAskError` with what the spec's own check refuses."""
    inventory = root / "inventory"
    inventory.mkdir(parents=True, exist_ok=True)
    (inventory / f"{HOST}.yml").write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    loaded = load_project(root).named(HOST)
    if loaded.errors:
        told = "; ".join(f"{problem.message} ({problem.fix})" for problem in loaded.errors)
        raise CannotAskError(f"llamarig refuses such a machine: {told}", "mend what it names, or name another toolkit")
    plan, host = plan_for(root, loaded), spec_of(loaded)
    headers = gather_headers(host, root)
    late = {name: late_rows_mib(host, each, headers) for name, each in host.services.items()}
    return Prepared(root, loaded, plan, wanted_for(root, loaded, plan), late)


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def ram_mib() -> float:
    """The machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def kernel() -> str:
    """The kernel that runs."""
    return platform.release()
