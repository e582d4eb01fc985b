"""Plain ansible-playbook on the specs does what `llamarig apply` does; so does the walk over all roles."""

from __future__ import annotations

import re

from lab import Host
from lab.project import Project, chat
from lab.report import actions_of

UNIT = "/etc/systemd/system/llama-chat.service"


def playbook(project: Project, host: Host, *options: str) -> str:
    """Run playbooks/site.yml as a user of Ansible would; what it printed."""
    return project.play(host, "playbooks/site.yml", *options).ok().stdout


def changed(output: str, host: Host) -> int:
    """The `changed=` of the play recap."""
    found = re.search(rf"^{host.name}\s*:.*changed=(\d+).*failed=0", output, re.MULTILINE)
    assert found is not None, output
    return int(found.group(1))


def test_plain_ansible_mends_a_change_and_then_finds_nothing(demo: Host, project: Project) -> None:
    demo.ssh(f"echo '# planted' >>{UNIT}")
    assert changed(playbook(project, demo, "--check"), demo) >= 1
    assert "# planted" in demo.ssh(f"cat {UNIT}"), "check mode touched the host"
    assert changed(playbook(project, demo), demo) >= 1
    assert "# planted" not in demo.ssh(f"cat {UNIT}")
    assert changed(playbook(project, demo), demo) == 0
    assert actions_of(project.rig("apply", demo.name, "--yes", "--json").ok().data) == []
    assert chat(demo, "Say hello.", tokens=8)


def test_the_walk_over_all_roles_changes_nothing_on_a_converged_host(demo: Host, project: Project) -> None:
    before = demo.ssh("systemctl show -P MainPID llama-chat.service")
    report = project.rig("apply", demo.name, "--full", "--yes", "--json").ok().data["hosts"][0]
    assert report["actions"] == []
    assert report["changed"] == 0, report
    assert report["checks"]
    assert demo.ssh("systemctl show -P MainPID llama-chat.service") == before
