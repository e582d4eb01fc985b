"""What a start's own lines say of where the engine put its memory (llama.cpp prints the buffers at ``-lv 4``)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

BUFFER = re.compile(
    r"(?P<device>[A-Za-z0-9_]+)\s+(?P<kind>model|KV|RS|compute|output) buffer size\s*=\s*(?P<mib>[\d.]+) MiB"
)
OFFLOADED = re.compile(r"offloaded (?P<done>\d+)/(?P<all>\d+) layers to GPU")
CLIP = re.compile(r"CLIP using (?P<device>[A-Za-z0-9_]+) backend")
BROKEN = re.compile(
    r"no usable GPU|failed to initialize CUDA|no CUDA-capable device|compiled without GPU", re.IGNORECASE
)


@dataclass(slots=True)
class StartLines:
    """Figures of one start, MiB."""

    buffers: dict[str, dict[str, float]] = field(default_factory=dict)
    """MiB by kind (model, KV, RS, compute, output) and device (CUDA0, CPU_Mapped)."""
    offloaded: list[tuple[int, int]] = field(default_factory=list)
    """(layers on the GPU, layers in all), once a model; the first is the main model's."""
    clip: str = ""
    """Device of the projector."""
    broken: str = ""
    """The engine's own words that it found no GPU."""

    def mib(self, kind: str, on_gpu: bool) -> float:
        """MiB of one kind that lie on GPUs, or elsewhere."""
        return sum(size for device, size in self.buffers.get(kind, {}).items() if device.startswith("CUDA") is on_gpu)


def _figure(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def read_start(lines: Iterable[object]) -> StartLines:
    """Read the lines that rig_probe returned; what is not a known line is passed over."""
    found = StartLines()
    for line in lines:
        if not isinstance(line, str):
            continue
        if match := BUFFER.search(line):
            sizes = found.buffers.setdefault(match["kind"], {})
            sizes[match["device"]] = sizes.get(match["device"], 0.0) + _figure(match["mib"])
        elif match := OFFLOADED.search(line):
            found.offloaded.append((int(match["done"][:9]), int(match["all"][:9])))
        elif match := CLIP.search(line):
            found.clip = match["device"]
        elif BROKEN.search(line):
            found.broken = line
    return found
