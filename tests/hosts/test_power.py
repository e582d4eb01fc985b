"""Power limits on a real machine with a stand-in nvidia-smi: set, watched, set again at boot, and taken away.

What this cannot show: that a real nvidia-smi works within the unit's sandbox (llamarig.render.power.UNPROVEN_ON_GPU).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from lab import Host, Lab
from lab.project import Project

from llamarig.compare.power import SLEEP_TARGETS
from llamarig.render.power import SERVICE, STATE_FILE, TIMER
from tests.support.power.bench import BLACKWELL
from tests.support.power.host import describe, given_back, limit, play, prepare, world
from tests.support.rendering.kinds import BAR

UNITS = "/etc/systemd/system"


@pytest.fixture(scope="module")
def host(lab: Lab) -> Iterator[Host]:
    made = lab.host("power", fresh=True)
    prepare(made)
    yield made
    lab.discard("power")


@pytest.fixture(scope="module")
def limited(host: Host, project: Project) -> list[str]:
    """The first run, and what it found to do."""
    describe(project, host, 300, {"watch": True})
    return play(project, host)


def test_a_limit_is_set_and_a_second_run_finds_nothing_to_do(host: Host, project: Project, limited: list[str]) -> None:
    assert any(line.startswith("limits: were never set") for line in limited)
    assert limit(host) == 300.0
    assert play(project, host) == []
    asked = f"systemctl is-enabled {SERVICE} {TIMER} {' '.join(SLEEP_TARGETS)}; systemctl is-active {TIMER}"
    states = host.exec(asked, check=False).output.split()
    assert states == ["enabled", "enabled", *["masked"] * len(SLEEP_TARGETS), "active"]


@pytest.mark.usefixtures("limited")
def test_systemd_finds_no_fault_in_the_units_and_they_are_confined(host: Host) -> None:
    for unit in (SERVICE, TIMER):
        assert verified(host, unit) == (0, "")
    host.exec(f"sed 's/^Type=oneshot/&\\nNoSuchSetting=yes/' {UNITS}/{SERVICE} >{UNITS}/broken-power.service")
    assert verified(host, "broken-power.service")[0] != 0
    assert exposure(host, SERVICE) <= BAR
    host.exec(f"sed -i '/^ProtectSystem/d; /^CapabilityBoundingSet/d' {UNITS}/broken-power.service")
    assert exposure(host, "broken-power.service") > BAR
    host.exec(f"rm {UNITS}/broken-power.service")


def verified(host: Host, unit: str) -> tuple[int, str]:
    done = host.exec(f"systemd-analyze verify --man=no --recursive-errors=one {UNITS}/{unit}", check=False)
    return done.code, done.output.strip()


def exposure(host: Host, unit: str) -> float:
    said = host.exec(f"systemd-analyze security --offline=yes --no-pager {UNITS}/{unit}", check=False).output
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert found, said
    return float(found[1])


@pytest.mark.usefixtures("limited")
def test_what_another_program_sets_is_undone_and_told(host: Host) -> None:
    world(host, limit=450.0)
    host.exec(f"systemctl start {SERVICE}")
    assert limit(host) == 300.0
    state = json.loads(host.exec(f"cat {STATE_FILE}").output)
    assert state["cards"][BLACKWELL]["changed-by-others"]["count"] == 1
    journal = host.exec(f"journalctl --no-pager -o cat -u {SERVICE}").output
    assert "something else changed the limit from 300 W to 450 W" in journal


@pytest.mark.usefixtures("limited")
def test_a_boot_forgets_the_limit_and_the_unit_sets_it(host: Host) -> None:
    world(host, limit=450.0)
    host.container.restart(timeout=2)
    host.wait_booted()
    assert limit(host) == 300.0


@pytest.mark.usefixtures("limited")
def test_what_is_changed_on_the_host_is_found_and_then_taken_away(host: Host, project: Project) -> None:
    host.exec(f"systemctl disable --now {TIMER}; systemctl unmask suspend.target; echo x >>{UNITS}/{SERVICE}")
    found = [line.partition(":")[0] for line in play(project, host, "--check")]
    assert set(found) >= {TIMER, f"{UNITS}/{SERVICE}", "sleep"}
    describe(project, host, None, {"watch": False, "mask-sleep": False})
    assert play(project, host)
    assert given_back(host) == 450.0, "the card's default"
    gone = host.exec(f"ls {UNITS}/{SERVICE} {UNITS}/{TIMER} {STATE_FILE}", check=False)
    assert gone.output.count("No such file") == 3
    assert host.exec("systemctl is-enabled suspend.target", check=False).output.strip() == "static"
    assert play(project, host) == []
