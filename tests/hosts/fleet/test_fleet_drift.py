"""The drift of several real hosts in one view: what differs, since when, whose doing; one bad host alone; and no key
anywhere but in its own file."""

from __future__ import annotations

import copy
import datetime
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab import Host
from lab.faults import main_pid
from lab.project import KEY_FILE, Project, api_key, chat, demo_spec

UNIT = "llama-chat.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
KEY = "test-key-of-a-whole-fleet-0123456789abcdefghij"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFCB5TGyqlySgsGt+qwcYykpqLW3S8/Fv3rvfCHwmkRf"


@contextmanager
def switched_off(host: Host) -> Iterator[None]:
    """Nobody answers there: sshd and all that it has begun are ended."""
    host.exec("systemctl stop ssh.socket ssh.service; pkill sshd || true", check=False)
    try:
        yield
    finally:
        host.exec("systemctl start ssh.service")


def by_host(data: Any) -> dict[str, dict[str, Any]]:
    return {each["host"]: each for each in data["hosts"]}


def spec_of(project: Project, host: Host) -> tuple[Path, str]:
    path = project.inventory / f"{host.name}.yml"
    return path, path.read_text()


def test_a_converged_fleet_has_no_drift_and_is_a_line(rolling: Any) -> None:
    project, count = rolling.project, len(rolling.hosts)
    ran = project.rig("drift", "--all", "--json").ok()
    assert ran.data["summary"] == {"hosts": count, "as-specified": count, "differ": 0, "not-looked-at": 0}
    assert [each["drift"] for each in ran.data["hosts"]] == [[]] * count
    assert {each["record"]["state"] for each in ran.data["hosts"]} == {"ok"}
    assert project.rig("drift", "--all").ok().stdout.splitlines()[0] == f"{count} hosts: {count} as specified"


def test_what_was_planted_is_told_with_its_time_and_mended_alone(rolling: Any, tmp_path: Path) -> None:
    project, count = rolling.project, len(rolling.hosts)
    edited, both, *others = rolling.hosts
    started = datetime.datetime.fromisoformat(edited.ssh("date -u +%Y-%m-%dT%H:%M:%SZ").strip())
    for host in (edited, both):
        host.ssh(f"echo '# planted' >>{UNIT_FILE}")
    both.ssh("dpkg --remove --force-depends ccache")
    untouched = {host.name: main_pid(host, UNIT) for host in others}
    page = tmp_path / "drift.html"
    ran = project.rig("drift", "--all", "--json", "--html", str(page)).ended(1)
    assert ran.data["summary"] == {"hosts": count, "as-specified": count - 2, "differ": 2, "not-looked-at": 0}
    told = by_host(ran.data)
    assert [entry["subject"] for entry in told[edited.name]["drift"]] == [UNIT_FILE]
    assert [entry["subject"] for entry in told[both.name]["drift"]] == ["ccache", UNIT_FILE]
    for host in (edited, both):
        for entry in told[host.name]["drift"]:
            assert entry["since"]["after"] == told[host.name]["record"]["applied-at"]
            before = datetime.datetime.fromisoformat(entry["since"]["before"])
            assert datetime.timedelta(0) <= before - started < datetime.timedelta(minutes=2)
    assert [entry["since"]["cause"] for entry in told[both.name]["drift"]] == ["unknown", "host"]
    words = project.rig("drift", "--all").ended(1).stdout
    assert f"{count} hosts: {count - 2} as specified, 2 differ" in words
    assert f"on 2 hosts: {edited.name}, {both.name}" in words
    assert words.count("was edited on the host") == 1
    assert page.read_text().count("was edited on the host") == 1

    asked = project.rig("drift", "--all", "--fix").ended(2)
    counted = f"actions would be taken: 1 on {edited.name}, 2 on {both.name}; running services would be restarted"
    assert counted in asked.stderr
    assert "# planted" in edited.ssh(f"cat {UNIT_FILE}"), "without a yes nothing is touched"

    ran = project.rig("drift", "--all", "--fix", "--yes", "--json").ok()
    assert ran.data["summary"] == {"hosts": count, "as-specified": count, "differ": 0, "not-looked-at": 0}
    told = by_host(ran.data)
    done = [len(told[name].get("fix", {}).get("actions", [])) for name in rolling.names]
    assert done == [1, 2, *[0] * len(others)]
    assert {host.name: main_pid(host, UNIT) for host in others} == untouched
    assert chat(both, "Say hello.", tokens=8)


