"""The lab's own guards: what is kept is verified, processes are named for good, reports are not guessed at."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from lab import archives, engine, image, packages, report
from lab.apt_sources import AptSource
from lab.packages import LabError
from lab.project import Project


def test_a_changed_tar_is_not_used(tmp_path: Path) -> None:
    archive = tmp_path / "base.tar"
    part = tmp_path / "base.part"
    part.write_bytes(b"content")
    image.keep(part, archive)
    assert image.holds(archive)
    archive.write_bytes(b"changed")
    assert not image.holds(archive)


def test_a_tar_without_its_hash_is_not_used(tmp_path: Path) -> None:
    archive = tmp_path / "base.tar"
    archive.write_bytes(b"content")
    assert not image.holds(archive)


def test_the_image_is_named_by_all_that_shapes_it() -> None:
    plain = image.Recipe((AptSource("http://a.example/debian", "trixie", ("main",)),), "")
    other_mirror = image.Recipe((AptSource("http://b.example/debian", "trixie", ("main",)),), "")
    with_proxy = image.Recipe(plain.sources, 'Acquire::http::Proxy "http://p.example:3128";\n')
    assert len({plain.key, other_mirror.key, with_proxy.key}) == 3


class HostThatTakesFiles:
    """Stands in for a machine; keeps the commands it was given."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def exec(self, command: str) -> None:
        self.commands.append(command)


def test_a_kept_package_that_changed_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    good, bad, unknown = (archives.store() / f"{name}.deb" for name in ("good", "bad", "unknown"))
    for path in (good, bad):
        path.write_bytes(b"a package")
    host: Any = HostThatTakesFiles()
    archives.take_back(host)
    bad.write_bytes(b"another one")
    unknown.write_bytes(b"never listed")
    archives.hand_out(host)
    assert good.exists()
    assert not bad.exists()
    assert not unknown.exists()


def test_the_engine_that_others_started_is_never_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert engine.stop_engine() is False


@pytest.mark.parametrize(("start", "stopped"), [("own", True), ("another", False)])
def test_only_the_very_process_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, stopped: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    state = tmp_path / "llamarig" / "lab" / "engine.json"
    state.parent.mkdir(parents=True)
    with subprocess.Popen(["sleep", "60"]) as process:
        kept = engine._start_time(process.pid) if start == "own" else "1"
        state.write_text(json.dumps({"pid": process.pid, "start": kept}))
        assert engine.stop_engine() is stopped
        time.sleep(0.1)
        assert (process.poll() is not None) is stopped
        process.kill()
    assert not state.exists()


def test_start_time_of_a_process_that_is_gone() -> None:
    assert engine._start_time(os.getpid()) is not None
    assert engine._start_time(2**22 + 1) is None


def test_missing_packages_are_named_when_they_cannot_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="no-such-package"):
        packages.ensure_commands({"no-such-command-here": "no-such-package"})


def test_commands_that_are_there_ask_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "install", lambda names: pytest.fail(f"would install {names}"))
    packages.ensure_commands({"sh": "dash"})


def test_actions_of_one_and_of_several_hosts() -> None:
    one = {"host": "a", "actions": [{"kind": "file"}]}
    assert report.actions_of(one) == [{"kind": "file"}]
    assert len(report.actions_of({"hosts": [one, {"host": "b", "actions": []}, one]})) == 2


@pytest.mark.parametrize("broken", [{"host": "a"}, {"hosts": [{"host": "a"}]}, [], "text", {"host": "a", "actions": 0}])
def test_a_report_without_actions_is_no_report_of_nothing_to_do(broken: object) -> None:
    with pytest.raises(LabError):
        report.actions_of(broken)


class HostThatIsNotThere:
    """A described machine at an address where nobody answers."""

    name = "nobody"

    def connection(self) -> dict[str, Any]:
        return {"address": "127.0.0.1", "port": 1, "host-key": f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{'B' * 43}"}


def test_a_play_that_fails_is_told_with_all_it_said(tmp_path: Path) -> None:
    project, host = Project(tmp_path), HostThatIsNotThere()
    project.describe(host)
    assert "hosts (1):" in project.play(host, "playbooks/site.yml", "--list-hosts").ok().stdout
    with pytest.raises(LabError, match=r"playbooks/site\.yml` ended with 4, not 0") as caught:
        project.play(host, "playbooks/site.yml").ok()
    assert "Connection refused" in str(caught.value)
