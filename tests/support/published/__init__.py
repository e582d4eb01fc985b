"""What other people's servers printed, and the same computed.

``tests/fixtures/published/cases.yml`` holds the figures, and says what its keys mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from llamarig.memory import Settings
from llamarig.memory.engines import ERAS, of_version

CASES = Path(__file__).resolve().parents[2] / "fixtures/published/cases.yml"

Figure = float | tuple[float, ...]
"""MiB over all cards, or on each."""


@dataclass(frozen=True)
class Case:
    """One server of one report."""

    number: int
    what: str
    source: str
    settings: Settings
    model: str = ""
    """Empty: it cannot be computed."""
    part: str = ""
    keys: dict[str, int] = field(default_factory=dict)
    vocabulary: int = 0
    embedding: str = ""
    quant: str = ""
    tensors: dict[str, float] = field(default_factory=dict)
    held: dict[str, Figure] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    """Why a published figure is not held."""
    why: dict[str, str] = field(default_factory=dict)
    """Why a held figure is missed."""
    over: str = ""
    """Name of the case that ``increase`` is reckoned from."""
    projector: int = 0
    """Bytes of the projector's file."""
    tolerance: float = 0.01
    residue: tuple[float, ...] = ()
    """MiB of each card that the driver reported beyond the buffers."""

    @property
    def name(self) -> str:
        return f"{self.number} {self.part}".strip()


def _figure(value: Any) -> Figure:
    return tuple(float(item) for item in value) if isinstance(value, list) else float(value)


def _settings(entry: dict[str, Any]) -> Settings:
    """The server's settings; the fit tool reserves logits for a whole pass whatever the era."""
    given = dict(entry["settings"])
    if "tensor_split" in given:
        given["tensor_split"] = tuple(float(share) for share in given["tensor_split"])
    era = of_version(entry.get("engine")).era
    if "era" in entry:
        era = next(each for each in ERAS if each.name == entry["era"])
    if entry.get("whole-logits"):
        era = replace(era, outputs_only=False)
    return Settings(**given, era=era)


def _case(entry: dict[str, Any]) -> Case:
    return Case(
        number=entry["case"],
        what=entry["what"],
        source=entry["source"],
        settings=_settings(entry),
        model=entry.get("model", ""),
        part=str(entry.get("part", "")),
        keys=entry.get("keys", {}),
        vocabulary=entry.get("vocabulary", 0),
        embedding=entry.get("embedding", ""),
        quant=entry.get("quant", ""),
        tensors=entry.get("tensors", {}),
        held={term: _figure(value) for term, value in entry.get("held", {}).items()},
        seen={term: found["reason"] for term, found in entry.get("seen", {}).items()},
        why=entry.get("why", {}),
        over=str(entry.get("over", "")),
        projector=entry.get("projector", 0),
        tolerance=entry.get("tolerance", 0.01),
        residue=tuple(float(mib) for mib in entry.get("residue", [])),
    )


def load() -> list[Case]:
    """All cases, in the order of the collection."""
    return [_case(entry) for entry in yaml.safe_load(CASES.read_text(encoding="utf-8"))]
