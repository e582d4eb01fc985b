# Copyright (c) llamarig contributors. Apache-2.0 (see LICENSE).
"""Hands what happens in a run to the `llamarig` command that started it."""

from __future__ import annotations

from typing import Any

from ansible.plugins.callback import CallbackBase

from llamarig.converge.events import emit

DOCUMENTATION = r"""
name: llamarig_events
type: stdout
short_description: Send events to the llamarig command
description:
  - Prints nothing. Each event is one JSON object on the Unix socket that C(LLAMARIG_EVENTS) names.
author: llamarig contributors
extends_documentation_fragment: []
"""

RETURNED = {
    "rig_boot",
    "rig_debs",
    "rig_doctor",
    "rig_idle",
    "rig_observe",
    "rig_decide",
    "rig_lock",
    "rig_look",
    "rig_prove",
    "rig_switch",
    "rig_record",
    "rig_reboot",
}
"""Actions whose whole result the command wants; of all others it gets the words of a failure."""
WORDS = ("msg", "stderr", "stdout", "module_stderr", "module_stdout", "exception", "reason", "rc", "cmd")

MOST_ITEMS = 20


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "llamarig_events"

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:  # noqa: ARG002 - Ansible's signature
        emit({"event": "task", "task": task.name or task.action, "role": _role(task)})

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        emit({"event": "start", "host": host.get_name(), "task": task.name or task.action, "role": _role(task)})

    def v2_runner_on_ok(self, result: Any) -> None:
        self._result(result, "changed" if result.result.get("changed") else "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._result(result, "ignored" if ignore_errors else "failed")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._result(result, "unreachable")

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._result(result, "skipped")

    def v2_runner_item_on_failed(self, result: Any) -> None:
        self._result(result, "item-failed")

    def _result(self, result: Any, status: str) -> None:
        task, data = result.task, result.result
        action = task.action.rsplit(".", 1)[-1]
        event: dict[str, Any] = {
            "event": "result",
            "host": result.host.get_name(),
            "task": task.name or task.action,
            "role": _role(task),
            "action": action,
            "status": status,
        }
        hidden = bool(getattr(task, "no_log", False)) or "censored" in data
        if action in RETURNED and not hidden:
            event["result"] = {key: value for key, value in data.items() if key != "invocation"}
        elif status in {"failed", "unreachable", "ignored", "item-failed"}:
            keys = ("censored", "msg") if hidden else WORDS
            event["result"] = {key: data[key] for key in keys if data.get(key) not in (None, "")}
            if not hidden and isinstance(data.get("results"), list):
                event["result"]["items"] = _failed_items(data["results"])
        emit(event)


def _failed_items(results: list[Any]) -> list[dict[str, Any]]:
    """The words of the failed items of a loop, and each one's name where it has one: an item itself may hold a file."""
    failed = [each for each in results if isinstance(each, dict) and (each.get("failed") or each.get("unreachable"))]
    return [
        {"item": next((name for key in ("_ansible_item_label", "item") if isinstance(name := each.get(key), str)), "")}
        | {key: each[key] for key in WORDS if each.get(key) not in (None, "") and "censored" not in each}
        for each in failed[:MOST_ITEMS]
    ]


def _role(task: Any) -> str:
    role = getattr(task, "_role", None)
    return str(role.get_name()) if role is not None else ""
