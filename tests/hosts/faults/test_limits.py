"""The limits of a rendered unit are enforced, in a machine with a kernel of its own: MemoryMax and TasksMax.

The unit, its probe and its configuration are the rendered ones; the server is a stand-in.
"""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from lab.faults import wait_for
from lab.machine import Machine
from lab.project import Project, demo_spec

UNIT = "llama-chat.service"
KEY = "k" * 40
STAND_IN = Path(__file__).with_name("stand_in_server.py")


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the demo host as `llamarig render` writes them."""
    own = Project(tmp_path_factory.mktemp("limits"))
    (own.inventory / "demo.yml").write_text(yaml.safe_dump(demo_spec(), sort_keys=False))
    out = own.directory / "out"
    own.rig("render", "demo", "--out", str(out)).ok()
    return out


@pytest.fixture(scope="module")
def machine(rendered: Path) -> Iterator[Machine]:
    """A booted machine with the rendered files, the stand-in in the place of the server, and the service running."""
    with Machine() as booted:
        model = demo_spec()["models"]["smol"]["member"].split("/")[-1]
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path in sorted(rendered.rglob("*")):
                if path.is_file() and path.name != "manifest.json":
                    archive.add(path, str(path.relative_to(rendered)), filter=owned_by_root)
            add_text(archive, "opt/llamarig/current/bin/llama-server", STAND_IN.read_text(), 0o755)
            add_text(archive, f"var/lib/llamarig/models/smol/{model}", "stands in for a model", 0o444)
            add_text(archive, "etc/llamarig/keys/chat.keys", KEY + "\n", 0o600)
        subprocess.run([*booted.ssh_command(), "tar -x -C /"], input=buffer.getvalue(), check=True, timeout=120)
        booted.ssh("chmod 0755 /opt/llamarig/libexec/start-probe")
        booted.ssh("useradd --system --user-group --no-create-home --shell /usr/sbin/nologin llama-chat")
        booted.ssh("systemctl daemon-reload")
        start = booted.ssh(f"systemctl start {UNIT} 2>&1; systemctl is-active {UNIT}; true", seconds=200)
        assert "active" in start.split(), booted.ssh(f"journalctl -u {UNIT} --no-pager | tail -30")
        yield booted


def owned_by_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    return info


def add_text(archive: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    info = tarfile.TarInfo(name)
    data = text.encode()
    info.size, info.mode = len(data), mode
    archive.addfile(info, io.BytesIO(data))


def post(machine: Machine, path: str) -> str:
    """What the stand-in answers on the machine's own loopback."""
    ask = (
        "import urllib.request as u; print(u.urlopen(u.Request('http://127.0.0.1:8080" + path + "', data=b'x',"
        f" headers={{'Authorization': 'Bearer {KEY}'}}), timeout=150).read().decode())"
    )
    return machine.ssh(f'python3 -c "{ask}"', check=False, seconds=180)


def show(machine: Machine, name: str) -> str:
    return machine.ssh(f"systemctl show -P {name} {UNIT}").strip()


def test_no_more_tasks_than_the_unit_allows(machine: Machine) -> None:
    limit = int(show(machine, "TasksMax"))
    assert 0 < limit < 10_000
    started = json.loads(post(machine, "/threads"))["threads"]
    assert limit - 50 < started < limit


def test_no_more_memory_than_the_unit_allows_and_the_machine_lives_on(machine: Machine) -> None:
    limit = int(show(machine, "MemoryMax"))
    total = int(machine.ssh("grep MemTotal /proc/meminfo").split()[1]) * 1024
    assert 0 < limit < total, "the limit must bite before the machine's memory ends"
    before = machine.ssh("cat /proc/sys/kernel/random/boot_id")
    post(machine, "/eat")
    journal = f"journalctl -u {UNIT} --no-pager"
    wait_for("the word of the OOM killer", lambda: "oom-kill" in machine.ssh(journal), 60)
    wait_for("the restarted service", lambda: show(machine, "ActiveState") == "active", 120)
    assert int(show(machine, "NRestarts")) >= 1
    assert machine.ssh("cat /proc/sys/kernel/random/boot_id") == before
    assert machine.ssh("systemctl is-active ssh.service").strip() == "active"