def test_one_bad_host_is_told_alone(rolling: Any) -> None:
    project, count = rolling.project, len(rolling.hosts)
    edited, strange, silent, *_ = rolling.hosts
    path, good = spec_of(project, strange)
    typo = good.replace(f"host: {strange.name}", "host: typo").replace("services:", "servises:")
    (project.inventory / "typo.yml").write_text(typo)
    changed = yaml.safe_load(good)
    changed["connection"]["host-key"] = OTHER_KEY
    path.write_text(yaml.safe_dump(changed, sort_keys=False))
    try:
        with switched_off(silent):
            edited.ssh(f"echo '# planted' >>{UNIT_FILE}")
            ran = project.rig("drift", "--all", "--json").ended(3)
            told = by_host(ran.data)
            sums = {"hosts": count + 1, "as-specified": count - 3, "differ": 1, "not-looked-at": 3}
            assert ran.data["summary"] == sums
            assert told[strange.name]["error"]["what"] == "the host shows another host key than the pinned one"
            assert told[silent.name]["error"]["what"] == "the host cannot be reached"
            assert "servises" in told["typo"]["error"]["what"] + told["typo"]["error"]["why"]
            assert len(told[edited.name]["drift"]) == 1
            applied = project.rig("apply", "--all", "--yes", "--json").ended(3)
            told = by_host(applied.data)
            assert told[edited.name]["ok"]
            assert [action["kind"] for action in told[edited.name]["actions"]] == ["file"]
            assert [told[name]["ok"] for name in (strange.name, silent.name, "typo")] == [False, False, False]
            assert told["typo"]["refused"]
            assert "refused: typo" in applied.stderr
            verified = by_host(project.rig("verify", "--all", "--json").ended(3).data)
            assert all(check["ok"] for check in verified[edited.name]["checks"])
            assert project.rig("plan", "--all", "--json").ended(2)
    finally:
        path.write_text(good)
        (project.inventory / "typo.yml").unlink()
    assert project.rig("drift", "--all", "--json").ok().data["summary"]["as-specified"] == count


class _Watch(threading.Thread):
    """Looks at arguments and environment of every process of this machine, in containers too, again and again."""

    def __init__(self, secret: str) -> None:
        super().__init__(daemon=True)
        self.secret = secret.encode()
        self.seen: set[str] = set()
        self.looks = 0
        self._stop_it = threading.Event()

    def run(self) -> None:
        while not self._stop_it.wait(0.1):
            self.looks += 1
            for place in Path("/proc").iterdir():
                if place.name.isdecimal():
                    self._look(place)

    def _look(self, place: Path) -> None:
        for name in ("cmdline", "environ"):
            try:
                content = (place / name).read_bytes()
            except OSError:
                continue
            if self.secret in content:
                self.seen.add(f"{name} of {content[:120]!r}")

    def __enter__(self) -> _Watch:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop_it.set()
        self.join()


def test_the_watch_sees_a_secret_where_there_is_one(rolling: Any) -> None:
    secret = "planted-on-a-command-line"
    with _Watch(secret) as watch:
        rolling.hosts[0].exec(["sh", "-c", f"true {secret}; sleep 1"])
    assert watch.seen


@pytest.mark.full_fleet
def test_no_key_is_anywhere_but_in_its_own_file(rolling: Any) -> None:
    project, given = rolling.project, rolling.hosts[:2]
    secrets = project.directory / "secrets"
    secrets.mkdir(mode=0o700)
    (secrets / "chat.keys").write_text(f"# fleet\n{KEY}\n")
    (secrets / "chat.keys").chmod(0o600)
    before = {host: spec_of(project, host) for host in given}
    said: list[str] = []

    def rig(*words: str, code: int = 0) -> None:
        ran = project.rig(*words).ended(code)
        said.extend((ran.stdout, ran.stderr))

    try:
        for host in given:
            spec = copy.deepcopy(demo_spec())
            spec["services"]["chat"]["listen"]["keys"] = {"file": "secrets/chat.keys"}
            project.describe(host, spec)
        with _Watch(KEY) as watch:
            rig("diff", "--all", "--json", code=1)
            rig("apply", "--all", "--yes", "--json")
            assert api_key(given[0]) == KEY
            for host in given:
                host.ssh(f"echo planted-key-of-somebody-else >>{KEY_FILE}")
            rig("drift", "--all", "--json", code=1)
            rig("drift", "--all", code=1)
            rig("drift", "--all", "--fix", "--yes")
            rig("status", "--all", "--json")
            rig("verify", "--all", "--json")
        assert watch.looks > 10
        assert watch.seen == set()
        assert not [text for text in said if KEY in text]
        assert any("holds other keys than the file on the controller" in text for text in said)
        for host in given:
            assert api_key(host) == KEY
            found = host.ssh(
                f"grep -rlsF {KEY[:20]} /etc /var /opt/llamarig/libexec /root /tmp /home /run/systemd /run/log || true",
                seconds=300,
            ).split()
            assert found == [KEY_FILE]
            assert host.ssh(f"journalctl --no-pager -o cat | grep -cF {KEY[:20]} || true").strip() == "0"
        mine = [
            path for path in project.directory.rglob("*") if path.is_file() and KEY in path.read_text(errors="replace")
        ]
        assert mine == [secrets / "chat.keys"]
    finally:
        for path, text in before.values():
            path.write_text(text)
        project.rig("apply", "--all", "--yes", "--json")
