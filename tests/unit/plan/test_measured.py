"""What a host's processes were seen to take goes into later plans, and a file that is wrong is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from llamarig.errors import RigError
from llamarig.plan import plan_host
from llamarig.plan.measured import Measured, measured_path, read_measured, write_measured
from tests.support.big_models import header_of, qwen35_27b
from tests.support.plan_specs import REFERENCE, spec

HEADERS = {"qwen": header_of(qwen35_27b())}


def document(**changes: Any) -> dict[str, Any]:
    card = {"driver-mib": 24_000.0, "planned-mib": 23_600.0}
    service = {"cards": {"blackwell": card}, "ram-peak-mib": 3000.0, "ram-planned-mib": 1000.0}
    base = {"schema-version": 1, "host": "atelier", "release": "4df29be4f-1", "date": "2026-11-30"}
    return {**base, "services": {"chat": service}, **changes}


def store(root: Path, text: str) -> None:
    path = measured_path(root, "atelier")
    path.parent.mkdir()
    path.write_text(text)


def test_a_measurement_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    measured = Measured.model_validate(document())
    path = write_measured(tmp_path, measured)
    assert path == tmp_path / "measured" / "atelier.json"
    assert read_measured(tmp_path, "atelier") == measured
    assert [each.name for each in path.parent.iterdir()] == ["atelier.json"]


def test_no_measurement_is_none(tmp_path: Path) -> None:
    assert read_measured(tmp_path, "atelier") is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "JSON"),
        ("[]", "object"),
        (json.dumps(document(host="elsewhere")), "measured on elsewhere"),
        (json.dumps(document(date="yesterday")), "date"),
        (json.dumps(document(date="9999-99-99")), "date"),
        (json.dumps(document(release="\x1b[31mEVIL")), "release"),
        (json.dumps(document(services={"\u202e": {}})), "services"),
        (json.dumps(document(more=1)), "more"),
        (json.dumps(document(services={"chat": {"ram-peak-mib": -1}})), "ram-peak-mib"),
        ('{"host": ' + '"' + "x" * (1 << 20) + '"}', "longer than"),
    ],
)
def test_a_file_that_is_no_measurement_is_refused(tmp_path: Path, text: str, why: str) -> None:
    store(tmp_path, text)
    with pytest.raises(RigError) as caught:
        read_measured(tmp_path, "atelier")
    assert why in caught.value.why
    assert "verify HOST --memory" in caught.value.fix


def test_the_measured_share_takes_the_place_of_the_fitted_one() -> None:
    host = spec(REFERENCE)
    before = plan_host(host, HEADERS)
    after = plan_host(host, HEADERS, measured=Measured.model_validate(document(host=host.host)))
    card = after.devices[0].gpu
    assert card == "blackwell"
    assert after.devices[0].services["chat"]["process"] == 400.0
    saved = before.devices[0].services["chat"]["process"] - 400.0
    assert after.devices[0].used_mib == pytest.approx(before.devices[0].used_mib - saved)
    assert after.ram_detail["chat"]["base"] == 2000.0
    raised = after.ram.used_mib - before.ram.used_mib
    assert raised == pytest.approx(2000.0 - before.ram_detail["chat"]["base"])
    told = [finding for finding in after.findings if finding.code == "process-measured"]
    assert len(told) == 2
    assert "400 MiB on blackwell" in told[0].message
    assert "2026-11-30" in told[0].message


def test_a_lower_figure_in_ram_proves_nothing() -> None:
    host = spec(REFERENCE)
    low = document(host=host.host, services={"chat": {"ram-peak-mib": 1000.0, "ram-planned-mib": 999.0}})
    assert plan_host(host, HEADERS, measured=Measured.model_validate(low)).ram == plan_host(host, HEADERS).ram


def test_a_pipe_in_its_place_is_refused_at_once(tmp_path: Path) -> None:
    path = measured_path(tmp_path, "atelier")
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(RigError) as caught:
        read_measured(tmp_path, "atelier")
    assert "no regular file" in caught.value.why


@pytest.mark.parametrize(
    ("services", "why"),
    [
        ({"gone": {}}, "no such service"),
        ({"chat": {"cards": {"sold": {"driver-mib": 900.0, "planned-mib": 1.0}}}}, "nothing of a card sold"),
        ({"chat": {"cards": {"blackwell": {"driver-mib": 0.0, "planned-mib": 16_777_216.0}}}}, "less than any process"),
        ({"chat": {"cards": {"blackwell": {"driver-mib": 24_000.0, "planned-mib": 5_000.0}}}}, "5,000 MiB of buffers"),
    ],
)
def test_what_says_nothing_of_this_plan_is_left_out_and_said_so(services: dict[str, Any], why: str) -> None:
    host = spec(REFERENCE)
    plan = plan_host(host, HEADERS, measured=Measured.model_validate(document(host=host.host, services=services)))
    plain = plan_host(host, HEADERS)
    assert (plan.devices, plan.ram) == (plain.devices, plain.ram)
    (told,) = [each for each in plan.findings if each.code == "measurement-left-out"]
    assert why in told.message
