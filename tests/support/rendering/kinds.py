"""One unit of every kind that is rendered, with the exposure that it may have.

Servers: with and without a card, each way of listening, models below home. Beside them the power limits and the nodes
of the cards. Timers are none of them: they run nothing themselves.
"""

from __future__ import annotations

from typing import Any

from llamarig.render import wanted_state
from llamarig.render.driver import NODES
from llamarig.render.power import SERVICE as POWER
from llamarig.render.wanted import UNITS, Wanted
from tests.golden.cases import HERE
from tests.support.rendering.composed import changed, plan_of, spec_of

BAR = 1.2
"""The most that ``systemd-analyze security`` may say of a unit (0 is best, 10 worst)."""
NODES_BAR = 5.3
"""The same for the nodes of the cards. A program that loads modules and makes device nodes is root, with
CAP_SYS_MODULE, CAP_MKNOD, all devices and all of /proc and /sys: no sandbox can take what these count for."""

_LISTEN: dict[str, dict[str, Any]] = {
    "loopback": {"port": 8080},
    "LAN": {"address": "192.168.10.2", "port": 8080, "plaintext": "accepted", "allow": ["192.168.10.0/24"]},
    "any network": {"address": "0.0.0.0", "port": 8080, "plaintext": "accepted"},
    "socket": {"address": "/run/llama-chat/api.sock", "port": 1},
}
_HOSTS = {"GPU": "twin", "CPU": "demo"}
_OF_THE_HOST = {"power limits": POWER, "nodes of the cards": NODES}


def _wanted(host: str, *changes: tuple[str, Any]) -> Wanted:
    spec = changed(host, *changes)
    return wanted_state(spec, plan_of(spec), HERE)


def rendered(wanted: Wanted) -> dict[str, str]:
    """The text of every service's unit by its name, whichever part of the wanted state brings it."""
    parts = (wanted.files, wanted.power.files if wanted.power else (), wanted.driver.files if wanted.driver else ())
    files = {file.path: file.content for part in parts for file in part}
    return {
        path.removeprefix(f"{UNITS}/"): text
        for path, text in files.items()
        if path.startswith(f"{UNITS}/") and path.endswith(".service")
    }


def _server(host: str, listen: dict[str, Any], models_dir: str) -> str:
    chat = spec_of(host).services["chat"].model_dump(by_alias=True, exclude_unset=True)
    changes = (("services", {"chat": {**chat, "listen": listen}}), ("models-dir", models_dir))
    return rendered(_wanted(host, *changes))["llama-chat.service"]


def units() -> dict[str, str]:
    """The unit's text by kind, such as ``GPU + LAN``. An open GPU server with models below home is refused."""
    found = {}
    for kind, host in _HOSTS.items():
        for place, listen in _LISTEN.items():
            found[f"{kind} + {place}"] = _server(host, listen, "/var/lib/llamarig/models")
            if (kind, place) != ("GPU", "any network"):
                found[f"{kind} + {place}, models below /home"] = _server(host, listen, "/home/models")
    of_the_host = rendered(_wanted(_HOSTS["GPU"]))
    return found | {kind: of_the_host[name] for kind, name in _OF_THE_HOST.items()}


def bar(kind: str) -> float:
    """The exposure that a unit of this kind of :func:`units` may have."""
    return NODES_BAR if _OF_THE_HOST.get(kind) == NODES else BAR
