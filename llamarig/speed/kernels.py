"""Which kernel multiplies a matrix, by tensor type and by the width of a pass."""

from __future__ import annotations

from typing import Final

VECTOR_WIDTH: Final = 8
"""Up to so many tokens a pass, a matrix of quantised weights is read by the vector kernel (MMVQ), which does its
arithmetic anew for every token; beyond it, the tile kernel (MMQ) puts the tensor cores to work. Source:
MMVQ_MAX_BATCH_SIZE in ggml/src/ggml-cuda/mmvq.cuh, ``ggml_cuda_should_use_mmvq`` and ``ggml_cuda_mul_mat``."""

EXPERT_VECTOR_WIDTH: Final = {"fp4": 7, "k-low": 6, "i-low": 7}
"""The same bound for experts, where it is lower, by kernel class. Source: ``get_mmvq_mmid_max_batch_turing_plus`` in
ggml/src/ggml-cuda/mmvq.cu; types of one class differ by one or two."""

TILES: Final = (8, 16, 32, 64, 128)
"""Columns that a tile may have; one that is not full takes as long. For experts it is chosen by the tokens of the whole
pass, not by those that one expert gets. Source: the loop over ``J`` (``ncols_max``) and the configurations in
ggml/src/ggml-cuda/mmq.cuh and mmq-config-ampere.cuh."""

VECTOR_ATTENTION_WIDTH: Final = 2
"""Up to so many tokens, attention reads a quantised cache as it is stored; beyond it, K and V of a layer are unpacked
to f16 first. Source: ``ggml_cuda_get_best_fattn_kernel`` in ggml/src/ggml-cuda/fattn.cu (Ada and later)."""

CLASSES: Final[dict[str, tuple[str, ...]]] = {
    "plain": ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q8_1", "I8", "Q1_0", "Q2_0"),
    "k": ("Q4_K", "Q5_K", "Q6_K", "Q8_K"),
    "k-low": ("Q2_K", "Q3_K"),
    "i4": ("IQ4_XS", "IQ4_NL"),
    "i-low": ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0"),
    "fp4": ("NVFP4", "MXFP4"),
    "float": ("F64", "F32", "F16", "BF16", "I16", "I32", "I64"),
}
"""Tensor types whose weights are unpacked in about the same way, and so with about as many instructions."""

CLASS_OF: Final[dict[str, str]] = {kind: name for name, kinds in CLASSES.items() for kind in kinds}


def columns(width: int) -> int:
    """Columns that the tile kernel computes for ``width`` tokens."""
    for tile in TILES:
        if width <= tile:
            return tile
    return -(-width // TILES[-1]) * TILES[-1]


def class_of(tensor_type: str) -> str:
    """The class of a tensor type; one that is not known counts as ``i-low``, the slowest."""
    return CLASS_OF.get(tensor_type, "i-low")


def tensor_ratio(capability: str, weights: str) -> float:
    """How many times the card's single-precision rate its tensor cores reach, dense, for these weights.

    Quantised weights are multiplied as 8-bit integers, those of the class ``fp4`` natively on Blackwell, floats
    in 16 bits. Source: ratios of the vendor's own figures (architecture white papers of Turing to Blackwell).
    """
    eight = {"6.1": 4.0, "7.0": 4.0, "7.5": 16.0, "8.0": 32.0, "9.0": 29.5}.get(capability, 8.0)
    if weights == "float":
        return 1.0 if capability == "6.1" else eight / 2
    return 2 * eight if weights == "fp4" and capability.startswith("12.") else eight
