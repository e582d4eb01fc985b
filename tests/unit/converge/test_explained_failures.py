"""What the tools beneath say, and what the user is told. Texts of ssh and sudo are recorded from OpenSSH 10 and
sudo 1.9 on Debian 13; apt's and systemd's are shortened."""

from __future__ import annotations

import pytest

from llamarig.converge.explain import explain, printable
from llamarig.errors import ExitCode

UNKNOWN = (
    'Task failed: Data could not be sent to remote host "192.0.2.7". Make sure this host can be reached over ssh: '
    "No ED25519 host key is known for 192.0.2.7 and you have requested strict checking.\r\n"
    "Host key verification failed.\r\n"
)
CHANGED = (
    "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r\n"
    "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
    "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r\n"
    "The fingerprint for the ED25519 key sent by the remote host is\n"
    "SHA256:6hy17Xca8MpmTQo7XxWWxudgnqWeeUKTNTJQLx6.\r\n"
    "Add correct host key in /tmp/llamarig-x/demo.known_hosts to get rid of this message.\r\n"
    "Offending ED25519 key in /tmp/llamarig-x/demo.known_hosts:1\r\n  remove with:\r\n"
    '  ssh-keygen -f "/tmp/llamarig-x/demo.known_hosts" -R "llamarig-demo"\r\n'
    "Host key for llamarig-demo has changed and you have requested strict checking.\r\nHost key verification failed."
)


def event(status: str = "unreachable", action: str = "rig_observe", **result: str) -> dict[str, object]:
    return {"status": status, "action": action, "task": "Observe the host", "result": result}


@pytest.mark.parametrize(
    ("said", "what", "fix"),
    [
        (UNKNOWN, "never accepted silently", "ssh-keyscan"),
        (CHANGED, "another host key", "own console"),
        ("root@192.0.2.7: Permission denied (publickey).", "refused the login", "identity-file"),
        ("ssh: Could not resolve hostname nowhere: Name or service not known", "no address", "connection.address"),
        ("ssh: connect to host 192.0.2.7 port 22: Connection refused", "cannot be reached", "sshd"),
        ("sudo: a password is required", "wants a password", "--ask-become-pass"),
        ("/bin/sh: 1: /usr/bin/python3: not found", "no Python", "install python3"),
    ],
)
def test_the_tools_own_words_stay_and_the_fix_is_named(said: str, what: str, fix: str) -> None:
    error = explain("demo", event(msg=said))
    assert what in error.what
    assert fix in error.fix
    assert error.where == "demo"
    assert error.code == ExitCode.HOST_FAILED
    assert said.strip().splitlines()[-1].removeprefix("Task failed: ").strip() in error.why


def test_advice_about_our_own_temporary_file_is_left_out() -> None:
    error = explain("demo", event(msg=CHANGED))
    assert "SHA256:6hy17" in error.why
    assert "/tmp/" not in error.why
    assert "@@@" not in error.why


def test_apts_words_are_in_front_once() -> None:
    said = "E: Version '9.9' for 'cmake' was not found"
    error = explain(
        "demo", event("failed", "apt", msg=f"'/usr/bin/apt-get install' failed: {said}", stderr=f"{said}\n")
    )
    assert error.what == "failed at: Observe the host"
    assert error.why.count(said) == 1


def test_a_play_that_fails_on_purpose_speaks_for_itself() -> None:
    error = explain("demo", event("failed", "fail", msg="Restart the services failed; rolled back\nunit says no"))
    assert error.what == "Restart the services failed; rolled back"
    assert error.why == "unit says no"


def test_who_holds_the_lock_is_the_headline() -> None:
    said = "another apply holds this host's lock: ada on desk (process 7), since today, run x"
    error = explain("demo", event("failed", "rig_lock", msg=said))
    assert error.what == said
    assert "--break-lock" in error.fix


def test_hostile_text_cannot_steer_the_terminal() -> None:
    error = explain("demo", event("failed", msg="\x1b]0;owned\x07\x1b[2Jgone\u202etxt"))
    assert "\x1b" not in error.why
    assert "\x07" not in error.why
    assert "\u202e" not in error.why
    assert len(printable("x" * 1_000_000)) <= 6000


def test_a_failure_that_says_nothing_is_still_an_error() -> None:
    assert explain("demo", {"status": "unreachable"}).what == "the host cannot be reached"
    assert explain("demo", {"status": "failed", "task": "Do it", "result": None}).what == "failed at: Do it"
