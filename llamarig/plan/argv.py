"""The arguments of a server: everything that matters is said, nothing is left to a default.

Flags of llama.cpp build 10454; tests compare every one with the help of that build.
"""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.plan.places import PRESETS, SERVER, TEMPLATES, credential, model_path
from llamarig.plan.settings import draft_card, model_cards, overrides, projector_card, shares, visible_cards
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Sampling, Service, Speculation

VERBOSITY = 4
"""The lowest level at which the engine prints its buffer sizes and the projector's device, which
proofs read; it prints no prompt and no answer (the first level that does is 5)."""

PROFILES = {
    "engine": Sampling(),
    "thinking": Sampling.model_validate({"temperature": 1.0, "top-p": 0.95, "top-k": 20}),
    "non-thinking": Sampling.model_validate(
        {"temperature": 0.7, "top-p": 0.8, "top-k": 20, "presence-penalty": 1.5},
    ),
}
"""Sampling by name, as the model's makers publish it for the two modes."""

SPECULATION = {
    "draft-mtp": "draft-mtp",
    "draft-model": "draft-simple",
    "eagle3": "draft-eagle3",
    "dflash": "draft-dflash",
    "ngram-mod": "ngram-mod",
    "ngram-simple": "ngram-simple",
}
"""The engine's names of the spec's kinds."""

_SAMPLING_FLAGS = (
    ("--temp", "temperature"),
    ("--top-p", "top_p"),
    ("--top-k", "top_k"),
    ("--min-p", "min_p"),
    ("--presence-penalty", "presence_penalty"),
    ("--repeat-penalty", "repeat_penalty"),
    ("--seed", "seed"),
)


def argv(spec: HostSpec, name: str) -> tuple[str, ...]:
    """The whole command line of the service ``name``; ``argv[0]`` is the program."""
    service = spec.services[name]
    return (
        SERVER,
        *_model(spec, name, service),
        *_network(name, service),
        *_window(service),
        *_placement(spec, service),
        *_speculation(spec, service),
        *_chat(name, service),
        *_sampling(service.sampling),
        *("--offline", "--no-ui", "--log-verbosity", str(VERBOSITY)),
        *service.unsafe_args,
    )


def _model(spec: HostSpec, name: str, service: Service) -> Iterator[str]:
    if service.router is not None:
        yield from ("--models-preset", f"{PRESETS}/{name}.ini")
        yield from ("--models-max", str(service.router.models_max))
        yield from _images(service)
        return
    yield from ("--model", model_path(spec, service.model))
    yield from ("--alias", service.alias or service.model)
    projector = spec.models[service.model].projector
    if projector is not None:
        yield from ("--mmproj", model_path(spec, service.model, projector))
        yield "--mmproj-offload" if projector_card(spec, service) else "--no-mmproj-offload"
        yield from _images(service)
    if service.lora:
        scaled = (f"{model_path(spec, adapter.model)}:{adapter.scale!r}" for adapter in service.lora)
        yield from ("--lora-scaled", ",".join(scaled))


def _images(service: Service) -> Iterator[str]:
    if service.image_min_tokens is not None:
        yield from ("--image-min-tokens", str(service.image_min_tokens))
    if service.image_max_tokens is not None:
        yield from ("--image-max-tokens", str(service.image_max_tokens))


def _network(name: str, service: Service) -> Iterator[str]:
    listen = service.listen
    yield from ("--host", listen.address)
    if not listen.address.endswith(".sock"):
        yield from ("--port", str(listen.port))
    if listen.keyless is None:
        yield from ("--api-key-file", credential(name, "keys"))
    if listen.tls is not None:
        yield from ("--ssl-cert-file", credential(name, "tls-cert"))
        yield from ("--ssl-key-file", credential(name, "tls-key"))
    if listen.cors_origins:
        yield from ("--cors-origins", ",".join(listen.cors_origins))
    elif listen.keyless is not None:
        # The engine's own default without a key is any origin: any page in a browser could ask.
        yield from ("--cors-origins", "localhost")
    if service.metrics:
        yield "--metrics"


