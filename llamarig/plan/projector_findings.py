"""What a projector takes that no header tells."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.plan.settings import visible_cards
from llamarig.plan.types import Finding
from llamarig.spec.host import HostSpec


def projector_findings(spec: HostSpec, name: str) -> Iterator[Finding]:
    """An image without a limit makes the encoder's buffers as big as whoever sends it likes.

    Source: public report github.com/ggml-org/llama.cpp/pull/21489, in which one projector took 2,447.80 MiB.
    """
    service = spec.services[name]
    if spec.models[service.model].projector is None or service.image_max_tokens is not None:
        return
    if visible_cards(spec, service):
        yield Finding(
            "image-size-open",
            "note",
            f"service {name} takes images of any size that the model allows, and the projector's buffers grow with "
            "them: one was reported at 2,448 MiB; this plan counts the image that is reserved for at start",
            "set image-max-tokens, and try the biggest image that you expect while you watch the card",
            name,
        )
