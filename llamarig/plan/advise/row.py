"""One line of advice: the best file of a class, what it can do on the cards, and why it stands where it does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from llamarig.catalog.known_files import KnownFile
from llamarig.plan.advise.month import month_json
from llamarig.plan.advise.verdict import VERDICTS, Verdict
from llamarig.speed.economics import Costs

_GB = 1e9


@dataclass(frozen=True)
class Row:
    """The best file of one class."""

    bits: int
    file: KnownFile
    verdict: Verdict
    reasons: tuple[str, ...]
    composed: bool
    """Whether the file's layout was composed from the model's dimensions, its header not being at hand."""
    fits: bool = False
    """Everything on the cards, with the window asked for and an f16 cache."""
    free_mib: dict[str, float] = field(default_factory=dict)
    windows: dict[str, int | None] = field(default_factory=dict)
    """The longest window by KV type, everything on the cards."""
    kv_cache: str = "f16"
    """The widest KV type with which the window asked for fits on the cards; f16 when none does."""
    layers_in_ram: int = 0
    experts_in_ram: int = 0
    """Layers whose experts lie in RAM."""
    in_ram: str = ""
    """The same in words."""
    decode_empty: float | None = None
    """Tokens a second with an empty window."""
    decode_tok_s: float | None = None
    """With the window full."""
    decode_at_most: float | None = None
    """With the window full, where no speed is predicted."""
    prefill_tok_s: float | None = None
    """Over a prompt that fills the window."""
    month: Costs | None = None

    @property
    def rank(self) -> tuple[int, int, int]:
        """Best first: by verdict, then by layers that stay on the cards, then by bits."""
        return (VERDICTS.index(self.verdict), max(self.layers_in_ram, self.experts_in_ram), -self.bits)

    def to_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "bits": self.bits,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "file": {
                "repo": self.file.repo,
                "revision": self.file.revision,
                "file": self.file.file,
                "quant": self.file.quant,
                "size": self.file.size,
                "sha256": self.file.sha256,
                "source": self.file.source,
            },
            "composed": self.composed,
            "fits": self.fits,
            "free-mib": {gpu: round(mib, 2) for gpu, mib in self.free_mib.items()},
            "longest-context": self.windows,
            "kv-cache": self.kv_cache,
            "layers-in-ram": self.layers_in_ram,
            "experts-in-ram": self.experts_in_ram,
            "decode-tok-s": _rounded(self.decode_empty),
            "decode-tok-s-full": _rounded(self.decode_tok_s),
            "decode-tok-s-at-most": _rounded(self.decode_at_most),
            "prefill-tok-s-full": _rounded(self.prefill_tok_s),
            "month": None if self.month is None else month_json(self.month),
        }

    @property
    def name(self) -> str:
        """The file in a few words."""
        return f"{self.file.quant}, {self.file.most_bytes / _GB:.2f} GB, of {self.file.repo}"


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 1)
