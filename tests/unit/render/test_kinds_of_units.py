"""Every template of a unit, and every unit of a golden host, is of a kind whose exposure is held."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamarig.paths import data_root
from tests.golden.cases import SPECS, wanted_of
from tests.support.rendering.kinds import BAR, NODES_BAR, bar, rendered, units

TEMPLATES = data_root() / "templates/etc/systemd/system"


def description(text: str) -> str:
    """What a unit or its template says that it is, up to the first value that is filled in."""
    [line] = [line for line in text.splitlines() if line.startswith("Description=")]
    return line.partition("{")[0]


def in_no_kind(templates: Path) -> list[str]:
    """The templates of services that none of the kinds was made from."""
    kinds = [description(text) for text in units().values()]
    return [
        template.name
        for template in sorted(templates.rglob("*.service.j2"))
        if not any(kind.startswith(description(template.read_text(encoding="utf-8"))) for kind in kinds)
    ]


def test_every_template_of_a_unit_is_in_a_kind() -> None:
    assert len(list(TEMPLATES.glob("*.service.j2"))) >= 3
    assert in_no_kind(data_root() / "templates") == []


def test_a_template_that_is_in_no_kind_is_found(tmp_path: Path) -> None:
    for template in TEMPLATES.glob("*.service.j2"):
        (tmp_path / template.name).write_bytes(template.read_bytes())
    (tmp_path / "another.service.j2").write_text("[Unit]\nDescription=Something else\n", encoding="utf-8")
    assert in_no_kind(tmp_path) == ["another.service.j2"]


def test_templates_tell_themselves_apart_by_their_descriptions() -> None:
    """Else one kind would stand for two templates."""
    begins = [description(template.read_text(encoding="utf-8")) for template in TEMPLATES.glob("*.service.j2")]
    assert not [(one, other) for one in begins for other in begins if one is not other and one.startswith(other)]


@pytest.mark.parametrize("host", SPECS)
def test_no_host_has_a_unit_of_a_kind_that_is_not_held(host: str) -> None:
    begins = [description(text).partition('"')[0] for text in units().values()]
    for name, text in rendered(wanted_of(host)).items():
        assert description(text).partition('"')[0] in begins, name


def test_only_what_makes_nodes_may_be_above_the_bar_of_all() -> None:
    kinds = units()
    assert [kind for kind in kinds if bar(kind) != BAR] == ["nodes of the cards"]
    assert bar("nodes of the cards") == NODES_BAR
    assert "nvidia-modprobe" in kinds["nodes of the cards"]
