"""rig_cards against an nvidia-smi that stands in for the real one; its rows have the form of recorded ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import module

UUID = "GPU-11111111-2222-3333-4444-555555555555"
SMI = """\
#!/bin/sh
case "$1" in
  --query-gpu=*) echo "{uuid}, 24564, 484, {used}" ;;
  --query-compute-apps=*) printf '%s\\n' {apps} ;;
esac
"""


@pytest.fixture
def rig_cards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    loaded = module("rig_cards")
    monkeypatch.setattr(loaded, "PATH", f"{tmp_path}:/usr/bin:/bin")
    return loaded


def smi(tmp_path: Path, used: str, *apps: str) -> None:
    listed = " ".join(f"'{app}'" for app in apps) or "''"
    (tmp_path / "nvidia-smi").write_text(SMI.format(uuid=UUID, used=used, apps=listed))
    (tmp_path / "nvidia-smi").chmod(0o755)


def card(planned: float) -> dict[str, Any]:
    return {"name": "upper", "uuid": UUID, "planned_mib": planned}


def test_what_our_own_service_holds_is_planned_already(rig_cards: Any, tmp_path: Path) -> None:
    smi(tmp_path, "20100", f"812, {UUID}, 20000, /opt/llamarig/current/bin/llama-server")
    (seen,) = rig_cards.look([card(20_000.0)], {812})
    assert seen["foreign"] == 100.0
    assert seen["programs"] == []
    assert rig_cards.short_of(seen) == ""


def test_others_that_leave_too_little_are_named(rig_cards: Any, tmp_path: Path) -> None:
    smi(tmp_path, "23100", f"812, {UUID}, 20000, server", f"9, {UUID}, 3000, /usr/bin/Xwayland")
    (seen,) = rig_cards.look([card(21_500.0)], {812})
    words = rig_cards.short_of(seen)
    assert "other programs hold 3,100 and the driver 484: 520 MiB short" in words
    assert "/usr/bin/Xwayland (process 9) 3,000 MiB" in words


def test_a_card_that_the_driver_does_not_tell_of_is_passed_over(rig_cards: Any, tmp_path: Path) -> None:
    smi(tmp_path, "[N/A]")
    assert rig_cards.look([card(1.0), {**card(1.0), "uuid": "GPU-other"}], set()) == []


def test_no_driver_is_no_failure(rig_cards: Any) -> None:
    with pytest.raises(rig_cards.SilentDriverError, match="not there"):
        rig_cards.look([card(1.0)], set())


def test_a_driver_that_fails_is_quoted(rig_cards: Any, tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'No devices were found'; exit 6\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    with pytest.raises(rig_cards.SilentDriverError, match="No devices were found"):
        rig_cards.look([card(1.0)], set())
