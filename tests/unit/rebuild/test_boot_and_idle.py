"""What runs on the host for a reboot: GRUB's entries, and who would notice."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import module, part

boot = module("rig_boot")
part("rig_talk")
quiet = part("rig_quiet")

RUNNING = os.uname().release
UUID = "1b0c2f7e-0000-4000-8000-000000000001"
NEWER = "99.1.0+deb13-amd64"
GRUB = f"""
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-{UUID}' {{
	linux	/boot/vmlinuz-{NEWER} root=UUID={UUID} ro quiet
}}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-{UUID}' {{
	menuentry 'Debian GNU/Linux, with Linux {NEWER}' $menuentry_id_option 'gnulinux-{NEWER}-advanced-{UUID}' {{
		linux	/boot/vmlinuz-{NEWER} root=UUID={UUID} ro quiet
	}}
	menuentry 'Debian, {NEWER} (recovery)' $menuentry_id_option 'gnulinux-{NEWER}-recovery-{UUID}' {{
	}}
	menuentry 'Debian, with Linux {RUNNING}' $menuentry_id_option 'gnulinux-{RUNNING}-advanced-{UUID}' {{
	}}
}}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {{
}}
"""
"""Composed after grub-mkconfig's 10_linux of GRUB 2.12, as Debian 13 has it."""


class FailedError(Exception):
    """What fail_json raises here."""


