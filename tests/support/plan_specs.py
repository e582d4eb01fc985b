"""Host specs for planner tests, as plain data that a test may change."""

from __future__ import annotations

import copy
from typing import Any

from llamarig.spec.host import HostSpec

CPU: dict[str, Any] = {
    "schema-version": 1,
    "host": "box",
    "os": {"distribution": "debian", "release": "13"},
    "memory": {"total-mib": 32_000},
    "engine": {
        "commit": "4df29be4f",
        "build-number": 10454,
        "source": {"sdist": "llama_cpp_python==0.3.35", "sha256": "unlocked"},
        "backend": "cpu",
    },
    "models": {"small": {"url": "https://models.example/small.gguf?download=1", "sha256": "unlocked", "size": 1000}},
    "services": {"chat": {"model": "small", "context": 4096, "listen": {"port": 8080}}},
}

UUIDS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-7777-8888-9999-aaaaaaaaaaaa")

REFERENCE: dict[str, Any] = {
    **CPU,
    "host": "atelier",
    "memory": {"total-mib": 64_000},
    "gpus": {
        "blackwell": {"model": "rtx-pro-4000-blackwell-sff", "bus-id": "01:00.0", "uuid": UUIDS[0]},
        "ada": {"model": "rtx-2000-ada", "bus-id": "02:00.0", "uuid": UUIDS[1]},
    },
    "engine": {**CPU["engine"], "backend": "cuda", "architectures": ["120a-real", "89-real"]},
    "models": {
        "qwen": {
            "repo": "somebody/a-model",
            "revision": "unlocked",
            "file": "Qwen3.8-27B.gguf",
            "sha256": "unlocked",
            "size": 17_125_207_136,
            "projector": {
                "repo": "somebody/a-model",
                "revision": "unlocked",
                "file": "mmproj-F16.gguf",
                "sha256": "unlocked",
                "size": 927_607_488,
            },
        }
    },
    "services": {
        "chat": {
            "model": "qwen",
            "gpu": "blackwell",
            "projector-gpu": "ada",
            "context": 262_144,
            "kv-cache": {"k": "q4_0", "v": "q4_0"},
            "speculation": {"type": "draft-mtp", "n-max": 8, "ngram-default": True},
            "batch": 512,
            "ubatch": 256,
            "threads": 8,
            "sampling": "thinking",
            "reasoning-preserve": True,
            "image-min-tokens": 1024,
            "accept-margin": {"reason": "the published stack left 515 MiB of the total"},
            "environment": {"GGML_CUDA_GRAPH_OPT": "1", "LLAMA_SPEC_CHAIN": "1"},
            "listen": {"port": 8080},
        }
    },
}
"""The dual-GPU 256K stack as its makers describe it, hashes left open."""


def spec(base: dict[str, Any], service: dict[str, Any] | None = None, **top: Any) -> HostSpec:
    """``base`` with keys of its only service and of its top changed; None takes a key away."""
    data = copy.deepcopy(base)
    name = next(iter(data["services"]))
    _put(data["services"][name], service or {})
    _put(data, {key.replace("_", "-"): value for key, value in top.items()})
    return HostSpec.model_validate(data)


def _put(target: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value
