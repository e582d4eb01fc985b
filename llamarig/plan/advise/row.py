"""One line of advice: the best file of a class, what it can do on the cards, and why it stands where it does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from llamarig.catalog.known_files import KnownFile
from llamarig.plan.advise.verdict import VERDICTS, Verdict

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
    decode_tok_s: float | None = None
    decode_at_most: float | None = None

    @property
    def rank(self) -> tuple[int, int, int]:
        """Best first: by verdict, then by layers that stay on the cards, then by bits."""
        return (VERDICTS.index(self.verdict), self.layers_in_ram, -self.bits)

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
            "decode-tok-s": None if self.decode_tok_s is None else round(self.decode_tok_s, 1),
            "decode-tok-s-at-most": None if self.decode_at_most is None else round(self.decode_at_most, 1),
        }

    @property
    def name(self) -> str:
        """The file in a few words."""
        return f"{self.file.quant}, {self.file.most_bytes / _GB:.2f} GB, of {self.file.repo}"
