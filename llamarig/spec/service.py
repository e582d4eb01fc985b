"""One llama-server: what it serves, where, with how much memory."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from llamarig.spec.base import (
    AbsolutePath,
    MiB,
    Name,
    OneLine,
    Reason,
    RelativePath,
    ShownName,
    SpecModel,
    SpecValueError,
)

KvType = Literal["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"]
"""KV cache types of llama.cpp; quantised V needs flash attention."""

ClientName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]

EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]

Modality = Literal["text", "vision", "audio"]


def _text_only() -> list[Modality]:
    return ["text"]


class KvCache(SpecModel):
    """Types of the two halves of the KV cache."""

    k: KvType = "f16"
    """Type of the keys."""
    v: KvType = "f16"
    """Type of the values; a quantised one needs flash attention."""


class Speculation(SpecModel):
    """Speculative decoding: from the model's own MTP head, a drafter, or n-grams."""

    type: Literal["draft-mtp", "draft-model", "eagle3", "dflash", "ngram-mod", "ngram-simple"]
    """``draft-model``, ``eagle3`` and ``dflash`` need a drafter, a model of its own."""
    n_max: Annotated[int, Field(ge=1, le=64)] = 3
    """Tokens drafted at most; each costs one more copy of a recurrent state."""
    n_min: Annotated[int, Field(ge=0, le=64)] = 0
    """Shorter drafts are not tried."""
    p_min: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Tokens that the draft holds less likely end it."""
    kv_cache: KvType = "f16"
    """KV type of the draft; it is not inherited from the main cache."""
    model: Name | None = None
    """The drafter, for ``draft-model``, ``eagle3`` and ``dflash``."""
    gpu: Name | None = None
    """The card that holds the drafter."""
    ngram_default: bool = False
    """Also ``--spec-default`` (ngram-mod, up to 64 tokens)."""


class Keys(SpecModel):
    """API keys: generated on the host for the named clients, or taken from a file on the controller."""

    clients: list[ClientName] = Field(default_factory=lambda: ["default"])
    """Whose keys the host generates; each is shown once, when it is made."""
    file: OneLine | None = None
    """A file on the controller, one key a line, instead of generated keys. May be an ansible-vault file."""


class NoKeys(SpecModel):
    """No key at all: loopback or socket only, and with a reason."""

    reason: Reason
    """Why that is right here; plan and check show it."""


class Tls(SpecModel):
    """Certificate and key, as paths on the host, read through systemd credentials."""

    certificate: AbsolutePath
    """A PEM file with the chain."""
    key: AbsolutePath
    """A PEM file with the private key."""


class Listen(SpecModel):
    """Where the server listens and who may ask it."""

    address: OneLine = "127.0.0.1"
    """An IP address, or the path of a unix socket, which ends in ``.sock`` and takes no port."""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Needed for an IP address; 0 (not given) for a socket."""
    keys: Keys = Keys()
    """Who may ask; generated when nothing is said."""
    keyless: NoKeys | None = None
    """Serve without keys."""
    tls: Tls | None = None
    """Encrypt."""
    plaintext: Literal["accepted"] | None = None
    """Needed beyond loopback when there is no TLS."""
    cors_origins: list[OneLine] = Field(default_factory=list)
    """Web origins whose pages may ask from a browser."""
    allow: list[OneLine] = Field(default_factory=list)
    """Networks in CIDR form that may connect, beyond loopback; empty: any, when not on loopback."""


