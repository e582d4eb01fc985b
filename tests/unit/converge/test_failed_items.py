"""What the callback sends of a loop that failed: words and names, never an item that may hold a file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plugins.callback import llamarig_events


def sent(monkeypatch: pytest.MonkeyPatch, **data: Any) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    monkeypatch.setattr(llamarig_events, "emit", events.append)
    task = SimpleNamespace(action="ansible.builtin.copy", name="Write", no_log=data.pop("no_log", False))
    result = SimpleNamespace(task=task, result=data, host=SimpleNamespace(get_name=lambda: "demo"))
    llamarig_events.CallbackModule().v2_runner_on_failed(result)
    return dict(events[0]["result"])


RESULTS = [
    {"item": "a", "failed": True, "msg": "no space", "stderr": ""},
    {"item": {"content": "s3cret"}, "failed": True, "msg": "denied", "_ansible_item_label": "/etc/x"},
    {"item": {"content": "s3cret"}, "failed": True, "msg": "denied"},
    {"item": "b", "changed": True},
]


def test_failed_items_come_with_their_words_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    result = sent(monkeypatch, msg="One or more items failed", results=RESULTS)
    assert result["items"] == [
        {"item": "a", "msg": "no space"},
        {"item": "/etc/x", "msg": "denied"},
        {"item": "", "msg": "denied"},
    ]


def test_a_hidden_loop_sends_no_item(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "items" not in sent(monkeypatch, no_log=True, msg="One or more items failed", results=RESULTS)
