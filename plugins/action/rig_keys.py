# SPDX-License-Identifier: Apache-2.0
"""Offer fresh keys to a host's key file and show each one that was used, once.

The keys are made here and go to the host inside the module's payload (standard
input of ssh): a host never sends a key back, so none can be in a result, a log
or a debug output of the connection.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from llamarig.converge.events import emit
from llamarig.converge.key_files import key_text


class ActionModule(ActionBase):
    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        arguments = dict(self._task.args)
        source = arguments.pop("source", "")
        if source:
            try:
                project = str(task_vars.get("llamarig_project", "."))
                arguments["content"] = key_text(self._loader, str(source), project)
            except (AnsibleError, OSError, UnicodeError) as error:
                return {**result, "failed": True, "msg": f"the key file {source} cannot be read: {error}"}
        clients = [str(client) for client in arguments.get("clients") or []]
        candidates = {client: secrets.token_urlsafe(32) for client in clients}
        answer = self._execute_module(
            "rig_keys", module_args={**arguments, "candidates": candidates}, task_vars=task_vars
        )
        answer.pop("invocation", None)
        if answer.get("changed") and not self._task.check_mode:
            self._show(task_vars, str(arguments["path"]), {name: candidates[name] for name in answer.get("new", [])})
        return {**result, **answer}

    def _show(self, task_vars: dict[str, Any], path: str, keys: dict[str, str]) -> None:
        host = str(task_vars.get("inventory_hostname", ""))
        service = Path(path).stem
        for client, key in keys.items():
            event = {"event": "key", "host": host, "service": service, "client": client, "key": key, "path": path}
            if not emit(event):
                Display().display(
                    f"{host}: new key of client {client} for {service}, shown once: {key}", screen_only=True
                )
