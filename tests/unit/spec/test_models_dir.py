"""Where the models may lie, and where they never do."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamarig.spec.read_yaml import read_bytes
from llamarig.spec.validate import validate

DEMO = (Path(__file__).resolve().parents[3] / "inventory/demo.yml").read_text()


def errors(place: str) -> list[str]:
    tree, problems = read_bytes(f"{DEMO}\nmodels-dir: {place}\n".encode(), Path("spec.yml"))
    assert tree is not None
    assert problems == []
    return [f"{each.message} / {each.fix}" for each in validate(tree, Path()).errors]


SYSTEM = """
/srv /opt /mnt /data /var /var/lib /var/lib/private /var/log /var/spool /var/lib/dpkg /var/lib/systemd/x
/var/run/x /var/tmp/x /tmp/x /lost+found /srv/lost+found /lib64 /lib64/x /usr/share/x /run/x /etc/x /boot/x
/opt/llamarig /opt/llamarig/models /var/lib/llamarig /var/lib/llamarig/build /var/lib/llamarig/incoming
/var/lib/llamarig/modelsx /snap/x
"""
FINE = """
/srv/models /mnt/models /media/disk/models /data/models /opt/models /opt/llamarig-models /homes/x
/var/lib/llamarig/models /var/lib/llamarig/models/big
"""


@pytest.mark.parametrize("place", SYSTEM.split())
def test_a_place_of_the_system_or_of_llamarig_is_refused_with_a_good_one(place: str) -> None:
    [error] = errors(place)
    assert f"models cannot lie in {place}: " in error
    assert "/srv/models" in error


@pytest.mark.parametrize("place", ["/home/me", "/home", "/root/x"])
def test_a_home_directory_is_refused_as_one(place: str) -> None:
    [error] = errors(place)
    assert "home directory" in error


@pytest.mark.parametrize("place", FINE.split())
def test_a_directory_of_its_own_is_fine(place: str) -> None:
    assert errors(place) == []
