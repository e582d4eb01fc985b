"""One comparison with a real server: settings to draw, its command line, and the buffers that it prints.

The server reads a model's weights, so only small ones are written for it, as holes; it makes all its contexts, and then
ends by itself at a projector that is none.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from llamarig.gguf import Header
from llamarig.memory import Settings, estimate
from llamarig.memory.draft_outputs import draft_output_bytes
from llamarig.memory.logits import logit_bytes
from llamarig.memory.shape import read_shape
from llamarig.memory.units import MIB
from tests.support.models import fit
from tests.support.models.model import Model

NO_PROJECTOR = "/dev/null"
_LINE = re.compile(r"CPU +(KV|RS|compute|output) buffer size = +([0-9.]+) MiB")


class Buffers(NamedTuple):
    """MiB of all contexts together, as printed with two decimals."""

    caches: float
    state: float
    compute: float
    outputs: float
    """Rows of logits that the host keeps; they grow with the first draft."""


@dataclass(frozen=True)
class Drawn:
    """What the fit tool takes and, besides, a unified cache and drafts by the model's own head."""

    fit: fit.Drawn
    unified: bool
    n_max: int
    """0: no drafts."""

    def settings(self, engine: str) -> Settings:
        """The same for llamarig's model of that engine; the head's cache has the types of the target's.

        The server ends before its drafter gets samplers, which would make its buffer anew.
        """
        settings = self.fit.settings(engine)
        return replace(
            settings,
            era=replace(settings.era, draft_sampling=False),
            kv_unified=self.unified,
            speculation="draft-mtp" if self.n_max else None,
            n_max=self.n_max,
            draft_k=self.fit.cache_k,
            draft_v=self.fit.cache_v,
        )

    def arguments(self, path: str, port: int) -> list[str]:
        """The server's command line."""
        drawn = self.fit
        words = ["--model", path, "--mmproj", NO_PROJECTOR, "--host", "127.0.0.1", "--port", port]
        words += ["--device", "none", "--fit", "off", "--no-warmup", "--offline", "--no-ui", "--no-repack"]
        words += ["--log-verbosity", 4, "--ctx-size", drawn.context, "--parallel", drawn.parallel]
        words += ["--kv-unified" if self.unified else "--no-kv-unified"]
        words += ["--batch-size", drawn.batch, "--ubatch-size", drawn.ubatch]
        words += ["--flash-attn", "on" if drawn.flash_attention else "off"]
        words += ["--cache-type-k", drawn.cache_k, "--cache-type-v", drawn.cache_v]
        if self.n_max:
            words += ["--spec-type", "draft-mtp", "--spec-draft-n-max", self.n_max]
            words += ["--spec-draft-type-k", drawn.cache_k, "--spec-draft-type-v", drawn.cache_v]
        return [str(word) for word in words]

    def __str__(self) -> str:
        unified = ", unified" if self.unified else ""
        return f"{self.fit}{unified}, n_max {self.n_max}"


class Case(NamedTuple):
    """Settings, and what the server printed for them."""

    drawn: Drawn
    printed: Buffers


def draw(rng: random.Random, model: Model) -> Drawn:
    """Any settings that the engine takes for this model, with windows of at most 32,768 tokens."""
    drawn = fit.draw(rng, model)
    drafts = model.integer("nextn_predict_layers", 0) > 0 and rng.random() < 0.8
    return Drawn(
        replace(drawn, context=min(drawn.context, 32_768)), rng.random() < 0.5, rng.randint(1, 6) if drafts else 0
    )


def parse(output: str) -> Buffers:
    """The sums of the printed lines. Raises :class:`ValueError` when no compute buffer is among them."""
    sums = dict.fromkeys(("KV", "RS", "compute", "output"), 0.0)
    for kind, mib in _LINE.findall(output):
        sums[kind] += float(mib)
    if not sums["compute"]:
        raise ValueError(f"the server printed no compute buffer: {output[-600:]!r}")
    return Buffers(*sums.values())


def planned(header: Header, drawn: Drawn, engine: str) -> Buffers:
    """llamarig's figures for the same server."""
    settings = drawn.settings(engine)
    host = estimate(header, settings).host
    shape = read_shape(header)
    outputs = logit_bytes(shape, settings) / MIB
    drafted = draft_output_bytes(shape, settings) / MIB
    return Buffers(
        host.get("kv-cache", 0.0) + host.get("draft-kv-cache", 0.0),
        host.get("recurrent-state", 0.0),
        host["compute"] + host.get("draft-compute", 0.0) - outputs - drafted,
        outputs + drafted,
    )


class Verdict(NamedTuple):
    """How the figures of one server agree."""

    equal_caches: bool
    within: bool
    """Compute buffers and logits are at most 3 % above, and nothing is below."""
    equal: bool
    """Compute buffers to the last digit, too."""


DIGIT = 0.03
"""MiB by which sums of up to five figures with two decimals may be off."""
TOLERANCE = 0.03


def compare(planned: Buffers, printed: Buffers) -> Verdict:
    """Rows of logits may be more than printed: they grow with the first draft."""
    caches = all(abs(planned[i] - printed[i]) <= DIGIT for i in range(2))
    above = planned.compute - printed.compute
    grown = planned.outputs >= printed.outputs - DIGIT
    return Verdict(
        caches,
        caches and grown and -DIGIT <= above <= max(TOLERANCE * printed.compute, DIGIT),
        caches and grown and abs(above) <= DIGIT,
    )


def load(path: Path) -> dict[str, list[Case]]:
    """Recorded cases by model."""
    recorded: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())["cases"]
    return {
        name: [
            Case(Drawn(fit.Drawn(**entry["settings"]), entry["unified"], entry["n_max"]), Buffers(*entry["mib"]))
            for entry in entries
        ]
        for name, entries in recorded.items()
    }


def save(path: Path, origin: str, cases: dict[str, list[Case]]) -> None:
    """Write cases, one a line."""
    models = []
    for name, entries in cases.items():
        lines = [
            json.dumps(
                {
                    "settings": asdict(case.drawn.fit),
                    "unified": case.drawn.unified,
                    "n_max": case.drawn.n_max,
                    "mib": [round(figure, 2) for figure in case.printed],
                }
            )
            for case in entries
        ]
        models.append(f"  {json.dumps(name)}: [\n   " + ",\n   ".join(lines) + "\n  ]")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{\n "origin": {json.dumps(origin)},\n "cases": {{\n' + ",\n".join(models) + "\n }\n}\n")
