"""A file on cards, planned as a host that has nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llamarig.catalog import gpus
from llamarig.catalog.known_files import UNLOCKED, KnownFile
from llamarig.gguf import Header
from llamarig.memory import Shape, read_shape
from llamarig.plan.advise.question import Question
from llamarig.plan.advise.verdict import ROOM
from llamarig.plan.alternatives.search import Verdict, first_fitting
from llamarig.plan.alternatives.tries import judged
from llamarig.plan.host import plan_host, planned_subject
from llamarig.plan.settings import settings_of
from llamarig.plan.solve import Solution, solve
from llamarig.plan.types import Plan
from llamarig.spec.host import HostSpec
from llamarig.speed import Speed, Work, predict, rates_of, work_of

Headers = Callable[[KnownFile], Header | None]
"""The header of a file, real or composed."""

_SERVICE = "chat"
_MODEL = "model"
_ENGINE = {"commit": "4df29be4f", "build-number": 10454, "backend": "cuda"}
"""The engine whose memory model is planned with: the reference stack's."""


@dataclass(frozen=True)
class Spilled:
    """What lies in RAM so that the rest fits on the cards: whole layers, or the experts of some."""

    layers: int
    experts: int
    of: int
    ram_bytes: float
    """Read from RAM for each token."""
    bound: float | None
    """Tokens a second that no software can pass; None where nobody says how fast the RAM is."""

    @property
    def words(self) -> str:
        """What is in RAM."""
        return (
            f"the experts of {self.experts} of {self.of} layers"
            if self.experts
            else f"{self.layers} of {self.of} layers"
        )


@dataclass
class Trial:
    """One file of one model on the cards of a question."""

    question: Question
    file: KnownFile
    header: Header
    projector: KnownFile | None

    def spec(self, **service: Any) -> HostSpec:
        """A host that serves the file and nothing else; ``service`` are keys of its service."""
        cards = self.question.cards
        names = list(cards)
        placed = {"gpu": names[0]} if len(names) == 1 else {"gpus": names, "split-mode": "layer"}
        file = _as_model(self.file)
        if self.projector is not None:
            file["projector"] = _as_model(self.projector)
        context = {"context": self.question.context}
        source = {"sdist": "llama_cpp_python==0.3.35", "sha256": UNLOCKED}
        data = {
            "schema-version": 1,
            "host": "advice",
            "os": {"distribution": "debian", "release": "13"},
            "gpus": {
                name: {"model": model, "display": self.question.display and name == names[0]}
                for name, model in cards.items()
            },
            "engine": {**_ENGINE, "source": source, "architectures": _architectures(self.question)},
            "models": {_MODEL: file},
            "services": {_SERVICE: {"model": _MODEL, **placed, **context, "listen": {"port": 8080}, **service}},
        }
        return HostSpec.model_validate(data)

    def plan(self, **service: Any) -> Plan:
        """The plan of that host."""
        return plan_host(self.spec(**service), {_MODEL: self.header}, with_alternatives=False)

    @cached_property
    def whole(self) -> Plan:
        """Everything on the cards, the cache in f16."""
        return self.plan()

    def longest(self, kind: str) -> Solution:
        """The longest window with this KV type, everything on the cards."""
        cache = {"kv-cache": {"k": kind, "v": kind}}
        return solve(*planned_subject(self.spec(**cache), {_MODEL: self.header}), "context")

    @cached_property
    def verdict(self) -> Verdict:
        """Whether everything fits on the cards, and by how much."""
        return judged(self.spec(), self.whole)

    @cached_property
    def shape(self) -> Shape:
        """The model's dimensions."""
        return read_shape(self.header)

    @property
    def roomy(self) -> int:
        """Tokens of a window that has room: twice what is asked for, or all that the model was trained for."""
        asked, trained = self.question.context, self.shape.trained_context
        return max(asked, min(ROOM * asked, trained or ROOM * asked))

    @cached_property
    def room(self) -> Verdict:
        """Whether everything fits on the cards with room, and by how much."""
        return self._judged(context=self.roomy)

    def _judged(self, **service: Any) -> Verdict:
        return judged(self.spec(**service), self.plan(**service))

    def spilled(self) -> Spilled | None:
        """The way to have the rest on the cards that reads least from RAM; None when even without layers it is short.

        Of a model with experts those of the first layers may lie there while attention and the cache stay on the card.
        """
        total = len(self.shape.layers)
        found = []
        layers = first_fitting(total + 1, lambda at: self._judged(**{"gpu-layers": total - at}), self.verdict.short_mib)
        if layers is not None:
            found.append(self._spilled(layers + 1, 0, total + 1, **{"gpu-layers": total - layers}))
        if self.shape.experts_used:
            experts = first_fitting(
                total, lambda at: self._judged(**{"experts-on-cpu": at + 1}), self.verdict.short_mib
            )
            if experts is not None:
                found.append(self._spilled(0, experts + 1, total, **{"experts-on-cpu": experts + 1}))
        return min(found, key=lambda each: each.ram_bytes, default=None)

    def _spilled(self, layers: int, experts: int, of: int, **service: Any) -> Spilled:
        return Spilled(layers, experts, of, self._work(**service).elsewhere, self.decode_bound(**service))

    def _work(self, **service: Any) -> Work:
        spec = self.spec(**service)
        return work_of(self.header, self.shape, settings_of(spec, spec.services[_SERVICE]))

    def speed(self, **service: Any) -> Speed | None:
        """The predicted speed with the window asked for, without drafts.

        None on several cards, of which no run is known, and when part is read from RAM.
        """
        if len(self.question.gpus) > 1:
            return None
        spec = self.spec(**service)
        settings = settings_of(spec, spec.services[_SERVICE])
        name = self.question.gpus[0]
        work = work_of(self.header, self.shape, settings)
        return predict(work, rates_of(name, gpus.cards()[name]), settings, self.question.context)

    def decode_bound(self, **service: Any) -> float | None:
        """Tokens a second that no software can pass with the window full; None when RAM of unknown speed is read.

        A model split by layers is read by one card after the other, so that of several the fastest bounds all.
        """
        work = self._work(**service)
        if work.elsewhere and self.question.ram_gb_s is None:
            return None
        fastest = max(gpus.cards()[name].bandwidth_gb_s for name in self.question.gpus)
        seconds = work.read(1, self.question.context) / (fastest * 1e9)
        return 1.0 / (seconds + (work.elsewhere / (self.question.ram_gb_s * 1e9) if self.question.ram_gb_s else 0.0))


def _as_model(file: KnownFile) -> dict[str, Any]:
    return {
        "repo": file.repo,
        "revision": file.revision,
        "file": file.file,
        "sha256": file.sha256,
        "size": file.size if file.size is not None else file.most_bytes,
    }


def _architectures(question: Question) -> list[str]:
    return list(dict.fromkeys(f"{gpus.cards()[name].architecture}-real" for name in question.gpus))
