"""A user's own key file that changed on the controller is seen on the next look, and nothing of it is told.

Real runs of Ansible on this machine (connection local), through the observer's action plugin and module.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llamarig.compare import Action, compare, probe_list
from llamarig.converge.key_files import digest_of, judge, new_salt
from llamarig.converge.private import private_directory
from llamarig.converge.run import run_playbook
from llamarig.render.wanted import WantedCredential
from tests.support.compare.cases import KEYS, Case
from tests.support.observe.load import part

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}
TEXT = "# ops\n0123456789abcdef0123\n"
OTHER = "# ops\nfedcba98765432100123\n"
VAULT_PASSWORD = "correct horse"


def case(**seen: Any) -> Case:
    """A converged host whose chat service has a key file of the user's own."""
    made = Case()
    made.want(credentials=(WantedCredential(path=KEYS, service="chat", kind="file", source="secrets/chat.keys"),))
    made.observed["credentials"][KEYS].update(clients=["ops"], keys=1, **seen)
    return made


def actions(made: Case) -> list[Action]:
    return compare(made.wanted, made.observed)


def test_other_keys_on_the_controller_are_a_change_of_the_credential_and_restart_its_service() -> None:
    [action] = actions(case(agrees=False))
    assert (action.kind, action.subject, action.restarts) == ("credential", KEYS, ("chat",))
    assert action.reason == "holds other keys than the file on the controller"


@pytest.mark.parametrize("agrees", [True, None, "no", 0])
def test_the_same_keys_and_a_file_that_is_not_here_are_none(agrees: Any) -> None:
    assert actions(case(agrees=agrees)) == []


def test_generated_keys_are_compared_by_their_clients_alone() -> None:
    made = Case()
    made.observed["credentials"][KEYS]["agrees"] = False
    assert actions(made) == []
    assert probe_list(made.wanted)["key-files"] == {}
    assert probe_list(case().wanted)["key-files"] == {KEYS: "secrets/chat.keys"}


def test_the_host_answers_with_a_digest_only_for_a_salt(tmp_path: Path) -> None:
    store = part("rig_store")
    file = tmp_path / "chat.keys"
    file.write_text(TEXT)
    assert "digest" not in store.credential(str(file))
    salt = new_salt()
    seen = store.credential(str(file), salt)
    assert seen["digest"] == digest_of(salt, TEXT)
    assert seen["digest"] not in {digest_of(salt, OTHER), digest_of(new_salt(), TEXT), sha256(TEXT)}


def test_what_a_host_claims_by_itself_counts_for_nothing() -> None:
    salt = new_salt()
    seen: dict[str, Any] = {
        "/a": {"type": "file", "agrees": True, "digest": "x" * 64},
        "/b": {"type": "file", "agrees": True, "digest": ["y"]},
        "/c": {"type": "absent", "agrees": True},
        "/d": {"type": "file", "agrees": False, "digest": digest_of(salt, TEXT)},
        "/e": "no mapping",
        "/generated": {"type": "file", "agrees": False, "digest": "z"},
        "/f": {"type": "file", "digest": digest_of(salt, TEXT)},
    }
    judge(seen, salt, {"/a": TEXT, "/b": TEXT, "/c": TEXT, "/d": TEXT, "/e": TEXT, "/f": None})
    assert seen == {
        "/a": {"type": "file", "agrees": False},
        "/b": {"type": "file", "agrees": False},
        "/c": {"type": "absent"},
        "/d": {"type": "file", "agrees": True},
        "/e": "no mapping",
        "/generated": {"type": "file"},
        "/f": {"type": "file", "agrees": None},
    }
    judge("no mapping", salt, {})


def look(project: Path, host_file: Path) -> tuple[dict[str, Any], str]:
    """What a look says of the key file, and everything that Ansible told and wrote down meanwhile."""
    told: list[dict[str, Any]] = []
    probe = {"credentials": [str(host_file)], "key-files": {str(host_file): "secrets/chat.keys"}}
    hosts = {"here": {**LOCAL, "llamarig_project": str(project), "llamarig_probe": probe}}
    with private_directory() as private:
        run = run_playbook("observe", hosts, private, sink=told.append)
        written = "".join(path.read_text() for path in private.rglob("*") if path.is_file())
    result = run.hosts["here"].results["rig_observe"]
    return result["observed"]["credentials"][str(host_file)], json.dumps(told) + run.messages + written


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "secrets").mkdir()
    return tmp_path


def test_a_change_is_seen_and_nothing_of_the_keys_is_told(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANSIBLE_VERBOSITY", "4")
    monkeypatch.setenv("ANSIBLE_LOG_PATH", str(tmp_path / "ansible.log"))
    host_file, own = tmp_path / "chat.keys", project / "secrets" / "chat.keys"
    host_file.write_text(TEXT)
    for content, agrees in ((TEXT, True), (TEXT.rstrip(), True), (OTHER, False), (OTHER.replace("\n", "\r\n"), False)):
        own.write_bytes(content.encode())
        seen, told = look(project, host_file)
        assert seen["agrees"] is agrees
        assert seen["keys"] == 1
        assert "digest" not in seen
        told += (tmp_path / "ansible.log").read_text() if (tmp_path / "ansible.log").exists() else ""
        for secret in ("0123456789abcdef0123", "fedcba98765432100123", sha256(TEXT), sha256(OTHER)):
            assert secret not in told


def test_a_vault_file_is_compared_by_what_is_in_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host_file, own, password = tmp_path / "chat.keys", project / "secrets" / "chat.keys", tmp_path / "password"
    password.write_text(VAULT_PASSWORD)
    host_file.write_text(TEXT)
    own.write_text(TEXT)
    vault = [sys.executable, "-m", "ansible", "vault", "encrypt", "--vault-password-file", str(password), str(own)]
    subprocess.run(vault, check=True, capture_output=True)
    assert own.read_text().startswith("$ANSIBLE_VAULT")
    assert look(project, host_file)[0]["agrees"] is None, "without its password nothing is known"
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(password))
    assert look(project, host_file)[0]["agrees"] is True
    host_file.write_text(OTHER)
    assert look(project, host_file)[0]["agrees"] is False


def test_without_the_file_on_this_controller_nothing_is_known(project: Path, tmp_path: Path) -> None:
    (tmp_path / "chat.keys").write_text(TEXT)
    assert look(project, tmp_path / "chat.keys")[0]["agrees"] is None


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
