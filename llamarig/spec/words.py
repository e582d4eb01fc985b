"""What a key's value has to look like, in words and by example."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import StringConstraints

from llamarig.spec import base, engine, hardware, host, models, rollout, service


def _pattern(kind: Any) -> str:
    for each in get_args(kind):
        if isinstance(each, StringConstraints) and isinstance(each.pattern, str):
            return each.pattern
    raise TypeError(f"{kind} has no pattern")


def _field(model: Any, name: str) -> str:
    """The pattern of a field whose type has no name of its own."""
    for meta in (*model.model_fields[name].metadata, *get_args(model.model_fields[name].annotation)):
        for each in (meta, *get_args(meta)):
            pattern = getattr(each, "pattern", None)
            if isinstance(pattern, str):
                return pattern
    raise TypeError(f"{model}.{name} has no pattern")


PATTERNS: dict[str, tuple[str, str]] = {
    _pattern(base.Name): ("a name of lower-case letters, digits and dashes, at most 31, a letter first", "chat"),
    _pattern(base.HostName): ("one DNS label: lower-case letters, digits and inner dashes, at most 63", "atelier"),
    _pattern(base.Sha256): ("a sha256: 64 lower-case hex digits", "unlocked"),
    _pattern(base.Commit): ("a git commit: 9 to 40 lower-case hex digits", "4df29be4f"),
    _pattern(engine.Requirement): ("an exact Python distribution, `name==version`", "llama_cpp_python==0.3.35"),
    _field(hardware.Driver, "revision"): ("a Debian revision: digits, letters and .+~", "1"),
    _pattern(engine.ImageRef): ("a container image as docker knows it, at most 255 characters", "debian:13"),
    _pattern(engine.OptionName): ("a CMake option that begins with GGML_ or LLAMA_", "GGML_CUDA_FA_ALL_QUANTS"),
    _pattern(engine.Architecture): ("a CUDA architecture with its number", "120a-real"),
    _pattern(hardware.BusId): ("a PCI address as lspci prints it", '"01:00.0"'),
    _pattern(hardware.GpuUuid): (
        "a GPU's UUID as nvidia-smi -L prints it",
        "GPU-01234567-89ab-cdef-0123-456789abcdef",
    ),
    _pattern(hardware.Fingerprint): (
        "a key's whole fingerprint in capitals, without spaces",
        "0123456789ABCDEF0123456789ABCDEF01234567",
    ),
    _pattern(host.UserName): ("a Linux user name", "root"),
    _pattern(service.ClientName): ("a client's name: lower-case letters, digits, `.`, `_` and `-`", "laptop"),
    _pattern(service.EnvironmentName): ("an environment variable's name in capitals", "GGML_CUDA_GRAPH_OPT"),
    _field(hardware.Os, "release"): ("the release's number", '"13"'),
    _field(hardware.Gpu, "model"): ("a card's name in the catalog", "rtx-4090"),
    _field(hardware.Driver, "version"): ("a driver's whole version", "610.57.04"),
    _field(hardware.Cuda, "version"): ("a toolkit's version", "12.9.86"),
    _field(host.Kernel, "version"): ("a kernel as `uname -r` prints it", "6.12.117+deb13-amd64"),
    _pattern(host.MacAddress): ("a MAC address in lower-case hex with colons", "01:23:45:67:89:ab"),
    _pattern(host.TimeZone): ("a time zone of the tz database", "Europe/Berlin"),
    _pattern(rollout.Percent): ("a share from 1% to 100%", '"25%"'),
    _field(models.ModelFile, "repo"): ("a repository of the model hub, `owner/name`", "someone/Some-Model-GGUF"),
}
"""Pattern -> (what is expected, an example)."""
SAMPLES = {"rollout.by": "room"}
"""Values for keys whose form others share, and whose meaning is their own."""

EXAMPLES: dict[str, str] = {
    "schema-version": "schema-version: 1",
    "host": "host: atelier",
    "os": 'os: {distribution: debian, release: "13"}',
    "distribution": "distribution: debian",
    "release": 'release: "13"',
    "fp32-tflops": "fp32-tflops: 82.6",
    "engine": "engine: {commit: …, build-number: …, source: {…}, backend: cpu}",
    "commit": "commit: 4df29be4f",
    "build-number": "build-number: 10454",
    "source": "source: {sdist: llama_cpp_python==0.3.35, sha256: unlocked}",
    "backend": "backend: cuda, or cpu",
    "models": "models: {NAME: {repo: …, revision: unlocked, file: …, sha256: unlocked, size: unlocked}}",
    "sha256": "sha256: unlocked",
    "size": "size: unlocked",
    "services": "services: {chat: {model: NAME, context: 16384, listen: {port: 8080}}}",
    "model": "model: NAME, one of the names under `models`",
    "context": "context: 16384",
    "listen": "listen: {port: 8080}",
    "reason": "reason: why this is right here",
    "type": "type: draft-mtp",
    "version": "version: 610.57.04",
    "flavour": "flavour: open",
    "total-mib": "total-mib: 65536",
    "certificate": "certificate: /etc/ssl/certs/host.pem",
    "key": "key: /etc/ssl/private/host.key",
    "mac": "mac: 01:23:45:67:89:ab",
}
"""How a key that must be there is written."""


def example(key: str, section: str) -> str:
    """How ``key`` is written in ``section``, for a fix."""
    if section.startswith("gpus") and key == "model":
        return "model: rtx-4090, a name of the catalog"
    return EXAMPLES.get(key, f"{key}: …")
