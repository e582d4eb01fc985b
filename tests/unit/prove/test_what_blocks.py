"""A red check blocks only what cannot be asked after it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.proof.cases import Case, cpu_case


def colours(case: Case) -> tuple[list[str], list[str]]:
    """Names of the failed checks, and of those that were not made."""
    red = [check for check in case.judge().values() if not check.ok]
    return [each.name for each in red if not each.blocked_by], [each.name for each in red if each.blocked_by]


@pytest.mark.parametrize("change", [{"need-reload": True}, {"enabled": "disabled"}, {"enabled": ""}])
def test_a_running_process_is_asked_whatever_else_is_wrong_with_its_unit(change: dict[str, Any]) -> None:
    case = cpu_case()
    case.unit.update(change)
    assert colours(case) == (["chat/unit"], [])


def test_a_server_without_a_process_cannot_be_asked() -> None:
    case = cpu_case()
    case.unit.update({"active": "failed", "sub": "failed", "main-pid": 0})
    failed, blocked = colours(case)
    assert failed == ["chat/unit"]
    assert {"chat/health", "chat/key", "chat/completion", "chat/user"} <= set(blocked)
    assert "chat/model" not in failed + blocked


def test_a_server_that_takes_any_key_is_still_asked_about_itself() -> None:
    case = cpu_case()
    case.said["wrong-key"]["status"] = 200
    assert colours(case) == (["chat/key"], [])


def test_an_empty_value_is_named() -> None:
    case = cpu_case()
    case.unit.update({"enabled": ""})
    assert "enabled is not set instead of enabled" in case.judge()["chat/unit"].detail


def test_one_file_is_one_file() -> None:
    assert cpu_case().judge()["chat/model"].detail.startswith("1 file, ")
