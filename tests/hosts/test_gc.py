"""`llamarig gc` on a host that serves: what was planted goes, what somebody needs stays, and nothing is restarted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from lab import Host
from lab.faults import main_pid, wait_for
from lab.project import Project, chat, demo_spec
from lab.report import actions_of

UNIT = "llama-chat.service"
RELEASES = "/opt/llamarig/releases"
MODELS = "/var/lib/llamarig/models"
MODEL = f"{MODELS}/sha256/{demo_spec()['models']['smol']['sha256']}"


def named(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()


OLD, HELD, TRAP, HALF = (f"{MODELS}/sha256/{named('old')}", f"{MODELS}/sha256/{named('held')}",
                         f"{MODELS}/sha256/{named('trap')}", f"{MODELS}/incoming/{named('half')}.part")  # fmt: skip
FORMER = "1df29be4f-0123456789ab"
PLANT = f"""set -e
cp -a {RELEASES}/$(basename $(readlink /opt/llamarig/current)) {RELEASES}/0ld000000-0123456789ab
cp -a {RELEASES}/0ld000000-0123456789ab {RELEASES}/{FORMER}
echo '{{"release": "{FORMER}", "files": []}}' >/var/lib/llamarig/former.json
mkdir -p {MODELS}/incoming {MODELS}/was /root/kept
head -c 2000000 /dev/urandom >{OLD}
head -c 2000000 /dev/urandom >{HELD}
head -c 1000 /dev/urandom >{HALF}
ln -s ../sha256/{named("old")} {MODELS}/was/x.gguf
ln -s /root/kept {TRAP}
ln -s /root/kept {MODELS}/trap
touch /root/kept/mine
useradd --system --user-group --home /nonexistent --no-create-home --shell /usr/sbin/nologin llama-was
systemd-run --quiet --unit=reader --property=StandardInput=file:{HELD} sleep infinity
"""
"""An old release and one to go back to, models that nobody knows, one of which a process has open, half a download,
links to a directory of somebody else, and the user of a service that is gone."""
GOES = {f"{RELEASES}/0ld000000-0123456789ab", OLD, f"{MODELS}/was/x.gguf", HALF, "llama-was"}


def everything(host: Host) -> list[str]:
    return host.ssh(f"find {RELEASES} {MODELS} /var/lib/llamarig /root/kept | sort").splitlines()


def test_what_nobody_needs_goes_and_the_host_serves_on(another: Callable[[str], Host], project: Project) -> None:
    host = another("gc")
    host.ssh(PLANT)
    wait_for("the process that holds a model", lambda: main_pid(host, "reader.service") > 0, 20)
    before, pid = everything(host), main_pid(host, UNIT)

    looked = project.rig("gc", host.name, "--check", "--json").ok().data["hosts"][0]
    assert {each["path"] for each in looked["gone"]} == GOES
    kept = {each["path"]: each["reason"] for each in looked["kept"]}
    assert "sleep" in kept[HELD]
    assert kept[MODEL] == "the spec wants it"
    assert kept[f"{RELEASES}/{FORMER}"] == "rollback goes back to it"
    assert {each["path"]: each["what"] for each in looked["unknown"]} == {
        TRAP: "a link to /root/kept",
        f"{MODELS}/trap": "a link to /root/kept",
    }
    assert everything(host) == before, "a check touches nothing"

    done = project.rig("gc", host.name, "--yes", "--json").ok().data["hosts"][0]
    assert {each["path"] for each in done["gone"]} == GOES
    assert done["mib"] > 2
    gone = tuple(sorted(GOES - {"llama-was"}))
    left = [path for path in before if not path.startswith(gone) and path != f"{MODELS}/was"]
    assert everything(host) == left
    assert "llama-was" not in host.ssh("cat /etc/passwd /etc/group")
    assert main_pid(host, UNIT) == pid
    assert chat(host, "Say hello.", tokens=8)

    again = project.rig("gc", host.name, "--json").ok().data["hosts"][0]
    assert (again["gone"], again["removed"]) == ([], False)
    actions = actions_of(project.rig("apply", host.name, "--check", "--json").ok().data)
    # The disk is a copy of the demo host's, whose name and time stamps are in the record. Nothing else is to be done.
    assert {action["kind"] for action in actions} <= {"record"}, actions
