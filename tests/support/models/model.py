"""A model as data: its keys, its vocabulary and how its tensors are laid out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.models.weights import Weights

Value = int | float | bool | str | list[int] | list[bool]
Keys = dict[str, Value]


def blocks(layers: int, embedding: int, ff: int, heads: tuple[int, int], context: int) -> Keys:
    """The numbers that every transformer has; ``heads`` are those of Q and of K and V."""
    return {
        "block_count": layers,
        "embedding_length": embedding,
        "feed_forward_length": ff,
        "attention.head_count": heads[0],
        "attention.head_count_kv": heads[1],
        "context_length": context,
    }


def experts(count: int, used: int, ff: int, shared: int = 0) -> Keys:
    """Experts of ``ff`` inner elements, ``shared`` of them in the expert that is always there."""
    keys: Keys = {"expert_count": count, "expert_used_count": used, "expert_feed_forward_length": ff}
    return keys | ({"expert_shared_feed_forward_length": shared} if shared else {})


def heads(key: int, value: int = 0) -> Keys:
    """Elements of a K and of a V head, where they are not embedding / heads."""
    return {"attention.key_length": key, "attention.value_length": value or key}


@dataclass(frozen=True)
class Model:
    """A published model's dimensions, under the keys of its GGUF file without the architecture's prefix."""

    name: str
    architecture: str
    vocabulary: int
    layout: Callable[[Weights], None]
    """Adds the layers' tensors."""
    keys: Mapping[str, Value]
    origin: str
    """Whose published ``config.json`` the dimensions are."""
    tied: bool = False
    """Whether the embedding is the output, too."""

    def integer(self, key: str, default: int | None = None) -> int:
        """A key that is one number for all layers."""
        value = self.keys.get(key, default)
        assert isinstance(value, int), (self.name, key)
        return value

    def per_layer(self, key: str, default: int = 0) -> list[int]:
        """A key that may differ from layer to layer."""
        value = self.keys.get(key, default)
        if isinstance(value, list):
            return [int(item) for item in value]
        assert isinstance(value, int), (self.name, key)
        return [value] * self.integer("block_count")

    @property
    def layers(self) -> int:
        return self.integer("block_count")

    @property
    def trunk(self) -> int:
        """Layers less the MTP head's."""
        return self.layers - self.integer("nextn_predict_layers", 0)

    @property
    def embedding(self) -> int:
        return self.integer("embedding_length")

    def head(self, suffix: str = "") -> int:
        """Elements of a K head; ``suffix`` is ``_swa`` for a sliding layer's."""
        usual = self.embedding // max(1, *self.per_layer("attention.head_count", 1))
        return self.integer(f"attention.key_length{suffix}", usual)
