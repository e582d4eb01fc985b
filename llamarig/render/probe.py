"""The configuration of the start probe of one service: data for ``libexec/start-probe``, no secrets."""

from __future__ import annotations

import json
from typing import Any

from llamarig.plan.types import ServicePlan
from llamarig.render.arguments import value_of
from llamarig.render.wanted import CONFIG, LIBEXEC
from llamarig.spec.service import Service

PROGRAM = f"{LIBEXEC}/start-probe"
CONFIG_ERROR = 78
"""Exit status of the probe that no restart mends (EX_CONFIG of sysexits.h)."""

CLEARED = ("LLAMA_", "GGML_", "MTMD_", "AIP_", "HF_")
"""Variables that change what the engine does: its own, and those of two hosting platforms it
heeds (``AIP_HTTP_PORT`` overrides the port). Every variable that is not planned is dropped; one
with such a name is named in the journal."""

MIN_KEY_LENGTH = 16
"""Characters. Generated keys have 32 and more; a user's own file may hold shorter ones."""

_FILE_FLAGS = ("--mmproj", "--spec-draft-model", "--chat-template-file", "--models-preset")
"""Flags that name a file which the server reads at start."""

_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")


def config_path(service: str) -> str:
    """Where the probe's configuration of a service lies on the host."""
    return f"{CONFIG}/services/{service}.json"


def is_socket(address: str) -> bool:
    """Whether ``listen.address`` is a unix socket; the engine decides by the same suffix."""
    return address.endswith(".sock")


def connect_address(address: str) -> str:
    """Where a client on the host reaches a server that listens on ``address``."""
    if is_socket(address):
        return address
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)  # noqa: S104 - compared, not listened on


def probe_config(service: Service, plan: ServicePlan, gpu: bool) -> str:
    """The JSON text for ``start-probe``."""
    address = service.listen.address
    read = [plan.model_path, *(value_of(plan.argv, flag) for flag in _FILE_FLAGS), *plan.files]
    data: dict[str, Any] = {
        "schema": 1,
        "service": plan.name,
        "address": address,
        "port": 0 if is_socket(address) else service.listen.port,
        "connect": connect_address(address),
        "keys": value_of(plan.argv, "--api-key-file"),
        "min-key-length": MIN_KEY_LENGTH,
        "certificate": value_of(plan.argv, "--ssl-cert-file"),
        "files": list(dict.fromkeys(path for path in read if path)),
        "nodes": list(_NODES) if gpu else [],
        "environment": sorted(plan.environment),
        "cleared": list(CLEARED),
        "timeout-s": plan.start_timeout_s,
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
