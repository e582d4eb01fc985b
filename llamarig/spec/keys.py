"""What to say of a key that a spec does not have: a near miss, the engine's own word, or a flag kept out."""

from __future__ import annotations

import difflib

from llamarig.spec.fleet_file import SECTIONS
from llamarig.spec.tree import Loc
from llamarig.spec.walk import keys_at, places

OPENING = {
    "tools": "lets whoever talks to the model run programs on the host",
    "tools-runtime": "lets whoever talks to the model run programs on the host",
    "agent": "lets whoever talks to the model run programs on the host",
    "mcp": "makes the server start or call other programs",
    "mcp-servers-config": "makes the server start or call other programs",
    "mcp-servers-json": "makes the server start or call other programs",
    "ui-mcp-proxy": "makes the server fetch any address for whoever asks",
    "webui-mcp-proxy": "makes the server fetch any address for whoever asks",
    "rpc": "hands the model's memory to an unauthenticated network protocol",
    "media-path": "lets requests read files of the host",
    "slot-save-path": "lets requests write files on the host",
    "props": "lets requests change the server's settings",
    "path": "serves a directory of the host",
    "api-prefix": "moves the endpoints that the proofs rely on",
    "models-preset": "lets a file decide what is served",
    "model-url": "downloads a file that nobody pinned",
    "mmproj-url": "downloads a file that nobody pinned",
    "hf-repo": "downloads a file that nobody pinned",
    "hf-file": "downloads a file that nobody pinned",
    "docker-repo": "downloads a file that nobody pinned",
    **dict.fromkeys(
        (
            *("mu", "mmu", "dr", "hf", "hfr", "hff", "hfd", "hfrd", "hfv", "hfrv", "hffv"),
            *("hf-repo-draft", "spec-draft-hf", "hf-repo-v", "hf-file-v", "lora-url", "control-vector-url"),
        ),
        "downloads a file that nobody pinned",
    ),
    "log-prompts-dir": "writes what users ask to disk",
    "log-file": "writes what users ask to disk; the journal has the log",
    "verbose": "writes what users ask into the log",
    "log-verbose": "writes what users ask into the log",
    "log-verbosity": "writes what users ask into the log",
    "verbosity": "writes what users ask into the log",
    "lv": "writes what users ask into the log",
    "reuse-port": "lets two servers share a port, so that nobody knows which one answers",
    "cors-credentials": "lets other web pages use a user's login",
}
"""Engine flags that open the machine; none of them is a key."""

_SECRETS = {"api-key", "hf-token", "password", "become-password", "token", "secret", "private-key"}

_ENGINE_WORDS = {
    "ctx-size": "context",
    "ctx": "context",
    "n-ctx": "context",
    "cache-type-k": "kv-cache: {k: …}",
    "cache-type-v": "kv-cache: {v: …}",
    "ctk": "kv-cache: {k: …}",
    "ctv": "kv-cache: {v: …}",
    "batch-size": "batch",
    "ubatch-size": "ubatch",
    "n-gpu-layers": "gpu-layers",
    "ngl": "gpu-layers",
    "flash-attn": "flash-attention",
    "fa": "flash-attention",
    "np": "parallel",
    "slots": "parallel",
    "cache-ram": "cache-ram-mib",
    "ctx-checkpoints": "context-checkpoints",
    "device": "gpu",
    "main-gpu": "gpu",
    "mmproj": "projector, under models.NAME",
    "mmproj-device": "projector-gpu",
    "spec-type": "speculation: {type: …}",
    "spec-draft-n-max": "speculation: {n-max: …}",
    "spec-draft-n-min": "speculation: {n-min: …}",
    "spec-draft-p-min": "speculation: {p-min: …}",
    "spec-draft-type-k": "speculation: {kv-cache: …}",
    "spec-draft-type-v": "speculation: {kv-cache: …}",
    "spec-default": "speculation: {ngram-default: true}",
    "temp": "temperature",
    "port": "listen: {port: …}",
    "address": "listen: {address: …}",
    "host": "listen: {address: …}",
    "api-key-file": "listen: {keys: {file: …}}",
    "ssl-cert-file": "listen: {tls: {certificate: …}}",
    "ssl-key-file": "listen: {tls: {key: …}}",
    "cors-origins": "listen: {cors-origins: […]}",
    "mlock": "load-mode: mlock",
    "mmap": "load-mode: mmap",
    "no-mmap": "load-mode: none",
    "direct-io": "load-mode: dio",
    "chat-template-file": "chat-template",
    "load-mode": "load-mode",
    "lm": "load-mode",
    "c": "context",
    "b": "batch",
    "ub": "ubatch",
    "t": "threads",
    "a": "alias",
    "dev": "gpu",
    "cram": "cache-ram-mib",
    "ctxcp": "context-checkpoints",
    "kvu": "kv-unified",
    "mm": "projector, under models.NAME",
    "spec-draft-model": "speculation: {model: …}",
    "spec-draft-device": "speculation: {gpu: …}",
    "env": "environment",
    "args": "unsafe-args",
    "extra-args": "unsafe-args",
    "n-cpu-moe": "experts-on-cpu",
    "cpu-moe": "experts-on-cpu: all",
    "override-tensor": "tensor-overrides",
    "repeat-last-n": "unsafe-args",
}
"""The engine's flags under the names that a service has for them."""

