"""Digits that only Unicode calls so are no numbers of a host."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from llamarig.prove.gpu import _devices, _planned_layers
from llamarig.prove.services import View


def view(**parts: Any) -> View:
    return cast("View", SimpleNamespace(**parts))


@pytest.mark.parametrize(("value", "layers"), [("7", 7), ("²", 30), ("٣", 30), ("-1", 30), ("", 30)])
def test_layers_of_a_command_line(value: str, layers: int) -> None:
    assert _planned_layers(view(service={"argv": ["--n-gpu-layers", value]}), 30) == layers


@pytest.mark.parametrize(("path", "voice"), [("/dev/nvidia0", "for"), ("/dev/nvidia²", "against"), ("0", "against")])
def test_device_files(path: str, voice: str) -> None:
    assert _devices(view(process={"devices": [path]})).voice == voice
