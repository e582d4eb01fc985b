"""What nvidia-smi tells. Texts: composed after its documented CSV form, not recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.gpu_check import smi
from scripts.gpu_check.words import CannotAskError

UUID = "GPU-11111111-2222-3333-4444-555555555555"
OTHER = UUID.replace("1111", "9999", 1)
CARDS = (
    f"{UUID}, NVIDIA GeForce RTX 4090, 00000000:01:00.0, 580.95.05, 8.9, 24564, 484, 900\n"
    f"{OTHER}, NVIDIA H200, 00000000:C1:00.0, 580.95.05, 9.0, 143771, 600, 4\n"
)


def answers(cards: str = CARDS, apps: str = "") -> smi.Ask:
    return lambda query: cards if query.startswith("--query-gpu") else apps


def test_cards_are_read_and_the_freest_is_taken() -> None:
    found = smi.cards(answers())
    assert [(card.bus_id, card.architecture, card.reserved_mib) for card in found] == [
        ("0000:01:00.0", "89", 484.0),
        ("0000:c1:00.0", "90", 600.0),
    ]
    assert smi.chosen(found, None).name == "NVIDIA H200"
    for wanted in (UUID, "0000:01:00.0", "01:00.0"):
        assert smi.chosen(found, wanted).uuid == UUID
    assert smi.used_mib(UUID, answers()) == 900.0


def test_a_card_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(CannotAskError) as caught:
        smi.chosen(smi.cards(answers()), "03:00.0")
    assert "0000:01:00.0 (NVIDIA GeForce RTX 4090)" in caught.value.fix


@pytest.mark.parametrize(
    "text", ["", f"{UUID}, Card, 00000000:01:00.0, 580, 8.9, [N/A], [N/A], [N/A]\n", "No devices\n"]
)
def test_a_driver_without_a_card_that_tells_its_memory_is_refused(text: str) -> None:
    with pytest.raises(CannotAskError, match="no card with memory of its own"):
        smi.cards(answers(text))


def test_programs_are_read_with_or_without_their_memory() -> None:
    found = smi.apps(answers(apps=f"812, {UUID}, 512\n813, {UUID}, [N/A]\nx, {UUID}, 1\n"))
    assert [(app.pid, app.mib) for app in found] == [(812, 512.0), (813, None)]


def test_hostile_names_cannot_steer_a_terminal() -> None:
    [card] = smi.cards(answers(f"{UUID}, \x1b[31mred, 00000000:01:00.0, 580, 8.9, 1, 1, 1\n"))
    assert "\x1b" not in card.name


def test_without_nvidia_smi_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(CannotAskError) as caught:
        smi.nvidia_smi("--query-gpu=uuid")
    assert "--backend cpu" in caught.value.fix


@pytest.mark.parametrize("cell", ["\u00b2\u00b2", "9" * 400, "1.", "-1", "\u0661"])
def test_what_is_no_figure_is_none(cell: str) -> None:
    assert smi.mib(cell) is None
    assert smi.apps(answers(apps=f"{cell}, {UUID}, 1\n")) == []
    assert smi.mib("24564.5") == 24564.5


def test_a_program_that_does_not_start_cannot_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_bytes(b"\x7fELF")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotAskError, match="cannot be run: Exec format error"):
        smi.nvidia_smi("--query-gpu=uuid")