_MOVED: dict[tuple[str, ...], str] = {
    ("connection", "wake-on-lan"): "`wake: {mac: …}` at the top level of the spec",
    ("maintenance", "drain"): "`rollout: {busy: {drain-s: …}}` into fleet.yml",
}
"""Keys of earlier versions, which refused them as not built, and where they are now."""

_INDEX_KEYS = {"index", "id", "gpu-id", "device", "minor"}


def unknown_key(loc: Loc) -> tuple[str, str]:
    """Message and fix for a key that is not part of the schema."""
    key = str(loc[-1])
    section = loc[:-1]
    where = ".".join(map(str, section)) or "a host spec"
    plain = key.lstrip("-").replace("_", "-").lower()
    allowed = keys_at(section)
    if plain in allowed:
        return f"`{key}` is written `{plain}`", f"rename it to `{plain}`"
    special = _special(key, plain, section, allowed)
    if special is not None:
        return special
    message = f"`{key}` is no key of {where}"
    near = difflib.get_close_matches(plain, allowed, n=1, cutoff=0.7)
    if near:
        return message, f"did you mean `{near[0]}`?"
    elsewhere = [place for place in places().get(plain, ()) if place != ".".join(map(str, section))]
    if elsewhere:
        return message, f"`{plain}` belongs in {' or '.join(place or 'the top level' for place in elsewhere[:3])}"
    return message, f"remove it; the keys here are {', '.join(allowed)}" if allowed else "remove it"


def _special(key: str, plain: str, section: Loc, allowed: list[str]) -> tuple[str, str] | None:
    if section[:1] == ("gpus",) and plain in _INDEX_KEYS:
        return (
            f"a card is never named by its index (`{key}`): the order changes with drivers, slots and tools",
            "give `bus-id` (lspci prints it) or `uuid` (nvidia-smi -L prints it)",
        )
    if plain in _SECRETS:
        return (
            f"`{key}`: a secret is never written into a spec",
            "name a file on the controller instead: `listen: {keys: {file: …}}`, or `become-password-file`",
        )
    if not section and plain in SECTIONS:
        return f"`{key}` is about a fleet, not about one host", "write it into fleet.yml, beside `defaults`"
    if (moved := _MOVED.get((*map(str, section), plain))) is not None:
        return f"`{key}` is no key of {'.'.join(map(str, section))}", f"write {moved}"
    return _of_a_service(key, plain, allowed) if section[:1] == ("services",) else None


def _of_a_service(key: str, plain: str, allowed: list[str]) -> tuple[str, str] | None:
    if plain in OPENING:
        return (
            f"`{key}` opens the machine: it {OPENING[plain]}",
            "leave it out; who must have it writes the flag under `unsafe-args`, which every check then shows",
        )
    if plain in _ENGINE_WORDS and _ENGINE_WORDS[plain].split(":")[0] in (*allowed, "projector, under models.NAME"):
        return f"the engine's `{key}` has another name here", f"write `{_ENGINE_WORDS[plain]}`"
    return None


def opening_flag(argument: str) -> str | None:
    """Why a raw argument opens the machine, or None when it is not known to."""
    if not argument.startswith("-"):
        return None
    return OPENING.get(argument.lstrip("-").split("=")[0])


def planned_flag(argument: str) -> str | None:
    """The key that already sets what a raw argument would set, or None."""
    if not argument.startswith("-"):
        return None
    plain = argument.lstrip("-").split("=")[0].removeprefix("no-")
    own = plain if plain in keys_at(("services", "NAME")) else None
    return _ENGINE_WORDS.get(argument.lstrip("-").split("=")[0], own)
