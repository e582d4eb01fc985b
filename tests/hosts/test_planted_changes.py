"""Each planted change is told by drift and gives exactly its own action, the apply mends it, and the server answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from lab import Host
from lab.faults import wait_for
from lab.project import Project, chat, demo_spec
from lab.report import actions_of

UNIT = "/etc/systemd/system/llama-chat.service"
SERVER = "/opt/llamarig/current/bin/llama-server"
MODEL = f"/var/lib/llamarig/models/sha256/{demo_spec()['models']['smol']['sha256']}"


@dataclass(frozen=True)
class Change:
    """A change made behind llamarig's back, and the one action it must lead to."""

    name: str
    plant: str
    kind: str
    subject: str
    """A part of the action's subject."""


def flipped(path: str) -> str:
    """Shell that replaces a file by one of the same size and mtime with other content."""
    return (
        f"set -e; P=$(readlink -f {path}); cp -p $P $P.new; chmod u+w $P.new;"
        ' python3 -c \'import sys; f = open(sys.argv[1], "r+b"); f.seek(-64, 2); f.write(b"planted")\' $P.new;'
        " touch -r $P $P.new; chmod --reference=$P $P.new; mv $P.new $P"
    )


CHANGES = [
    Change("unit edited", f"echo '# planted' >>{UNIT}", "file", "llama-chat.service"),
    Change(
        "flag changed",
        f"set -e; grep -q 4096 {UNIT}; sed -i 's/4096/2048/' {UNIT};"
        " systemctl daemon-reload; systemctl restart llama-chat",
        "file",
        "llama-chat.service",
    ),
    Change("binary replaced", flipped(SERVER), "release", "4df29be4f"),
    Change("model swapped", flipped(MODEL), "model", ""),
    Change("package removed", "dpkg --remove --force-depends ccache", "package", "ccache"),
    Change("link moved", "ln -sfn releases/elsewhere /opt/llamarig/current", "switch", ""),
    Change("service stopped", "systemctl stop llama-chat", "service", "chat"),
    Change("user changed", "usermod -s /bin/sh llama-chat", "user", "llama-chat"),
    Change("mode changed", f"chmod 0666 {UNIT}", "file", "llama-chat.service"),
    Change("credential removed", "rm /etc/llamarig/keys/chat.keys", "credential", "chat.keys"),
    Change("record edited", 'sed -i \'s/"host"/"hosts"/\' /var/lib/llamarig/record.json', "record", ""),
]


@pytest.fixture(scope="module")
def settled(demo: Host, project: Project) -> Iterator[Host]:
    """The demo host with nothing to do and without drift, before and after this file."""
    assert actions_of(project.rig("apply", demo.name, "--yes", "--json").ok().data) == []
    yield demo
    assert actions_of(project.rig("apply", demo.name, "--yes", "--json").ok().data) == []
    assert project.rig("drift", demo.name, "--json").ok().data["drift"] == []


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name.replace(" ", "-"))
def test_a_planted_change_gives_exactly_its_own_action(settled: Host, project: Project, change: Change) -> None:
    settled.ssh(change.plant)
    looked = project.rig("drift", settled.name, "--json").ended(1)
    assert [entry["reason"].split(":")[0] for entry in looked.data["drift"]] == [change.kind], looked.stdout
    assert change.subject in looked.data["drift"][0]["subject"]
    # An edited record vouches for no time; every other change was made after the one that it names.
    since, record = looked.data["drift"][0]["since"], looked.data["record"]
    assert since["after"] == (None if change.kind == "record" else max(record["applied-at"], since["after"]))
    assert since["cause"] != "spec"
    ran = project.rig("apply", settled.name, "--yes", "--json").ok()
    actions = actions_of(ran.data)
    assert [action["kind"] for action in actions] == [change.kind], ran.stdout
    assert change.subject in actions[0]["subject"]
    assert chat(settled, "Say hello.", tokens=8)


def test_a_port_taken_by_another_process_is_named_and_left_alone(settled: Host, project: Project) -> None:
    settled.ssh("systemctl stop llama-chat")
    listener = (
        "import socket,time; s=socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1);"
        's.bind(("127.0.0.1",8080)); s.listen(); time.sleep(600)'
    )
    settled.ssh(f"systemd-run --unit=planted-listener python3 -c '{listener}'")
    wait_for("the planted listener", lambda: "8080" in settled.ssh("ss -ltn"), 20)
    try:
        ran = project.rig("apply", settled.name, "--yes", "--json")
        assert ran.code == 3, ran.stdout + ran.stderr
        actions = actions_of(ran.data)
        assert [action["kind"] for action in actions] == ["port"]
        assert "python3" in ran.stdout + ran.stderr
        assert settled.ssh("systemctl is-active planted-listener").strip() == "active"
    finally:
        settled.ssh("systemctl stop planted-listener")
    project.rig("apply", settled.name, "--yes", "--json").ok()
    assert chat(settled, "Say hello.", tokens=8)
