"""The decision about a reboot on a real machine: what is looked at there, and a kernel without its module.

A reboot itself is not made here: a container has no kernel of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import Host, Lab
from lab.project import Project

from tests.support.power.host import describe

NEWER = "99.1.0+deb13-amd64"


@pytest.fixture(scope="module")
def host(lab: Lab, project: Project) -> Iterator[Host]:
    made = lab.host("rebuild", fresh=True)
    describe(project, made, None, {})
    yield made
    lab.discard("rebuild")


def played(project: Project, host: Host, *options: str) -> str:
    """What playbooks/rebuild.yml prints, as a user of plain Ansible runs it."""
    return project.play(host, "playbooks/rebuild.yml", "-v", *options).ok().stdout


def test_a_host_without_another_kernel_and_without_a_card_needs_no_reboot(host: Host, project: Project) -> None:
    assert '"verdict": "not-needed"' in played(project, host)


def test_a_kernel_without_its_module_is_not_booted(host: Host, project: Project) -> None:
    host.exec(f"mkdir -p /boot /lib/modules/{NEWER} && echo image >/boot/vmlinuz-{NEWER}")
    before = host.exec("systemctl show -P ActiveEnterTimestamp ssh.service").output
    said = played(project, host, "--extra-vars", "llamarig_reboot_allowed=true")
    assert '"verdict": "refused"' in said
    assert f"the headers of kernel {NEWER} are not installed" in said
    assert host.exec("systemctl show -P ActiveEnterTimestamp ssh.service").output == before
