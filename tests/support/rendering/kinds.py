"""One unit of every kind that is ever rendered: with and without a card, each way of listening, models below home."""

from __future__ import annotations

from typing import Any

from llamarig.render import wanted_state
from tests.golden.cases import HERE
from tests.support.rendering.composed import changed, plan_of, spec_of

_LISTEN: dict[str, dict[str, Any]] = {
    "loopback": {"port": 8080},
    "LAN": {"address": "192.168.10.2", "port": 8080, "plaintext": "accepted", "allow": ["192.168.10.0/24"]},
    "any network": {"address": "0.0.0.0", "port": 8080, "plaintext": "accepted"},
    "socket": {"address": "/run/llama-chat/api.sock", "port": 1},
}
_HOSTS = {"GPU": "twin", "CPU": "demo"}


def _unit(host: str, listen: dict[str, Any], models_dir: str) -> str:
    chat = spec_of(host).services["chat"].model_dump(by_alias=True, exclude_unset=True)
    spec = changed(host, ("services", {"chat": {**chat, "listen": listen}}), ("models-dir", models_dir))
    files = {file.path: file.content for file in wanted_state(spec, plan_of(spec), HERE).files}
    return files["/etc/systemd/system/llama-chat.service"]


def units() -> dict[str, str]:
    """The unit's text by kind, such as ``GPU + LAN``. An open GPU server with models below home is refused."""
    found = {}
    for kind, host in _HOSTS.items():
        for place, listen in _LISTEN.items():
            found[f"{kind} + {place}"] = _unit(host, listen, "/var/lib/llamarig/models")
            if (kind, place) != ("GPU", "any network"):
                found[f"{kind} + {place}, models below /home"] = _unit(host, listen, "/home/models")
    return found