def _window(service: Service) -> Iterator[str]:
    yield from ("--ctx-size", str(service.context))
    yield from ("--parallel", str(service.parallel))
    yield "--kv-unified" if service.kv_unified else "--no-kv-unified"
    yield from ("--batch-size", str(service.batch))
    yield from ("--ubatch-size", str(service.ubatch))
    yield from ("--cache-type-k", service.kv_cache.k)
    yield from ("--cache-type-v", service.kv_cache.v)
    yield from ("--flash-attn", service.flash_attention)
    yield from ("--ctx-checkpoints", str(service.context_checkpoints))
    yield from ("--cache-ram", str(service.cache_ram_mib))
    yield from ("--load-mode", service.load_mode)
    if service.threads is not None:
        yield from ("--threads", str(service.threads))


def _placement(spec: HostSpec, service: Service) -> Iterator[str]:
    cards = model_cards(spec, service)
    if not cards:
        yield from ("--device", "none")
    else:
        layers = "all" if service.gpu_layers == "all" else str(service.gpu_layers)
        yield from ("--device", ",".join(f"CUDA{number}" for number in range(len(cards))), "--n-gpu-layers", layers)
    split = shares(spec, service)
    if split:
        yield from ("--split-mode", service.split_mode)
        yield from ("--tensor-split", ",".join(f"{share:.9g}" for share in split))
    # The engine takes the first pattern that matches, and its own list of experts is such patterns.
    places = overrides(spec, service)
    if places:
        yield from ("--override-tensor", ",".join(f"{pattern}={_buffer(card)}" for pattern, card in places))
    if service.experts_on_cpu == "all":
        yield "--cpu-moe"
    elif service.experts_on_cpu:
        yield from ("--n-cpu-moe", str(service.experts_on_cpu))
    yield from ("--fit", "off")


def _buffer(card: int | None) -> str:
    return "CPU" if card is None else f"CUDA{card}"


def _speculation(spec: HostSpec, service: Service) -> Iterator[str]:
    speculation = service.speculation
    if speculation is None:
        return
    yield from ("--spec-type", SPECULATION[speculation.type])
    if speculation.ngram_default:
        yield "--spec-default"
    if speculation.type == "ngram-mod":
        if "n_max" in speculation.model_fields_set:
            yield from ("--spec-ngram-mod-n-max", str(speculation.n_max))
    elif speculation.type != "ngram-simple":
        yield from _draft(spec, service, speculation)


def _draft(spec: HostSpec, service: Service, speculation: Speculation) -> Iterator[str]:
    yield from ("--spec-draft-n-max", str(speculation.n_max))
    yield from ("--spec-draft-n-min", str(speculation.n_min))
    yield from ("--spec-draft-p-min", repr(speculation.p_min))
    yield from ("--spec-draft-type-k", speculation.kv_cache)
    yield from ("--spec-draft-type-v", speculation.kv_cache)
    if speculation.model is None:
        return
    yield from ("--spec-draft-model", model_path(spec, speculation.model))
    if visible_cards(spec, service):
        yield from ("--spec-draft-device", f"CUDA{draft_card(spec, service)}", "--spec-draft-ngl", "all")
    else:
        yield from ("--spec-draft-device", "none")


def _chat(name: str, service: Service) -> Iterator[str]:
    yield "--jinja" if service.jinja else "--no-jinja"
    if service.chat_template is not None:
        yield from ("--chat-template-file", f"{TEMPLATES}/{name}.jinja")
    if service.reasoning is not None:
        yield from ("--reasoning", service.reasoning)
    if service.reasoning_preserve is not None:
        yield "--reasoning-preserve" if service.reasoning_preserve else "--no-reasoning-preserve"


def _sampling(sampling: str | Sampling) -> Iterator[str]:
    chosen = PROFILES[sampling] if isinstance(sampling, str) else sampling
    for flag, field in _SAMPLING_FLAGS:
        value = getattr(chosen, field)
        if value is not None:
            yield from (flag, repr(value))
