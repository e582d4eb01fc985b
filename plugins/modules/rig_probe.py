#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Ask the running servers of a host what they are, and let each answer one short request.

Standard library only: this runs on the host, as root, and reads what others wrote. Every answer is bounded in
time and size, a key goes only to a socket that the unit's own process listens on, and no key is ever returned.
"""

from __future__ import annotations

import http
from typing import Any

from ansible.module_utils import rig_measure, rig_talk, rig_witness
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: rig_probe
short_description: Ask running llama-server services what they are
description:
  - Runs on the host itself and asks each service for its health, properties, slots, models and metrics, whether it
    refuses a request without a key, and for one short completion.
  - Reads the lines of the last start that tell where the engine put its memory, and the driver's account of it.
  - A key is read on the host, sent only to a socket that the unit's own process listens on, and never returned.
  - Changes nothing. What it returns is what others said, clipped in size, and is to be treated as hostile text.
options:
  services:
    description: The services to ask.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The service's name.
        type: str
        required: true
      unit:
        description: Its systemd unit.
        type: str
        required: true
      address:
        description: Address it listens on, or the path of its unix socket.
        type: str
        required: true
      port:
        description: TCP port; 0 for a unix socket.
        type: int
        default: 0
      tls:
        description: Whether it speaks TLS.
        type: bool
        default: false
      key_file:
        description: File on the host that holds its API keys, one a line; empty when it asks for none.
        type: str
        default: ""
      gpu:
        description: Whether the driver is to be asked for the memory of its process.
        type: bool
        default: false
      release:
        description: Directory of the release that it should run from.
        type: str
        default: ""
      fit:
        description:
          - Arguments for the release's own llama-fit-params, which then is asked too, without a card to see. Only
            for a release that was proven. Empty when its memory is not to be measured.
        type: list
        elements: str
        default: []
  timeout:
    description: Seconds that one plain request may take.
    type: int
    default: 10
  completion_timeout:
    description: Seconds that the completion may take.
    type: int
    default: 120
  tokens:
    description: Tokens that the completion may have.
    type: int
    default: 32
author:
  - llamarig (@llamarig)
"""

EXAMPLES = r"""
- name: Ask the chat service
  rig_probe:
    services:
      - {name: chat, unit: llama-chat.service, address: 127.0.0.1, port: 8080, key_file: /etc/llamarig/keys/chat.keys}
  register: probed
"""

RETURN = r"""
probed:
  description: What each service said, by name.
  returned: always
  type: dict
"""

SCHEMA = 1


def _scrubbed(value: Any, key: str) -> Any:
    """``value`` without the key, should the server have said it back."""
    if isinstance(value, str):
        return value.replace(key, "***")
    if isinstance(value, dict):
        return {_scrubbed(name, key): _scrubbed(item, key) for name, item in value.items()}
    if isinstance(value, list):
        return [_scrubbed(item, key) for item in value]
    return value


def _talk(service: dict[str, Any], limits: dict[str, int], ours: bool) -> tuple[dict[str, Any], str]:
    """Every question to one service, and the key that was used."""
    connect, seconds = rig_talk.connector(service), limits["timeout"]
    said: dict[str, Any] = {
        "health": rig_talk.ask(connect, "/health", seconds),
        "open": rig_talk.ask(connect, "/props", seconds),
    }
    said["open"].pop("json", None)
    key, withheld = ("", "")
    if service["key_file"]:
        said["wrong-key"] = rig_talk.ask(connect, "/props", seconds, "not-a-key-of-this-service")
        said["wrong-key"].pop("json", None)
        key, withheld = rig_talk.first_key(service["key_file"])
        if not ours:
            key, withheld = "", "the key is not sent to a socket that the unit does not own"
    said["withheld"] = withheld
    if withheld:
        return said, key
    said["props"] = rig_talk.kept_props(rig_talk.ask(connect, "/props", seconds, key))
    said["slots"] = rig_talk.kept_slots(rig_talk.ask(connect, "/slots", seconds, key))
    said["models"] = rig_talk.kept_models(rig_talk.ask(connect, "/v1/models", seconds, key))
    metrics = rig_talk.ask(connect, "/metrics", seconds, key)
    said["metrics"] = rig_talk.kept_metrics(metrics, metrics.get("text", ""))
    if said["health"].get("status") == http.HTTPStatus.OK:
        body = rig_talk.completion_body(limits["tokens"])
        answer = rig_talk.ask(connect, "/v1/chat/completions", limits["completion_timeout"], key, body)
        said["completion"] = rig_talk.kept_completion(answer)
    return said, key


def probe_one(service: dict[str, Any], limits: dict[str, int]) -> dict[str, Any]:
    """Everything about one service."""
    try:
        state = rig_witness.unit_state(service["unit"])
    except OSError as error:
        state = {"error": str(error)}
    pid = int(state.get("MainPID", "0") or 0)
    owned = rig_witness.owner(service, pid)
    said, key = _talk(service, limits, bool(owned["ours"]))
    said["owner"] = owned
    said["journal"] = rig_witness.journal(state.get("InvocationID", ""))
    said["mapped"] = (
        rig_witness.mapped(pid, service["release"]) if pid else {"outside": [], "models": [], "error": "no process"}
    )
    if service["fit"] and pid:
        said["process"] = rig_measure.process_kib(pid)
        said["fit"] = rig_measure.fit(service["release"], service["fit"], pid)
    clipped: dict[str, Any] = rig_talk.clip(said)
    if not key:
        return clipped
    scrubbed: dict[str, Any] = _scrubbed(clipped, key)
    return scrubbed


def probe(services: list[dict[str, Any]], limits: dict[str, int]) -> dict[str, Any]:
    """All services, one after the other: a completion on one must not slow that of another."""
    answers = {service["name"]: probe_one(service, limits) for service in services}
    on_gpu = any(service["gpu"] for service in services)
    # Asked last: the memory of a process is complete only after its first request.
    return {
        "schema": SCHEMA,
        "services": answers,
        "vram": rig_witness.vram() if on_gpu else {"processes": [], "error": ""},
    }


def main() -> None:
    service = {
        "name": {"type": "str", "required": True},
        "unit": {"type": "str", "required": True},
        "address": {"type": "str", "required": True},
        "port": {"type": "int", "default": 0},
        "tls": {"type": "bool", "default": False},
        "key_file": {"type": "str", "default": "", "no_log": False},
        "gpu": {"type": "bool", "default": False},
        "release": {"type": "str", "default": ""},
        "fit": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(
        argument_spec={
            "services": {"type": "list", "elements": "dict", "required": True, "options": service},
            "timeout": {"type": "int", "default": 10},
            "completion_timeout": {"type": "int", "default": 120},
            "tokens": {"type": "int", "default": 32},
        },
        supports_check_mode=True,
    )
    limits = {name: module.params[name] for name in ("timeout", "completion_timeout", "tokens")}
    module.exit_json(changed=False, probed=probe(module.params["services"], limits))


if __name__ == "__main__":
    main()
