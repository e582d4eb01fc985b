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
from lab import Host, Lab
from lab.faults import main_pid
from lab.project import KEY_FILE, Project, api_key, chat, demo_spec
from lab.report import actions_of

UNIT = "llama-chat.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
KEY = "test-key-of-a-whole-fleet-0123456789abcdefghij"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFCB5TGyqlySgsGt+qwcYykpqLW3S8/Fv3rvfCHwmkRf"


@pytest.fixture(scope="module")
def fleet(lab: Lab, project: Project, demo: Host, provisioned_image: str) -> Iterator[list[Host]]:
    """The demo host and two more, all as their specs say."""
    more = [lab.host(name, fresh=True, image=provisioned_image) for name in ("north", "south")]
    for host in more:
        project.describe(host)
    project.rig("apply", "--all", "--yes", "--json").ok()
    assert actions_of(project.rig("apply", "--all", "--yes", "--json").ok().data) == []
    yield [demo, *more]
    for host in more:
        lab.discard(host.name)
        (project.inventory / f"{host.name}.yml").unlink(missing_ok=True)


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


def test_a_converged_fleet_has_no_drift_and_is_a_line(project: Project, fleet: list[Host]) -> None:
    ran = project.rig("drift", "--all", "--json").ok()
    assert ran.data["summary"] == {"hosts": 3, "as-specified": 3, "differ": 0, "not-looked-at": 0}
    assert [each["drift"] for each in ran.data["hosts"]] == [[], [], []]
    assert {each["record"]["state"] for each in ran.data["hosts"]} == {"ok"}
    assert project.rig("drift", "--all").ok().stdout.splitlines()[0] == "3 hosts: 3 as specified"


def test_what_was_planted_is_told_with_its_time_and_mended_alone(
    project: Project, fleet: list[Host], tmp_path: Path
) -> None:
    demo, north, south = fleet
    started = datetime.datetime.fromisoformat(demo.ssh("date -u +%Y-%m-%dT%H:%M:%SZ").strip())
    for host in (demo, north):
        host.ssh(f"echo '# planted' >>{UNIT_FILE}")
    north.ssh("dpkg --remove --force-depends ccache")
    untouched = main_pid(south, UNIT)
    page = tmp_path / "drift.html"
    ran = project.rig("drift", "--all", "--json", "--html", str(page)).ended(1)
    assert ran.data["summary"] == {"hosts": 3, "as-specified": 1, "differ": 2, "not-looked-at": 0}
    told = by_host(ran.data)
    assert [entry["subject"] for entry in told["demo"]["drift"]] == [UNIT_FILE]
    assert [entry["subject"] for entry in told["north"]["drift"]] == ["ccache", UNIT_FILE]
    for entry in (*told["demo"]["drift"], *told["north"]["drift"]):
        assert (
            entry["since"]["after"]
            == told["demo" if entry in told["demo"]["drift"] else "north"]["record"]["applied-at"]
        )
        before = datetime.datetime.fromisoformat(entry["since"]["before"])
        assert datetime.timedelta(0) <= before - started < datetime.timedelta(minutes=2)
    assert [entry["since"]["cause"] for entry in told["north"]["drift"]] == ["unknown", "host"]
    words = project.rig("drift", "--all").ended(1).stdout
    assert "3 hosts: 1 as specified, 2 differ" in words
    assert "on 2 hosts: demo, north" in words
    assert words.count("was edited on the host") == 1
    assert page.read_text().count("was edited on the host") == 1

    asked = project.rig("drift", "--all", "--fix").ended(2)
    assert "actions would be taken: 1 on demo, 2 on north; running services would be restarted" in asked.stderr
    assert "# planted" in demo.ssh(f"cat {UNIT_FILE}"), "without a yes nothing is touched"

    ran = project.rig("drift", "--all", "--fix", "--yes", "--json").ok()
    assert ran.data["summary"] == {"hosts": 3, "as-specified": 3, "differ": 0, "not-looked-at": 0}
    told = by_host(ran.data)
    assert [len(told[host.name].get("fix", {}).get("actions", [])) for host in fleet] == [1, 2, 0]
    assert main_pid(south, UNIT) == untouched
    assert chat(north, "Say hello.", tokens=8)


def test_one_bad_host_is_told_alone(project: Project, fleet: list[Host]) -> None:
    demo, north, south = fleet
    path, good = spec_of(project, north)
    typo = good.replace("host: north", "host: typo").replace("services:", "servises:")
    (project.inventory / "typo.yml").write_text(typo)
    changed = yaml.safe_load(good)
    changed["connection"]["host-key"] = OTHER_KEY
    path.write_text(yaml.safe_dump(changed, sort_keys=False))
    try:
        with switched_off(south):
            demo.ssh(f"echo '# planted' >>{UNIT_FILE}")
            ran = project.rig("drift", "--all", "--json").ended(3)
            told = by_host(ran.data)
            assert ran.data["summary"] == {"hosts": 4, "as-specified": 0, "differ": 1, "not-looked-at": 3}
            assert told["north"]["error"]["what"] == "the host shows another host key than the pinned one"
            assert told["south"]["error"]["what"] == "the host cannot be reached"
            assert "servises" in told["typo"]["error"]["what"] + told["typo"]["error"]["why"]
            assert len(told["demo"]["drift"]) == 1
            applied = project.rig("apply", "--all", "--yes", "--json").ended(3)
            told = by_host(applied.data)
            assert told["demo"]["ok"]
            assert [action["kind"] for action in told["demo"]["actions"]] == ["file"]
            assert [told[name]["ok"] for name in ("north", "south", "typo")] == [False, False, False]
            assert told["typo"]["refused"]
            assert "refused: typo" in applied.stderr
            verified = by_host(project.rig("verify", "--all", "--json").ended(3).data)
            assert all(check["ok"] for check in verified["demo"]["checks"])
            assert project.rig("plan", "--all", "--json").ended(2)
    finally:
        path.write_text(good)
        (project.inventory / "typo.yml").unlink()
    assert project.rig("drift", "--all", "--json").ok().data["summary"]["as-specified"] == 3


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


def test_the_watch_sees_a_secret_where_there_is_one(demo: Host) -> None:
    secret = "planted-on-a-command-line"
    with _Watch(secret) as watch:
        demo.exec(["sh", "-c", f"true {secret}; sleep 1"])
    assert watch.seen


@pytest.mark.full_fleet
def test_no_key_is_anywhere_but_in_its_own_file(project: Project, fleet: list[Host]) -> None:
    demo, north, _ = fleet
    secrets = project.directory / "secrets"
    secrets.mkdir(mode=0o700)
    (secrets / "chat.keys").write_text(f"# fleet\n{KEY}\n")
    (secrets / "chat.keys").chmod(0o600)
    before = {host: spec_of(project, host) for host in (demo, north)}
    said: list[str] = []

    def rig(*words: str, code: int = 0) -> None:
        ran = project.rig(*words).ended(code)
        said.extend((ran.stdout, ran.stderr))

    try:
        for host in (demo, north):
            spec = copy.deepcopy(demo_spec())
            spec["services"]["chat"]["listen"]["keys"] = {"file": "secrets/chat.keys"}
            project.describe(host, spec)
        with _Watch(KEY) as watch:
            rig("diff", "--all", "--json", code=1)
            rig("apply", "--all", "--yes", "--json")
            assert api_key(demo) == KEY
            for host in (demo, north):
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
        for host in (demo, north):
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
