"""What a process takes beyond the buffers that the engine reports."""

from __future__ import annotations

CUDA_RESIDUE_MIB = 292.33
"""MiB on the card: driver context, kernels, workspaces. Fitted, not derived: it is what the 23,952 MiB
that were published for the reference stack leave over. Other cards were seen with 153 to 341."""

SEVERAL_RESIDUES_MIB = (353.0, 323.0)
"""The same on the first and on each other card of a process on several: measured beside two RTX 3090, 337 to 353 on the
first and 305 to 323 on the second."""

HOST_BASE_MIB = 1024.0
"""MiB of RAM of the process itself under CUDA: code, vocabulary, HTTP threads, driver."""

HOST_BASE_CPU_MIB = 256.0
"""The same for the CPU backend, which loads no driver."""

HOST_PER_TOKEN_BYTES = 256
"""Bytes of RAM per vocabulary entry: the token's text, its attributes and the merge tables."""


def residues_mib(cards: int) -> tuple[float, ...]:
    """MiB of the process itself on each of its cards."""
    if cards == 1:
        return (CUDA_RESIDUE_MIB,)
    first, other = SEVERAL_RESIDUES_MIB
    return tuple(other if card else first for card in range(cards))


def host_base_mib(backend: str, vocabulary: int) -> float:
    """MiB of RAM of the process without weights, caches and buffers."""
    base = HOST_BASE_CPU_MIB if backend == "cpu" else HOST_BASE_MIB
    return base + vocabulary * HOST_PER_TOKEN_BYTES / (1 << 20) if backend == "cpu" else base
