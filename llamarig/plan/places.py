"""Where things lie on the host, as the arguments name them."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import urlsplit

from llamarig.spec.host import HostSpec
from llamarig.spec.models import ModelFile

SERVER = "/opt/llamarig/current/bin/llama-server"
TEMPLATES = "/etc/llamarig/templates"
PRESETS = "/etc/llamarig/presets"
"""Where the models of a router are listed."""


def file_name(file: ModelFile) -> str:
    """The name that a file has where it comes from; the engine finds shards by it."""
    url = urlsplit(file.url).path if file.url else None
    origin = file.file or file.member or file.host_path or file.controller_path or url or ""
    return PurePosixPath(origin).name


def model_path(spec: HostSpec, name: str, file: ModelFile | None = None) -> str:
    """The link under ``models-dir`` by which a service knows the model ``name``, or another file of it."""
    return f"{spec.models_dir}/{name}/{file_name(file or spec.models[name])}"


def credential(service: str, name: str) -> str:
    """Where systemd puts a credential of a service's unit."""
    return f"/run/credentials/llama-{service}.service/{name}"