class Module:
    """AnsibleModule, as far as rig_boot uses it."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []

    def run_command(self, argv: list[str], check_rc: bool) -> None:
        assert check_rc
        self.commands.append(argv)

    def fail_json(self, msg: str) -> None:
        raise FailedError(msg)

    def fail(self, argv: list[str], check_rc: bool) -> None:
        assert check_rc
        raise FailedError(" ".join(argv))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "boot/grub").mkdir(parents=True)
    (tmp_path / "boot/grub/grub.cfg").write_text(GRUB)
    return tmp_path


def test_an_entry_is_named_with_the_submenu_that_it_lies_in() -> None:
    assert boot.entries(GRUB) == {
        kernel: f"gnulinux-advanced-{UUID}>gnulinux-{kernel}-advanced-{UUID}" for kernel in (NEWER, RUNNING)
    }


def test_the_new_kernel_is_tried_once_and_the_present_one_stays(root: Path) -> None:
    host = Module()
    done = boot.choose(host, root, "try", NEWER)
    last_good = f"gnulinux-advanced-{UUID}>gnulinux-{RUNNING}-advanced-{UUID}"
    assert (done["chooses"], done["default"]) == (True, last_good)
    assert host.commands == [
        ["update-grub"],
        ["grub-set-default", last_good],
        ["grub-reboot", f"gnulinux-advanced-{UUID}>gnulinux-{NEWER}-advanced-{UUID}"],
    ]
    assert "GRUB_DEFAULT=saved" in (root / "etc/default/grub.d/llamarig.cfg").read_text()


def test_what_was_proven_is_kept_and_the_setting_written_once(root: Path) -> None:
    boot.choose(Module(), root, "try", NEWER)
    host = Module()
    assert boot.choose(host, root, "keep", "")["changed"] is True
    assert [argv[0] for argv in host.commands] == ["grub-set-default"]
    entry = f"gnulinux-advanced-{UUID}>gnulinux-{RUNNING}-advanced-{UUID}"
    (root / "boot/grub/grubenv").write_text(f"# GRUB Environment Block\nsaved_entry={entry}\n####")
    again = Module()
    assert boot.choose(again, root, "keep", "")["changed"] is False
    assert again.commands == []


def test_a_kernel_without_an_entry_is_not_booted(root: Path) -> None:
    host = Module()
    with pytest.raises(FailedError, match=r"no entry for kernel 5\.0"):
        boot.choose(host, root, "try", "5.0")
    assert host.commands == []


def test_without_grub_nothing_is_chosen(tmp_path: Path) -> None:
    host = Module()
    assert boot.choose(host, tmp_path, "try", NEWER) == {"changed": True, "chooses": False, "default": ""}
    assert host.commands == []
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")] == ["var/lib/llamarig/kernels.json"]


def written(root: Path) -> list[str]:
    return sorted(
        str(path.relative_to(root)) for place in ("etc", "var") for path in (root / place).rglob("*") if path.is_file()
    )


def test_all_that_was_written_is_taken_away_again(root: Path) -> None:
    (root / boot.GUARD).parent.mkdir(parents=True)
    boot.choose(Module(), root, "try", NEWER)
    boot.choose(Module(), root, "keep", "")
    assert len(written(root)) == 3
    host = Module()
    assert boot.forget(host, root) == {"changed": True, "chooses": False, "default": ""}
    assert host.commands == [["update-grub"]]
    assert written(root) == []
    again = Module()
    assert boot.forget(again, root)["changed"] is False
    assert again.commands == []


def test_a_menu_that_could_not_be_made_anew_is_made_the_next_time(root: Path) -> None:
    boot.choose(Module(), root, "keep", "")
    broken = Module()
    broken.run_command = broken.fail  # type: ignore[method-assign] # the command that fails
    with pytest.raises(FailedError):
        boot.forget(broken, root)
    assert boot.SETTING not in written(root)
    host = Module()
    assert boot.forget(host, root)["changed"] is True
    assert host.commands == [["update-grub"]]
    assert written(root) == []


def test_without_grub_no_menu_is_made(tmp_path: Path) -> None:
    boot.choose(Module(), tmp_path, "keep", "")
    host = Module()
    assert boot.forget(host, tmp_path)["changed"] is True
    assert host.commands == []
    assert written(tmp_path) == []


def test_a_rollback_chooses_a_kernel_for_good(root: Path) -> None:
    host = Module()
    boot.choose(host, root, "choose", NEWER)
    assert host.commands[-1] == ["grub-set-default", f"gnulinux-advanced-{UUID}>gnulinux-{NEWER}-advanced-{UUID}"]
    with pytest.raises(FailedError, match=r"no entry for kernel 5\.0"):
        boot.choose(host, root, "choose", "5.0")


def test_the_last_good_kernels_are_written_down_and_kept_from_autoremove(root: Path) -> None:
    guard = root / boot.GUARD
    guard.parent.mkdir(parents=True)
    (root / "var/lib/llamarig").mkdir(parents=True)
    kernels = root / "var/lib/llamarig/kernels.json"
    kernels.write_text('{"schema": 1, "proven": ["6.1.0-2-amd64", "6.1.0-1-amd64"]}')
    boot.choose(Module(), root, "keep", "")
    assert json.loads(kernels.read_text())["proven"] == [RUNNING, "6.1.0-2-amd64"]
    assert r'"^linux-(image|headers)-6\.1\.0-2-amd64$";' in guard.read_text()
    assert "6.1.0-1" not in guard.read_text().replace("\\", "")
    # Choosing one to go back to proves nothing of it.
    boot.choose(Module(), root, "choose", NEWER)
    assert json.loads(kernels.read_text())["proven"] == [RUNNING, "6.1.0-2-amd64"]
    assert r"99\.1\.0\+deb13-amd64" in guard.read_text()


def proven(root: Path, *names: str) -> Path:
    place = root / "var/lib/llamarig/kernels.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"schema": 1, "proven": names}))
    return place


def noted(root: Path, kernel: str) -> None:
    """A try of a kernel that nobody has proven since."""
    boot.write_note({"kernel": kernel, "module": "1 open", "packages": "x"}, str(root))


GOOD = "6.1.0-2-amd64"


@pytest.mark.parametrize("kernel", [RUNNING, NEWER])
def test_a_kernel_whose_boot_was_not_proven_becomes_no_default(root: Path, kernel: str) -> None:
    (root / "boot/grub/grub.cfg").write_text(GRUB.replace(f"-{NEWER}-recovery-", f"-{GOOD}-advanced-"))
    kernels = proven(root, "5.0", GOOD)
    noted(root, RUNNING)
    host = Module()
    entry = f"gnulinux-advanced-{UUID}>gnulinux-{GOOD}-advanced-{UUID}"
    assert boot.choose(host, root, "try", kernel)["default"] == entry
    assert ["grub-set-default", entry] in host.commands
    assert host.commands[-1] == ["grub-reboot", f"gnulinux-advanced-{UUID}>gnulinux-{kernel}-advanced-{UUID}"]
    assert RUNNING not in json.loads(kernels.read_text())["proven"]
    # Proven in the end, it is the default.
    boot.choose(Module(), root, "keep", "")
    assert json.loads(kernels.read_text())["proven"] == [RUNNING, GOOD]


def test_of_proven_kernels_that_are_gone_none_is_chosen_and_none_is_added(root: Path) -> None:
    kernels = proven(root, "5.0")
    assert boot.choose(Module(), root, "try", RUNNING)["default"].endswith(f"gnulinux-{RUNNING}-advanced-{UUID}")
    assert json.loads(kernels.read_text())["proven"] == ["5.0"]


def test_without_grub_an_unproven_kernel_is_not_written_down_either(tmp_path: Path) -> None:
    kernels = proven(tmp_path, GOOD)
    boot.choose(Module(), tmp_path, "try", RUNNING)
    assert json.loads(kernels.read_text())["proven"] == [GOOD]


@pytest.mark.parametrize("before", [(), (RUNNING, GOOD)])
def test_the_running_kernel_is_the_last_good_one_of_a_first_try(root: Path, before: tuple[str, ...]) -> None:
    kernels = proven(root, *before)
    assert boot.choose(Module(), root, "try", RUNNING)["default"].endswith(f"gnulinux-{RUNNING}-advanced-{UUID}")
    assert json.loads(kernels.read_text())["proven"][0] == RUNNING


def test_a_kernel_that_somebody_booted_himself_is_a_good_one(root: Path) -> None:
    kernels = proven(root, GOOD)
    assert boot.choose(Module(), root, "try", NEWER)["default"].endswith(f"gnulinux-{RUNNING}-advanced-{UUID}")
    assert json.loads(kernels.read_text())["proven"] == [RUNNING, GOOD]


def session(place: Path, name: str, **fields: Any) -> None:
    """As systemd-logind writes /run/systemd/sessions (login/logind-session.c, session_save)."""
    told = {"UID": 1000, "USER": "anna", "ACTIVE": 1, "STATE": "active", "CLASS": "user", "TTY": "pts/0", "LEADER": 7}
    lines = [f"{key}={value}" for key, value in (told | fields).items()]
    (place / name).write_text("# This is private data. Do not parse.\n" + "\n".join(lines) + "\n")


def test_people_are_seen_and_the_session_that_asks_is_not(tmp_path: Path) -> None:
    session(tmp_path, "1")
    session(tmp_path, "2", USER="berta", TTY="", REMOTE_HOST="192.0.2.7", LEADER=9)
    session(tmp_path, "3", USER="root", CLASS="manager", LEADER=11)
    session(tmp_path, "4", STATE="closing", LEADER=12)
    session(tmp_path, "c1", USER="gdm", CLASS="greeter", LEADER=13)
    session(tmp_path, "5", USER="root", LEADER=os.getpid())
    (tmp_path / "1.ref").mkdir()
    assert quiet.users(quiet.ancestors(os.getpid()), str(tmp_path)) == ["anna on pts/0", "berta on 192.0.2.7"]
    assert quiet.users(set(), str(tmp_path / "none")) == []


def process(place: Path, pid: int, comm: str, of: tuple[int, int], terminal: int) -> None:
    """As the kernel writes /proc/PID/stat, with as many fields as are read."""
    parent, session = of
    (place / str(pid)).mkdir(parents=True)
    (place / str(pid) / "stat").write_text(f"{pid} ({comm}) S {parent} {session} {session} {terminal} -1 0")


def test_terminals_tell_of_people_where_logind_is_not_told(tmp_path: Path) -> None:
    pts = os.makedev(136, 0)
    process(tmp_path, 1, "systemd", (0, 1), 0)
    process(tmp_path, 5, "agetty", (1, 5), os.makedev(4, 1))
    process(tmp_path, 20, "bash (x) y", (1, 20), pts + 3)
    process(tmp_path, 21, "vi", (20, 20), pts + 3)
    process(tmp_path, 30, "bash", (1, 30), os.makedev(4, 2))
    process(tmp_path, 40, "tmux: server", (1, 40), 0)
    process(tmp_path, 41, "bash", (40, 41), pts + 4)
    process(tmp_path, 50, "bash", (1, 50), pts + 5)
    process(tmp_path, 60, "sshd", (1, 60), 0)
    (tmp_path / "70").mkdir()
    (tmp_path / "self").mkdir()
    me = quiet._name(os.getuid())
    assert quiet.terminals({50}, str(tmp_path)) == [f"{me} on pts/3", f"{me} on tty2"]
    assert quiet._name(4_000_000_000) == "user 4000000000"


def test_pam_says_whether_logind_hears_of_logins(tmp_path: Path) -> None:
    pam = tmp_path / "common-session"
    assert not quiet.logind_is_told(str(pam))
    pam.write_text("session required pam_unix.so\nsession optional pam_systemd.so\n")
    assert quiet.logind_is_told(str(pam))


def test_ancestors_end_somewhere(tmp_path: Path) -> None:
    assert os.getppid() in quiet.ancestors(os.getpid())
    (tmp_path / "5").mkdir()
    (tmp_path / "5/stat").write_text("5 (a) b) S 5 1 1")
    assert quiet.ancestors(5, str(tmp_path)) == {5}


JOURNAL = """\
slot launch_slot_: id  0 | task 12 | processing task, is_child = 0
slot      release: id  0 | task 12 | stop processing: n_tokens = 31, truncated = 0
srv  update_slots: all slots are idle
srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200
srv  log_server_r: done request: GET /health 127.0.0.1 200
"""
"""Forms of the engine's server-context.cpp and server-http.cpp."""