class Sampling(SpecModel):
    """Default sampling parameters; a request may give its own."""

    temperature: Annotated[float, Field(ge=0.0, le=10.0)] | None = None
    """0 always takes the likeliest token."""
    top_p: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """Keep the likeliest tokens up to this sum."""
    top_k: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Keep this many tokens; 0 keeps all."""
    min_p: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """Drop tokens below this part of the likeliest one."""
    presence_penalty: Annotated[float, Field(ge=-2.0, le=2.0)] | None = None
    """Against endless repetition."""
    repeat_penalty: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    """1 is none."""
    seed: Annotated[int, Field(ge=0, le=4_294_967_295)] | None = None
    """The same for every request when given."""


class Lora(SpecModel):
    """An adapter laid on the model."""

    model: Name
    """The adapter's GGUF, one of the host's models."""
    scale: Annotated[float, Field(ge=-16.0, le=16.0)] = 1.0
    """How strongly it is laid on."""


class Router(SpecModel):
    """One server in front of several models, each in a process of its own."""

    models: Annotated[list[Name], Field(min_length=1)]
    """The models that it chooses from."""
    models_max: Annotated[int, Field(ge=1, le=64)] = 1
    """Loaded at once."""


class AcceptMargin(SpecModel):
    """Leave to run with less free memory than the margin asks for."""

    reason: Reason
    """Why less is right here; plan and check show it."""


class Expect(SpecModel):
    """What the user wants to hold the running service against."""

    decode_tok_s: Annotated[float, Field(gt=0.0)] | None = None
    """Generated tokens a second, at least."""
    prefill_tok_s: Annotated[float, Field(gt=0.0)] | None = None
    """Read tokens a second, at least."""
    modalities: list[Modality] = Field(default_factory=_text_only)
    """What the running server must say that it takes."""


class Service(SpecModel):
    """One llama-server process under its own unit ``llama-<name>.service``."""

    model: Name
    """One of ``models``."""
    gpu: Name | None = None
    """The card; none for the CPU backend."""
    gpus: list[Name] = Field(default_factory=list)
    """Several cards, for a model split over them (``split-mode``); the first one also takes what is not split."""
    split_mode: Literal["none", "layer", "tensor"] = "none"
    """``layer`` puts whole layers on each card of ``gpus``, ``tensor`` a part of every tensor."""
    tensor_split: list[Annotated[float, Field(ge=0.001, le=1_000_000.0)]] = Field(default_factory=list)
    """Each card's share, in the order of ``gpus``; by default layers go by usable memory, tensors in equal parts."""
    projector_gpu: Name | None = None
    """The card that holds the projector, when it is not the service's own."""
    projector_on_cpu: bool = False
    """Keep the projector in host RAM: the CPU reads images, slower."""
    context: Annotated[int, Field(ge=256, le=16_777_216)]
    """Tokens in the window, over all slots (divided among them unless ``kv-unified``)."""
    kv_cache: KvCache = KvCache()
    """Types of the KV cache."""
    kv_unified: bool = False
    """One cache that all slots share, instead of a part for each."""
    speculation: Speculation | None = None
    """Draft tokens ahead, and check them in one pass."""
    batch: Annotated[int, Field(ge=32, le=65536)] = 2048
    """Tokens that are handed to the engine at once."""
    ubatch: Annotated[int, Field(ge=32, le=65536)] = 512
    """Tokens that are computed at once; less takes less memory."""
    parallel: Annotated[int, Field(ge=1, le=256)] = 1
    """Slots: requests served at once."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """CPU threads; the engine's own choice when not given."""
    flash_attention: Literal["on", "off", "auto"] = "on"
    """``auto`` leaves it to the engine."""
    gpu_layers: Annotated[int, Field(ge=0, le=999)] | Literal["all"] = "all"
    """Layers on cards, counted from the output down, the output as one of them."""
    experts_on_cpu: Annotated[int, Field(ge=0, le=999)] | Literal["all"] = 0
    """Layers, from the first, whose experts stay in host RAM."""
    tensor_overrides: list[OneLine] = Field(default_factory=list)
    """``pattern=place`` pairs for single tensors, the first match counts: a regular expression that is searched in the
    tensor's name, and ``CPU`` or one of the service's cards."""
    lora: list[Lora] = Field(default_factory=list)
    """LoRA adapters that are laid on the model at start."""
    router: Router | None = None
    """Serve several models under one address, with the service's settings for each. Planned and rendered; apply refuses
    it yet."""
    cache_ram_mib: MiB = 0
    """Host RAM for the prompt cache; the engine's own default would be 8,192."""
    context_checkpoints: Annotated[int, Field(ge=0, le=1024)] = 4
    """Checkpoints a slot keeps in host RAM; the engine's own default would be 32."""
    load_mode: Literal["auto", "mmap", "none", "mlock", "dio"] = "mmap"
    """How the file is read into memory."""
    listen: Listen
    """Where it listens, and who may ask."""
    alias: Annotated[ShownName, Field(min_length=1, max_length=200)] | None = None
    """The name that the API shows; the model's name, as under `models`, when not given."""
    sampling: Literal["engine", "thinking", "non-thinking"] | Sampling = "engine"
    """``thinking`` and ``non-thinking`` are the published settings of the reference model."""
    jinja: bool = True
    """Use the model's own chat template."""
    chat_template: RelativePath | None = None
    """A template file in the project, instead of the one in the model."""
    reasoning: Literal["on", "off", "auto"] | None = None
    """Whether the model thinks first."""
    reasoning_preserve: bool | None = None
    """Keep earlier thoughts in the conversation."""
    metrics: bool = True
    """Serve counters under ``/metrics``."""
    image_min_tokens: Annotated[int, Field(ge=1, le=65536)] | None = None
    """Tokens that an image takes at least."""
    image_max_tokens: Annotated[int, Field(ge=1, le=65536)] | None = None
    """Tokens that an image takes at most; the projector's buffers grow with them."""
    margin_mib: Annotated[int, Field(ge=0, le=1 << 20)] = 512
    """Memory of the card that stays free, taken from what is usable."""
    accept_margin: AcceptMargin | None = None
    """Run with less than the margin."""
    environment: dict[EnvironmentName, OneLine] = Field(default_factory=dict)
    """Variables that tune the engine; those that llamarig plans are refused."""
    memory_max_mib: MiB | None = None
    """systemd's MemoryMax; by default what the plan says the process needs, and a quarter more."""
    start_timeout_s: Annotated[int, Field(ge=5, le=7200)] | None = None
    """Seconds until the server must answer; by default from the size of the model."""
    expect: Expect = Expect()
    """What the proof and the benchmarks hold it against."""
    unsafe_args: list[OneLine] = Field(default_factory=list)
    """Raw arguments that the schema keeps out on purpose; each is a finding."""

    @model_validator(mode="after")
    def _one_placement(self) -> Self:
        if self.gpu is not None and self.gpus:
            raise SpecValueError("both `gpu` and `gpus` are given", "keep one of them")
        return self

    @property
    def models_read(self) -> set[str]:
        """Every model that the service reads: its own, its drafter, its adapters, those of its router."""
        drafter = self.speculation.model if self.speculation is not None else None
        found = {self.model, *(adapter.model for adapter in self.lora)}
        found |= set(self.router.models) if self.router is not None else set()
        return found | ({drafter} if drafter is not None else set())
