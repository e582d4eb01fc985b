"""What the tools beneath say, and what the user is told. Texts of ssh and sudo are recorded from OpenSSH 10 and
sudo 1.9 on Debian 13; apt's and systemd's are shortened."""

from __future__ import annotations

import pytest

from llamarig.converge.explain import explain, explain_all, printable
from llamarig.errors import ExitCode, RigError

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


def test_a_fix_that_the_words_end_with_is_the_fix() -> None:
    taken = "127.0.0.1:8080 is taken by pid 7 (nc); chat is to listen there"
    said = f"{taken}\nfix: stop that process, or\n  give another port"
    error = explain("demo", event("failed", "fail", msg=said))
    assert error.what == taken
    assert error.why == ""
    assert error.fix == "stop that process, or give another port"
    error = explain("demo", event("failed", "rig_flags", msg="it refuses --x: unknown\nfix: remove it"))
    assert (error.why, error.fix) == ("it refuses --x: unknown", "remove it")


def test_a_refusal_of_the_comparison_keeps_its_parts() -> None:
    refused = RigError("The host runs debian 12, its spec says debian 13.", "demo", "because", "correct `os`")
    assert explain("demo", event("failed", "rig_decide", msg=str(refused))) == RigError(
        refused.what, "demo", "because", "correct `os`", ExitCode.HOST_FAILED
    )


@pytest.mark.parametrize("status", ["failed", "unreachable"])
def test_no_failure_is_without_a_fix(status: str) -> None:
    assert explain("demo", event(status, "copy", msg="No space left on device")).fix


def test_only_sshs_own_words_are_told_of_a_connection() -> None:
    ansible = 'Data could not be sent to remote host "192.0.2.7". Make sure this host can be reached over ssh: '
    said = "ssh: connect to host 192.0.2.7 port 22: Connection refused"
    assert explain("demo", event(msg=f"Task failed: {ansible}{said}")).why == said
    assert "@@@" not in explain("demo", event(msg=ansible + CHANGED)).why


def test_a_loop_speaks_by_its_failed_items() -> None:
    items = [{"item": "llama-a.service", "msg": "port taken"}, {"item": "", "msg": "no", "stderr": "why"}, "junk"]
    result = {"msg": "One or more items failed", "items": items}
    error = explain("demo", {"status": "failed", "action": "systemd_service", "task": "Restart", "result": result})
    assert error.why == "llama-a.service: port taken\nan item: no\nwhy"


def test_the_first_cause_comes_first_when_going_back_fails_too() -> None:
    first, second = event("failed", "command", msg="disk full"), event("failed", "rig_switch", msg="not whole")
    error = explain_all("demo", [first, second])
    assert error.why.splitlines()[0] == "disk full"
    assert error.why.endswith("not whole")
    assert explain_all("demo", [first]).why == "disk full"


def test_the_story_that_a_rescue_tells_stays_the_headline() -> None:
    story = event("failed", "fail", msg="rolled back\nwhy")
    error = explain_all("demo", [event("failed", "command", msg="x"), story, event("failed", "rig_lock", msg="gone")])
    assert error.what == "rolled back"
    assert error.why.splitlines()[0] == "why"
    assert "gone" in error.why


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
