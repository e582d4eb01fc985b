"""A file on cards, planned as a host that has nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llamarig.catalog import gpus
from llamarig.catalog.known_files import UNLOCKED, KnownFile
from llamarig.gguf import Header
from llamarig.memory import read_shape
from llamarig.plan.advise.question import Question
from llamarig.plan.alternatives.search import Verdict, first_fitting
from llamarig.plan.alternatives.tries import judged
from llamarig.plan.host import plan_host, planned_subject
from llamarig.plan.settings import settings_of
from llamarig.plan.solve import Solution, solve
from llamarig.plan.types import Plan
from llamarig.spec.host import HostSpec
from llamarig.speed import predict, rates_of, work_of

Headers = Callable[[KnownFile], Header | None]
"""The header of a file, real or composed."""

_SERVICE = "chat"
_MODEL = "model"
_ENGINE = {"commit": "4df29be4f", "build-number": 10454, "backend": "cuda"}
"""The engine whose memory model is planned with: the reference stack's."""


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

    def layers_on_cards(self) -> int | None:
        """The most layers that the cards hold with the window asked for; None when not even none of them fit."""
        total = len(read_shape(self.header).layers) + 1

        def judge(at: int) -> Verdict:
            left = {"gpu-layers": total - 1 - at}
            return judged(self.spec(), self.plan(**left))

        found = first_fitting(total, judge, self.verdict.short_mib)
        return None if found is None else total - 1 - found

    def decode_tok_s(self, **service: Any) -> float | None:
        """Predicted generated tokens a second when the window asked for is full; None when part is read from RAM."""
        spec = self.spec(**service)
        settings = settings_of(spec, spec.services[_SERVICE])
        names = sorted(self.question.gpus, key=lambda name: gpus.cards()[name].bandwidth_gb_s)
        work = work_of(self.header, read_shape(self.header), settings)
        found = predict(work, rates_of(names[0], gpus.cards()[names[0]]), settings, self.question.context)
        return None if found is None else found.at_depth[-1].decode_tok_s

    def decode_bound(self, **service: Any) -> float | None:
        """Tokens a second that no software can pass with part of the weights in RAM; None without its bandwidth."""
        if self.question.ram_gb_s is None:
            return None
        spec = self.spec(**service)
        settings = settings_of(spec, spec.services[_SERVICE])
        work = work_of(self.header, read_shape(self.header), settings)
        fastest = max(gpus.cards()[name].bandwidth_gb_s for name in self.question.gpus)
        seconds = work.read(1, self.question.context) / (fastest * 1e9)
        return 1.0 / (seconds + work.elsewhere / (self.question.ram_gb_s * 1e9))


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
