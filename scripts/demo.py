"""The demo: from a bare Debian 13 host to an answered chat request, and a second apply that does nothing."""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import yaml
from lab import Host, Lab, LabError, archives
from lab.project import KEY_FILE, PORT, Project, api_key, chat
from lab.report import actions_of

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / ".demo"
LAB = "demo-" + hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
"""One demo a checkout: another one's host is neither reused nor taken away."""
QUESTION = "In one sentence: what is a workstation?"
RULE = "─" * 78
NEW_HOST = "a bare Debian 13 host"
MEMINFO = Path("/proc/meminfo")


def say(text: str) -> None:
    """A headline on the terminal, in step with the output of the commands between."""
    sys.stdout.write(f"\n{RULE}\n{text}\n{RULE}\n")
    sys.stdout.flush()


def total_mib(meminfo: str) -> int | None:
    """MiB of RAM by the text of ``/proc/meminfo``; a container has its machine's."""
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        if name == "MemTotal" and value.split()[:1] and value.split()[0].isdecimal():
            return int(value.split()[0]) // 1024
    return None


def age(created: str, now: datetime) -> str:
    """How long ago a container was made, by the moment that the engine gives (RFC 3339, nanoseconds)."""
    try:
        made = datetime.fromisoformat(created[:19]).replace(tzinfo=UTC)
    except ValueError:
        return "earlier"
    minutes = max(int((now - made).total_seconds() // 60), 0)
    hours, days = minutes // 60, minutes // 1440
    if days:
        return f"{days} {'day' if days == 1 else 'days'} ago"
    if hours:
        return f"{hours} {'hour' if hours == 1 else 'hours'} ago"
    return f"{minutes} {'minute' if minutes == 1 else 'minutes'} ago"


def write_project(host: Host) -> Project:
    """A project of its own: the demo spec as it is, and beside it how to reach the machine."""
    project = Project(PROJECT)
    shutil.copyfile(ROOT / "inventory" / "demo.yml", project.inventory / "demo.yml")
    defaults: dict[str, object] = {"connection": host.connection()}
    if total := total_mib(MEMINFO.read_text()):
        defaults["memory"] = {"total-mib": total}
    fleet = {"schema-version": 1, "defaults": defaults}
    (project.inventory / "fleet.yml").write_text(
        "# Written by scripts/demo: how to reach the test host, and how much memory it shares with this machine.\n"
        + yaml.safe_dump(fleet, sort_keys=False)
    )
    return project


def llamarig(project: Project, *arguments: str) -> None:
    """Run the command as a user would, its output on this terminal."""
    shown = shlex.join(["scripts/llamarig", "-C", ".demo", *arguments])
    say(f"$ {shown}")
    code = subprocess.run(
        project.command(*arguments), env=project.environment(), stdin=subprocess.DEVNULL, check=False
    ).returncode
    if code != 0:
        raise LabError(f"`{shown}` ended with exit code {code}")


def second_apply(project: Project) -> str:
    """Apply once more and say what it did."""
    ran = project.rig("apply", "demo", "--yes", "--json").ok()
    actions = actions_of(ran.data)
    if actions:
        raise LabError(f"the second apply found {len(actions)} actions where none was left:\n{ran.stdout}")
    return f"nothing: 0 actions, {ran.seconds:.1f} s"


def summary(host: Host, answer: str, second: str) -> str:
    """What the user takes away: the answer, and how to ask for more."""
    forward = shlex.join(host.ssh_command("-N", "-L", f"{PORT}:127.0.0.1:{PORT}"))
    login = shlex.join(host.ssh_command())
    body = json.dumps({"messages": [{"role": "user", "content": QUESTION}]})
    return f"""asked:         {QUESTION}
answered:      {answer}
second apply:  {second}

The server listens on the host's loopback. To reach it from here, open a tunnel
  {forward}
and ask, with the key that lies in {KEY_FILE} on the host
  curl -H 'Authorization: Bearer {api_key(host)}' -H 'Content-Type: application/json' \\
    -d {shlex.quote(body)} http://127.0.0.1:{PORT}/v1/chat/completions
The host itself:  {login}
The spec:         .demo/inventory/demo.yml   (change it, then: scripts/llamarig -C .demo apply demo)
Take it away:     scripts/demo --remove
"""


def provision(lab: Lab) -> None:
    """Everything between the bare host and the answer."""
    known = lab.container_id("demo")
    if known is None:
        say(NEW_HOST)
    host = lab.host("demo")
    if known is not None:
        # The lab throws a host away that another version of it has made.
        reused = known == host.container.id
        say(
            f"reusing the host made {age(str(host.container.attrs['Created']), datetime.now(UTC))}"
            if reused
            else NEW_HOST
        )
    project = write_project(host)
    sys.stdout.write(f"{host.name} at {host.address}: Debian {host.ssh('cat /etc/debian_version').strip()}\n")
    llamarig(project, "check")
    llamarig(project, "plan", "demo")
    llamarig(project, "apply", "demo", "--yes")
    archives.take_back(host)
    answer = chat(host, QUESTION)
    if not answer:
        raise LabError("the server answered the chat request with nothing")
    second = second_apply(project)
    say("done")
    sys.stdout.write(summary(host, answer, second))


def main() -> int:
    """Parse the options, run the demo, turn problems into one clear message."""
    parser = argparse.ArgumentParser(
        prog="scripts/demo",
        description="Make a bare Debian 13 test host in a container, provision it from inventory/demo.yml, "
        "ask it something, and apply once more. Run again, it reuses the host that this checkout has made; "
        "each checkout has a host of its own.",
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--keep", action="store_true", help="leave the host running at the end (the default)")
    group.add_argument(
        "--remove", action="store_true", help="take away this checkout's host and all that the demo made"
    )
    options = parser.parse_args()
    try:
        lab = Lab(LAB)
        if options.remove:
            lab.remove()
            shutil.rmtree(PROJECT, ignore_errors=True)
            sys.stdout.write("the demo host is gone; the caches stay\n")
        else:
            provision(lab)
    except (LabError, httpx.HTTPError) as error:
        sys.stderr.write(f"\nerror: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; run scripts/demo again to go on, or scripts/demo --remove\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
