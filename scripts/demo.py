"""The demo: from a bare Debian 13 host to an answered chat request, and a second apply that does nothing."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import yaml
from lab import Host, Lab, LabError, archives, faults

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / ".demo"
KEY_FILE = "/etc/llamarig/keys/chat.keys"
QUESTION = "In one sentence: what is a workstation?"
RULE = "─" * 78


class DemoError(Exception):
    """A step of the demo failed; what it printed is already on the terminal."""


def say(text: str) -> None:
    """A headline on the terminal, in step with the output of the commands between."""
    sys.stdout.write(f"\n{RULE}\n{text}\n{RULE}\n")
    sys.stdout.flush()


def write_project(host: Host) -> None:
    """A project of its own: the demo spec as it is, and beside it how to reach the machine."""
    inventory = PROJECT / "inventory"
    inventory.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / "inventory" / "demo.yml", inventory / "demo.yml")
    for extra in ("headers", "patches"):
        if (ROOT / extra).is_dir():
            shutil.copytree(ROOT / extra, PROJECT / extra, dirs_exist_ok=True)
    fleet = {"schema-version": 1, "defaults": {"connection": host.connection()}}
    (inventory / "fleet.yml").write_text(
        "# Written by scripts/demo: how to reach the test host.\n" + yaml.safe_dump(fleet, sort_keys=False)
    )


def llamarig(*arguments: str) -> None:
    """Run the command as a user would, its output on this terminal."""
    shown = shlex.join(["scripts/llamarig", "-C", ".demo", *arguments])
    say(f"$ {shown}")
    command = [sys.executable, "-m", "llamarig.cli.main", "-C", str(PROJECT), *arguments]
    code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    if code != 0:
        raise DemoError(f"`{shown}` ended with exit code {code}")


def api_key(host: Host) -> str:
    """The key that the host made for the client `default`, read from the host as its root."""
    lines = [line.strip() for line in host.ssh(f"cat {KEY_FILE}").splitlines()]
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise DemoError(f"{KEY_FILE} on the host holds no key")
    return keys[0]


def free_port() -> int:
    """A port of the controller that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def ask(host: Host, key: str) -> str:
    """One chat completion through an SSH tunnel, since the server listens on the host's loopback only."""
    port = free_port()
    tunnel = subprocess.Popen(
        host.ssh_command("-N", "-L", f"127.0.0.1:{port}:127.0.0.1:8080", "-o", "ExitOnForwardFailure=yes"),
        stdin=subprocess.DEVNULL,
    )
    try:
        faults.wait_for("the SSH tunnel", lambda: _listens(port), 20)
        reply = httpx.post(
            f"http://127.0.0.1:{port}/v1/chat/completions",
            headers={"Authorization": f"Bearer {key}"},
            json={"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 64},
            timeout=120,
        )
        reply.raise_for_status()
        answer: str = reply.json()["choices"][0]["message"]["content"]
    finally:
        tunnel.terminate()
        tunnel.wait()
    if not answer.strip():
        raise DemoError("the server answered the chat request with nothing")
    return answer.strip()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def second_apply() -> str:
    """Apply once more and say what it did."""
    command = [sys.executable, "-m", "llamarig.cli.main", "-C", str(PROJECT), "apply", "demo", "--yes", "--json"]
    start = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        raise DemoError(f"the second apply ended with exit code {done.returncode}:\n{done.stderr}{done.stdout}")
    actions = count_actions(json.loads(done.stdout))
    if actions:
        raise DemoError(f"the second apply found {actions} actions where none was left:\n{done.stdout}")
    return f"nothing: 0 actions, {seconds:.1f} s"


def count_actions(report: object) -> int:
    """How many actions an `apply --json` report names, over all its hosts."""
    if isinstance(report, list):
        return sum(count_actions(each) for each in report)
    if isinstance(report, dict):
        own = len(report["actions"]) if isinstance(report.get("actions"), list) else 0
        return own + sum(count_actions(report[key]) for key in ("hosts",) if key in report)
    return 0


def summary(host: Host, key: str, answer: str, second: str) -> str:
    """What the user takes away: the answer, and how to ask for more."""
    ssh = shlex.join(host.ssh_command("-N", "-L", "8080:127.0.0.1:8080"))
    login = shlex.join(host.ssh_command())
    body = json.dumps({"messages": [{"role": "user", "content": QUESTION}]})
    return f"""asked:         {QUESTION}
answered:      {answer}
second apply:  {second}

The server listens on the host's loopback. To reach it from here, open a tunnel
  {ssh}
and ask, with the key that lies in {KEY_FILE} on the host
  curl -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \\
    -d {shlex.quote(body)} http://127.0.0.1:8080/v1/chat/completions
The host itself:  {login}
The spec:         .demo/inventory/demo.yml   (change it, then: scripts/llamarig -C .demo apply demo)
Take it away:     scripts/demo --remove
"""


def provision(lab: Lab) -> None:
    """Everything between the bare host and the answer."""
    say("a bare Debian 13 host")
    host = lab.host("demo")
    write_project(host)
    sys.stdout.write(f"{host.name} at {host.address}: {host.ssh('cat /etc/debian_version').strip()}, nothing on it\n")
    llamarig("check")
    llamarig("plan", "demo")
    llamarig("apply", "demo", "--yes")
    archives.take_back(host)
    key = api_key(host)
    answer = ask(host, key)
    say("done")
    sys.stdout.write(summary(host, key, answer, second_apply()))


def main() -> int:
    """Parse the options, run the demo, turn problems into one clear message."""
    parser = argparse.ArgumentParser(
        prog="scripts/demo",
        description="Make a bare Debian 13 test host in a container, provision it from inventory/demo.yml, "
        "ask it something, and apply once more. Run again, it reuses what is there.",
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--keep", action="store_true", help="leave the host running at the end (the default)")
    group.add_argument("--remove", action="store_true", help="take away the host and all that the demo made")
    options = parser.parse_args()
    try:
        lab = Lab("demo")
        if options.remove:
            lab.remove()
            shutil.rmtree(PROJECT, ignore_errors=True)
            sys.stdout.write("the demo host is gone; the caches stay\n")
        else:
            provision(lab)
    except (DemoError, LabError, httpx.HTTPError) as error:
        sys.stderr.write(f"\nerror: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; run scripts/demo again to go on, or scripts/demo --remove\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
