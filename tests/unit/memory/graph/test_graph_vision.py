"""The buffers of an image encoder, against what servers printed."""

from __future__ import annotations

from typing import Any

import pytest

from llamarig.gguf import Header
from llamarig.memory.graph.vision import Tower, encoder_bytes, tower_of
from llamarig.memory.projector import encoded_mib
from tests.support import gguf_bytes as raw
from tests.support.big_models import MIB, header_of

QWEN = Tower(width=1152, inner=4304, heads=16, patch=16, merge=2, image=768, output=5120)
"""The encoder of the 27B models."""

KEYS: dict[str, int] = {
    "vision.embedding_length": 1152,
    "vision.feed_forward_length": 4304,
    "vision.attention.head_count": 16,
    "vision.patch_size": 16,
    "vision.spatial_merge_size": 2,
    "vision.image_size": 768,
    "vision.projection_dim": 5120,
}


def projector(kind: str = "qwen3vl_merger", *, tensor: str = "v.patch_embd.weight", **changed: int) -> Header:
    composed = raw.Composed().add("general.architecture", raw.STRING, "clip")
    composed.add("clip.projector_type", raw.STRING, kind)
    for key, value in (KEYS | {f"vision.{name}": size for name, size in changed.items()}).items():
        composed.add(f"clip.{key}", raw.U32, value)
    return header_of(composed.tensor(tensor, "F16", 16, 16))


def test_the_buffer_at_start_is_what_servers_printed() -> None:
    """248.10 MiB on CUDA0, in two public logs of 27B models with their projectors (memory cases 7 and 9)."""
    found = encoder_bytes(QWEN)
    assert round(found.device / MIB, 2) == 248.10
    assert found.host > 0


def test_the_header_tells_the_encoders_dimensions() -> None:
    assert tower_of(projector()) == QWEN


def test_a_bigger_image_takes_more_and_a_smaller_one_no_less_than_at_start() -> None:
    size = 900 * MIB
    start, small, big = (encoded_mib(size, projector(), tokens, on_card=True) for tokens in (None, 64, 4096))
    assert start == small
    assert start is not None
    assert big is not None
    assert big[0] > start[0]
    assert round(start[0], 2) == 1148.10


def test_without_a_card_it_is_all_in_ram() -> None:
    found = encoded_mib(900 * MIB, projector(), None, on_card=False)
    assert found is not None
    assert found[0] == 0.0
    assert found[1] > 900 + 200


@pytest.mark.parametrize(
    "header",
    [
        None,
        projector("gemma3"),
        projector(tensor="v.deepstack.5.fc1.weight"),
        projector(embedding_length=0),
        projector(image_size=8),
        projector(spatial_merge_size=3),
        projector(feed_forward_length=4_000_000_000),
        projector(patch_size=0),
    ],
    ids=["none", "another kind", "deepstack", "no width", "no patch", "another merge", "huge", "no patches"],
)
def test_an_encoder_that_is_not_known_is_left_to_what_was_measured(header: Any) -> None:
    assert tower_of(header) is None
    assert encoded_mib(900 * MIB, header, None, on_card=True) is None
