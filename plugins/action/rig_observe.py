# SPDX-License-Identifier: Apache-2.0
"""Look at a host, and hold the key files that it has against those on the controller (llamarig.converge.key_files)."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from llamarig.converge.key_files import judge, key_text, new_salt

CONTROLLERS = "key-files"
"""The part of a probe list that is the controller's own and goes to no host."""


class ActionModule(ActionBase):
    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        probe = arguments.get("probe")
        texts: dict[str, str | None] = {}
        if isinstance(probe, dict) and isinstance(probe.get(CONTROLLERS), dict):
            project = str((task_vars or {}).get("llamarig_project", "."))
            texts = {path: self._text(str(source), project) for path, source in probe[CONTROLLERS].items()}
            arguments["probe"] = {key: value for key, value in probe.items() if key != CONTROLLERS}
        salt = new_salt() if texts else ""
        arguments["salt"] = salt
        answer = self._execute_module("rig_observe", module_args=arguments, task_vars=task_vars)
        answer.pop("invocation", None)
        if isinstance(answer.get("observed"), dict):
            judge(answer["observed"].get("credentials"), salt, texts)
        return {**result, **answer}

    def _text(self, source: str, project: str) -> str | None:
        """The keys on the controller; None where they cannot be read here, of which `check` warns."""
        try:
            return key_text(self._loader, source, project)
        except (AnsibleError, OSError, UnicodeError):
            return None