def test_requests_of_late_are_counted_from_the_journal() -> None:
    asked: list[list[str]] = []

    def read(argv: list[str], _seconds: float) -> str:
        asked.append(argv)
        return JOURNAL

    assert quiet.recent("llama-chat.service", 5, read) == 2
    assert "--since=-5min" in asked[0]
    assert quiet.recent("llama-chat.service", 0, read) == 0


@pytest.mark.parametrize(
    ("slots", "metrics", "found"),
    [
        ([{"is_processing": True}, {"is_processing": False}], "", 1),
        ([{"is_processing": False}], "llamacpp:requests_deferred 2\nllamacpp:requests_processing 1\n", 2),
        ([{"is_processing": False}], "llamacpp:requests_processing 0\n", 0),
        (None, "llamacpp:requests_processing 3\n", 3),
        (None, "", None),
    ],
)
def test_a_server_tells_what_it_does(
    monkeypatch: pytest.MonkeyPatch, slots: Any, metrics: str, found: int | None
) -> None:
    monkeypatch.setattr(quiet.rig_witness, "owner", lambda *_given: {"ours": True})
    answers = {"/slots": {"status": 200, "json": slots} if slots else {"error": "no"}, "/metrics": {"text": metrics}}
    monkeypatch.setattr(quiet.rig_talk, "ask", lambda _connect, path, *_more: answers[path])
    given = {"address": "127.0.0.1", "port": 1, "tls": False, "key_file": ""}
    assert quiet.processing(given, 1)[0] == found


