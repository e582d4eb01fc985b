"""One comparison with the engine's fit tool: settings to draw, the tool's command line, and what it prints."""

from __future__ import annotations

import json
import random
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from llamarig.gguf import Header
from llamarig.memory import Settings
from llamarig.memory.engines import of_version
from llamarig.memory.units import KV_TYPES, is_quantised
from llamarig.prove.fit_settings import columns
from tests.support.models.model import Model

_LINE = re.compile(r"^Host +(\d+) +(\d+) +(\d+) *$", re.MULTILINE)
BLOCK = 32
"""Elements of a block of every quantised cache type; heads must be whole blocks with flash attention."""


class Columns(NamedTuple):
    """What ``-fitp on`` prints for a device: whole MiB, rounded down."""

    weights: int
    context: int
    """KV caches and recurrent state."""
    compute: int

    @property
    def total(self) -> int:
        return sum(self)


@dataclass(frozen=True)
class Drawn:
    """Settings as the fit tool takes them; it knows no unified cache, and no speculation."""

    context: int
    ubatch: int
    batch: int
    parallel: int
    cache_k: str
    cache_v: str
    flash_attention: bool

    def settings(self, engine: str) -> Settings:
        """The same for llamarig's model of that engine."""
        return Settings(
            context=self.context,
            backend="cpu",
            ubatch=self.ubatch,
            batch=self.batch,
            parallel=self.parallel,
            cache_k=self.cache_k,
            cache_v=self.cache_v,
            flash_attention=self.flash_attention,
            era=of_version(engine).era,
        )

    def arguments(self, path: str) -> list[str]:
        """The tool's command line. Repacked weights would be left out of the Host row, so none are."""
        words = ["-m", path, "-c", self.context, "-ub", self.ubatch, "-b", self.batch, "-np", self.parallel]
        words += ["-ctk", self.cache_k, "-ctv", self.cache_v, "-fa", "on" if self.flash_attention else "off"]
        return [str(word) for word in (*words, "-fitp", "on", "--no-repack")]

    def __str__(self) -> str:
        flash = "" if self.flash_attention else ", no flash attention"
        kinds = f"{self.cache_k}/{self.cache_v}"
        return f"{self.context} tokens, {self.parallel} slots, ubatch {self.ubatch} of {self.batch}, {kinds}{flash}"


def draw(rng: random.Random, model: Model) -> Drawn:
    """Any settings that the engine takes for this model: windows of 512 to 131,072 tokens, most of them short."""
    flash = rng.random() < 0.75
    whole = all(model.head(suffix) % BLOCK == 0 for suffix in ("", "_swa"))
    kinds_k = [kind for kind in KV_TYPES if whole or not is_quantised(kind)]
    kind_k = rng.choice(kinds_k)
    kind_v = rng.choice([kind for kind in kinds_k if flash or not is_quantised(kind)])
    if "attention.kv_lora_rank" in model.keys:
        # Its V is part of K, so the engine refuses two types.
        kind_k = kind_v
    ubatch = rng.choice([32, 64, 128, 256, 384, 512, 1024, 2048])
    return Drawn(
        context=round(2 ** rng.uniform(9, 17)),
        ubatch=ubatch,
        batch=rng.choice([size for size in (512, 1024, 2048, 4096) if size >= ubatch]),
        parallel=rng.choice([1, 1, 1, 2, 3, 4, 8]),
        cache_k=kind_k,
        cache_v=kind_v,
        flash_attention=flash,
    )


def parse(output: str) -> Columns:
    """The Host row. Raises :class:`ValueError` when there is none."""
    found = _LINE.search(output)
    if found is None:
        raise ValueError(f"the fit tool printed no Host row: {output[-400:]!r}")
    return Columns(*(int(number) for number in found.groups()))


class Case(NamedTuple):
    """Settings, and what the tool printed for them."""

    drawn: Drawn
    printed: Columns


def load(path: Path) -> dict[str, list[Case]]:
    """Recorded cases by model."""
    recorded: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())["cases"]
    return {
        name: [Case(Drawn(**entry["settings"]), Columns(*entry["mib"])) for entry in entries]
        for name, entries in recorded.items()
    }


def save(path: Path, origin: str, cases: dict[str, list[Case]]) -> None:
    """Write cases, one a line."""
    models = []
    for name, entries in cases.items():
        lines = [json.dumps({"settings": asdict(case.drawn), "mib": list(case.printed)}) for case in entries]
        models.append(f"  {json.dumps(name)}: [\n   " + ",\n   ".join(lines) + "\n  ]")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{\n "origin": {json.dumps(origin)},\n "cases": {{\n' + ",\n".join(models) + "\n }\n}\n")


def planned(header: Header, drawn: Drawn, engine: str) -> Columns:
    """llamarig's figures for the same settings; compute is 0 where the architecture's graph is not known."""
    found = columns(header, drawn.settings(engine))
    return Columns(found.weights, found.context, found.compute or 0)
