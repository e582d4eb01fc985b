"""How Ansible is told to reach a host: checked key, no question, no password on the way."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llamarig.converge.connection import connection_variables, read_password
from llamarig.errors import RigError
from llamarig.spec.host import Connection

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILNBSM+jWfpsCPVhoYBI8v4vOhYHBm5srwh44RVjDRBB"


def variables(tmp_path: Path, **keys: Any) -> dict[str, Any]:
    spec: Any = SimpleNamespace(host="demo", connection=Connection.model_validate(keys))
    private = tmp_path / "private"
    private.mkdir(exist_ok=True)
    return connection_variables(spec, tmp_path, private)


def test_a_pinned_key_is_the_only_one_that_counts(tmp_path: Path) -> None:
    found = variables(tmp_path, **{"address": "192.0.2.7", "port": 2222, "host-key": f"{KEY} root@somewhere"})
    arguments = found["ansible_ssh_common_args"]
    known = tmp_path / "private/demo.known_hosts"
    assert known.read_text() == f"llamarig-demo {KEY}\n"
    assert known.stat().st_mode & 0o077 == 0
    for option in (
        "StrictHostKeyChecking=yes",
        f"UserKnownHostsFile={known}",
        "GlobalKnownHostsFile=/dev/null",
        "HostKeyAlias=llamarig-demo",
        "BatchMode=yes",
    ):
        assert f"-o {option}" in arguments
    assert (found["ansible_host"], found["ansible_port"], found["ansible_user"]) == ("192.0.2.7", 2222, "root")


def test_without_a_pinned_key_the_users_known_hosts_decides_strictly(tmp_path: Path) -> None:
    arguments = variables(tmp_path)["ansible_ssh_common_args"]
    assert "StrictHostKeyChecking=yes" in arguments
    assert "UserKnownHostsFile" not in arguments


def test_another_pin_never_rides_on_an_older_connection(tmp_path: Path) -> None:
    paths = set()
    others = ({}, {"host-key": KEY}, {"host-key": KEY.replace("LNB", "LNC")}, {"user": "admin"}, {"port": 23})
    for keys in others:
        paths.add(variables(tmp_path, **keys)["ansible_control_path"])
        (tmp_path / "private/demo.known_hosts").unlink(missing_ok=True)
    assert len(paths) == 5
    assert all(len(path) < 100 for path in paths), "a socket's name has 108 bytes"


@pytest.mark.parametrize("key", ["AAAA", "ssh-dss AAAA", "ssh-ed25519 short", "ssh-ed25519 %h $(id)"])
def test_what_is_no_key_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(RigError, match="host-key"):
        variables(tmp_path, **{"host-key": key})


def test_an_address_that_ssh_would_read_as_an_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="dash"):
        variables(tmp_path, address="-oProxyCommand=id")


def test_the_identity_is_found_from_the_project_and_used_alone(tmp_path: Path) -> None:
    found = variables(tmp_path, **{"identity-file": "keys/demo"})
    assert found["ansible_ssh_private_key_file"] == f"{tmp_path}/keys/demo"
    assert "-o IdentitiesOnly=yes" in found["ansible_ssh_common_args"]


def test_a_local_host_needs_no_ssh(tmp_path: Path) -> None:
    found = variables(tmp_path, type="local")
    assert found["ansible_connection"] == "local"
    assert "ansible_host" not in found


def test_no_password_is_among_the_variables(tmp_path: Path) -> None:
    (tmp_path / "sudo").write_text("correct horse\n")
    (tmp_path / "sudo").chmod(0o600)
    found = variables(tmp_path, **{"user": "admin", "become": True, "become-password-file": "sudo"})
    assert found["ansible_become"] is True
    assert "correct horse" not in json.dumps(found)
    assert read_password(found["llamarig_become_password_file"]) == "correct horse"


@pytest.mark.parametrize(("mode", "text", "words"), [(0o644, "x\n", "open to others"), (0o600, "", "is empty")])
def test_a_careless_password_file_is_refused(tmp_path: Path, mode: int, text: str, words: str) -> None:
    path = tmp_path / "sudo"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(RigError, match=words):
        read_password(str(path))
    with pytest.raises(RigError, match="cannot be read"):
        read_password(str(tmp_path / "none"))
