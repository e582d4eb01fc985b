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
PROJECTOR = "compute_meta: "
"""Of the function in tools/mtmd/clip.cpp that prints the projector's compute buffer, which is no context's."""
BROKEN = re.compile(
    r"no usable GPU|failed to initialize CUDA|no CUDA-capable device|compiled without GPU", re.IGNORECASE
)


@dataclass(slots=True)
class StartLines:
    """Figures of one start, MiB."""

    buffers: dict[str, dict[str, float]] = field(default_factory=dict)
    """MiB by kind (model, KV, RS, compute, output) and device (CUDA0, CPU_Mapped), over all contexts."""
    offloaded: list[tuple[int, int]] = field(default_factory=list)
    """(layers on the GPU, layers in all), once a model; the first is the main model's."""
    clip: str = ""
    """Device of the projector."""
    broken: str = ""
    """The engine's own words that it found no GPU."""

    def mib(self, kind: str, on_gpu: bool) -> float:
        """MiB of one kind that lie on GPUs, or elsewhere."""
        return sum(size for device, size in self.buffers.get(kind, {}).items() if device.startswith("CUDA") is on_gpu)


class _Contexts:
    """Compute buffers of each context, which prints its ``output`` line first.

    A context that gets a sampler or an adapter makes its buffers anew and prints them again; the line does not say
    which context that is, so it counts for the one that is nearest in size, and the larger figure stays. Source:
    ``sched_reserve`` and its callers in src/llama-context.cpp.
    """

    def __init__(self) -> None:
        self.sizes: list[dict[str, float]] = []
        self._group: dict[str, float] = {}
        """Lines of one reservation: each device once."""
        self._fresh = True
        self._told_apart = False

    def begin(self) -> None:
        """The ``output`` line of a context."""
        self.close()
        self._fresh = self._told_apart = True

    def add(self, device: str, mib: float) -> None:
        """A ``compute`` line."""
        if device in self._group:
            self.close()
        self._group[device] = mib

    def close(self) -> None:
        """No more lines of this reservation."""
        group, self._group = self._group, {}
        if not group:
            return
        if self._fresh:
            self.sizes.append(group)
            self._fresh = not self._told_apart
            return
        total = sum(group.values())
        nearest = min(self.sizes, key=lambda sizes: abs(sum(sizes.values()) - total))
        for device, mib in group.items():
            nearest[device] = max(mib, nearest.get(device, 0.0))

    def over_all(self) -> dict[str, float]:
        """MiB by device."""
        self.close()
        devices = dict.fromkeys(device for sizes in self.sizes for device in sizes)
        return {device: sum(sizes.get(device, 0.0) for sizes in self.sizes) for device in devices}


def _figure(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def read_start(lines: Iterable[object]) -> StartLines:
    """Read the lines that rig_probe returned; what is not a known line is passed over."""
    found, contexts = StartLines(), _Contexts()
    for line in lines:
        if not isinstance(line, str) or PROJECTOR in line:
            continue
        if match := BUFFER.search(line):
            kind, device, mib = match["kind"], match["device"], _figure(match["mib"])
            if kind == "compute":
                contexts.add(device, mib)
                continue
            if kind == "output":
                contexts.begin()
            sizes = found.buffers.setdefault(kind, {})
            sizes[device] = sizes.get(device, 0.0) + mib
        elif match := OFFLOADED.search(line):
            found.offloaded.append((int(match["done"][:9]), int(match["all"][:9])))
        elif match := CLIP.search(line):
            found.clip = match["device"]
        elif BROKEN.search(line):
            found.broken = line
    if compute := contexts.over_all():
        found.buffers["compute"] = compute
    return found
