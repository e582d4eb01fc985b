"""``--ask-become-pass`` of every verb that looks at hosts: asked once, in a private file, for those that need it."""

from __future__ import annotations

import getpass
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from llamarig.cli import context, drift_fix, main
from llamarig.converge import apply as work
from llamarig.converge import rollback
from llamarig.converge.locking.on_host import asker
from llamarig.converge.private import private_directory, write_private
from llamarig.converge.run import HostOutcome, Run
from llamarig.errors import ExitCode, RigError
from llamarig.spec.load import load_project

ROOT = Path(__file__).resolve().parents[3]
DEMO = (ROOT / "inventory" / "demo.yml").read_text()
SECRET = "correct horse battery"
FILE = "llamarig_become_password_file"
PLACES = ("converge.observe", "converge.collect", "converge.rollback", "converge.apply", "prove.hosts")
VERBS = ["status", "diff", "drift", "verify", "rebuild --check", "rollback --yes", "doctor", "apply --check"]


@dataclass
class Asked:
    """What a run of Ansible was given, and what lay in the files that its variables name."""

    prompts: list[str] = field(default_factory=list)
    answer: str | None = SECRET
    variables: dict[str, dict[str, Any]] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    modes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of the file and of its directory."""

    def password(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if self.answer is None:
            raise EOFError
        return self.answer

    def playbook(self, _playbook: str, hosts: dict[str, Any], _private: Path, **_more: Any) -> Run:
        for host, own in hosts.items():
            self.variables[host] = dict(own)
            if FILE in own:
                path = Path(own[FILE])
                self.held[host] = path.read_text()
                self.modes[host] = (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777)
        event = {"action": "rig_observe", "status": "unreachable", "result": {"msg": "No route to host"}}
        return Run(4, {host: HostOutcome(failures=[event], ran=True) for host in hosts})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    told = Asked()
    monkeypatch.setattr(context, "_printed", False)
    context._console.cache_clear()
    monkeypatch.setattr(getpass, "getpass", told.password)
    for place in PLACES:
        monkeypatch.setattr(f"llamarig.{place}.run_playbook", told.playbook)
    return told


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Three hosts: with sudo, with sudo and a password file of its own, and as root."""
    (tmp_path / "inventory").mkdir()
    (tmp_path / "headers").symlink_to(ROOT / "headers")
    write_private(tmp_path / "own", "of its own\n")
    own = f", become: true, become-password-file: {tmp_path / 'own'}"
    for host, more in {"ada": ", become: true", "own": own, "root": ""}.items():
        user = "root" if host == "root" else "ada"
        text = DEMO.replace("host: demo", f"host: {host}", 1)
        connection = f"connection: {{address: 192.0.2.1, user: {user}{more}}}"
        assert text.count("\nconnection:") == 0
        (tmp_path / "inventory" / f"{host}.yml").write_text(f"{text}\n{connection}\n")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, project: Path, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["llamarig", "-C", str(project), *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return int(str(ended.value.code))


@pytest.mark.parametrize("verb", VERBS)
def test_the_password_is_asked_once_and_lies_in_a_private_file_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], project: Path, asked: Asked, verb: str
) -> None:
    assert run(monkeypatch, project, *verb.split(), "--all", "--json", "--ask-become-pass") == ExitCode.HOST_FAILED
    assert len(asked.prompts) == 1
    assert set(asked.variables) == {"ada", "own", "root"}
    assert asked.held == {"ada": f"{SECRET}\n", "own": "of its own\n"}
    place = Path(asked.variables["ada"][FILE])
    assert asked.modes["ada"] == (0o600, 0o700)
    assert not place.exists(), "it is wiped"
    assert not place.parent.exists()
    written = capfd.readouterr()
    assert SECRET not in json.dumps(asked.variables) + written.out + written.err


@pytest.mark.parametrize("verb", VERBS)
def test_nobody_is_asked_without_the_option(
    monkeypatch: pytest.MonkeyPatch, project: Path, asked: Asked, verb: str
) -> None:
    assert run(monkeypatch, project, *verb.split(), "ada", "--json") == ExitCode.HOST_FAILED
    assert asked.prompts == []
    assert FILE not in asked.variables["ada"]


@pytest.mark.parametrize("verb", VERBS)
def test_without_an_answer_nothing_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path, asked: Asked, verb: str
) -> None:
    for answer in ("", None):
        asked.answer = answer
        monkeypatch.setattr(context, "_printed", False)
        assert run(monkeypatch, project, *verb.split(), "ada", "-K", "--json") == ExitCode.BAD_INPUT
        assert asked.variables == {}
        assert "no sudo password was given" in json.loads(capsys.readouterr().out)["error"]["what"]


def test_the_way_back_itself_has_the_password(project: Path, asked: Asked) -> None:
    with private_directory() as private:
        password = str(write_private(private / "become", f"{SECRET}\n"))
        options = rollback.Options(become_password_file=password)
        done = rollback.rollback_hosts(project, load_project(project).hosts, options, lambda _event: None)
    assert asked.held == {"ada": f"{SECRET}\n", "own": "of its own\n"}
    assert all(each.error is not None for each in done)


def test_a_lock_that_asks_a_host_has_it(project: Path, asked: Asked) -> None:
    with private_directory() as private:
        password = str(write_private(private / "become", f"{SECRET}\n"))
        with pytest.raises(RigError, match="cannot be reached"):
            asker(project, load_project(project).hosts, password)("ada", "/srv/model.gguf")
        assert asked.variables["ada"][FILE] == password
        with pytest.raises(RigError):
            asker(project, load_project(project).hosts)("ada", "/srv/model.gguf")
    assert FILE not in asked.variables["ada"]


def test_what_mends_a_drift_has_it(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    given: list[work.Options] = []

    def prepare(_root: Path, _hosts: Any, _private: Path, options: work.Options) -> Any:
        given.append(options)
        raise RigError("seen")

    monkeypatch.setattr(work, "prepare", prepare)
    context.set_project(project)
    with pytest.raises(RigError, match="seen"):
        drift_fix.mend(["ada"], deep=True, yes=True, quiet=True, become_password_file="/a/file")
    assert given == [work.Options(deep=True, become_password_file="/a/file")]