def test_the_key_goes_to_no_socket_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet.rig_witness, "owner", lambda *_given: {"ours": False})
    monkeypatch.setattr(quiet.rig_talk, "ask", lambda *_given: pytest.fail("it was asked"))
    given = {"address": "127.0.0.1", "port": 1, "tls": False, "key_file": "/x"}
    assert quiet.processing(given, 1) == (None, "the unit does not own its socket")


def test_a_unit_that_does_not_run_is_no_hindrance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet.rig_witness, "unit_state", lambda _unit: {"MainPID": "0"})
    assert quiet.service({"unit": "llama-chat.service"}, 5)["running"] is False
    monkeypatch.setattr(quiet.rig_witness, "unit_state", lambda _unit: {"MainPID": "broken"})
    assert quiet.service({"unit": "llama-chat.service"}, 5)["processing"] is None


def test_draining_ends_with_the_last_request(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([2, 1, 0, 7])
    slept: list[float] = []
    monkeypatch.setattr(quiet, "service", lambda *_given: {"processing": next(counts)})
    found = quiet.drained([{"name": "chat"}], 0, 60, slept.append)
    assert found["services"]["chat"]["processing"] == 0
    assert len(slept) == 2
    assert found["waited-s"] < 60


def test_draining_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 90, 10))
    monkeypatch.setattr(quiet.time, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(quiet, "service", lambda *_given: {"processing": 1})
    found = quiet.drained([{"name": "chat"}], 0, 35, lambda _seconds: None)
    assert found["services"]["chat"]["processing"] == 1
    assert found["waited-s"] == 40


def test_nobody_waits_for_an_answer_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "service", lambda *_given: {"processing": None})
    found = quiet.drained([{"name": "chat"}], 0, 60, lambda _seconds: pytest.fail("it waited"))
    assert found["services"]["chat"]["processing"] is None


def test_the_clock_tells_its_zone(tmp_path: Path) -> None:
    link = tmp_path / "localtime"
    link.symlink_to("../usr/share/zoneinfo/Europe/Berlin")
    told = quiet.clock(str(link))
    assert told["timezone"] == "Europe/Berlin"
    assert told["time"] > 0
    assert abs(told["utc-offset-s"]) <= 14 * 3600
    assert quiet.clock(str(tmp_path / "none"))["timezone"] == ""
