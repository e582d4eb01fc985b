# SPDX-License-Identifier: Apache-2.0
"""Decide on the controller what is to be done to a host: the same comparison that `llamarig apply` shows."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from llamarig.converge.decide import decide
from llamarig.errors import RigError


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validated, arguments = self.validate_argument_spec(
            argument_spec={
                "wanted": {"type": "dict", "required": True},
                "observed": {"type": "dict", "required": True},
                "full": {"type": "bool", "default": False},
            }
        )
        try:
            decided = decide(arguments["wanted"], arguments["observed"], full=arguments["full"])
        except RigError as error:
            return {**result, "failed": True, "msg": str(error)}
        return {**result, "changed": False, **decided.to_json()}
