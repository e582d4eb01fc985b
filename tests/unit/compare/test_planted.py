"""A converged host has nothing to do; each planted change gives exactly its own action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from llamarig.compare import Action, compare, restarts
from tests.support.compare.cases import (
    BASE,
    BUILT,
    KEYS,
    LINK,
    MODEL,
    OTHER_UNIT,
    PROBE,
    RELEASE,
    SERVER,
    UNIT,
    Case,
    bare_observation,
    sha,
    wanted_state,
)

RECORD = "/var/lib/llamarig/record.json"
OLDER = "4df29be4f-ffffffffffff"


def put(*keys: str, value: Any) -> Callable[[Case], None]:
    """A change of one value of the observation."""

    def change(case: Case) -> None:
        at = case.observed
        for key in keys[:-1]:
            at = at[key]
        assert keys[-1] in at, "a planted change changes what is there"
        at[keys[-1]] = value

    return change


def edit_unit(case: Case) -> None:
    case.observed["files"][UNIT] |= {"sha256": sha("edited"), "lines": ["[Service]", "ExecStart=evil"]}
    case.unit()["need-reload"] = True


def edit_unit_and_restart(case: Case) -> None:
    edit_unit(case)
    case.unit()["need-reload"] = False
    case.process()["argv"][4] = "2048"


def change_flag_in_spec(case: Case) -> None:
    first, second = case.wanted.services
    argv = tuple("8192" if word == "4096" else word for word in first.argv)
    unit = replace(case.wanted.files[1], content="[Service]\nExecStart=chat with 8192\n")
    case.want(services=(replace(first, argv=argv), second), files=(case.wanted.files[0], unit, case.wanted.files[2]))


def replace_binary(case: Case) -> None:
    case.release()["files"]["bin/llama-server"] |= {"sha256": sha("evil"), "hashed": True}
    case.release()["files"]["bin/llama-server"]["stat"][4] += 1
    for name in ("chat", "embed"):
        case.process(name)["deleted"] = True


def swap_model(case: Case) -> None:
    case.observed["models"][MODEL] |= {"sha256": sha("another"), "hashed": True}
    case.observed["models"][MODEL]["stat"][1] += 1


def move_link(case: Case) -> None:
    case.observed["current"] = f"releases/{OLDER}"


def move_link_and_restart(case: Case) -> None:
    move_link(case)
    case.process()["exe"] = f"/opt/llamarig/releases/{OLDER}/bin/llama-server"
    case.process()["mapped"] = {}


def run_older_binary(case: Case) -> None:
    """What a kill between the switch and the restart leaves behind."""
    case.process() | {}
    case.process().update(
        {
            "exe": f"/opt/llamarig/releases/{OLDER}/bin/llama-server",
            "exe-sha256": sha("older"),
            "mapped": {f"/opt/llamarig/releases/{OLDER}/lib/libllama.so.0": sha("older lib")},
        }
    )


def run_other_library(case: Case) -> None:
    case.process()["mapped"][f"{BASE}/lib/libllama.so.0"] = sha("evil")


def run_other_arguments(case: Case) -> None:
    case.process()["argv"][4] = "2048"


def stop(case: Case) -> None:
    case.stop()


def crash(case: Case) -> None:
    case.stop(result="oom-kill")


def take_port(case: Case) -> None:
    case.stop(result="exit-code")
    case.observed["ports"]["127.0.0.1:8080"] = [{"pid": 4711, "command": "python3"}]


def share_port(case: Case) -> None:
    case.observed["ports"]["127.0.0.1:8080"].append({"pid": 4711, "command": "python3"})


def remove_credential(case: Case) -> None:
    case.observed["credentials"][KEYS] = {"type": "absent"}


def change_client(case: Case) -> None:
    case.observed["credentials"][KEYS]["clients"] = ["default", "stranger"]


def edit_record(case: Case) -> None:
    """An edited record is not believed, so everything was hashed again."""
    case.observed["record-state"] = "edited"
    for entry in [*case.release()["files"].values(), case.observed["models"][MODEL]]:
        entry["hashed"] = True


def touch_model(case: Case) -> None:
    case.observed["models"][MODEL]["stat"][3] += 1
    case.observed["models"][MODEL]["hashed"] = True


def add_drop_in(case: Case) -> None:
    case.unit()["drop-ins"] = [f"{UNIT}.d/override.conf"]
    case.unit()["need-reload"] = True


def add_library(case: Case) -> None:
    case.release()["files"]["lib/libggml-evil.so"] = dict(case.release()["files"]["lib/libggml.so.0"])


def leave_unit(case: Case) -> None:
    old = "/etc/systemd/system/llama-old.service"
    case.observed["record"]["files"][old] = {"sha256": sha("old"), "stat": [1, 2, 3, 4, 5]}
    case.observed["files"][old] = {
        "type": "file",
        "sha256": sha("old"),
        "mode": "0644",
        "owner": "root",
        "group": "root",
        "size": 3,
    }


@dataclass(frozen=True)
class Planted:
    name: str
    change: Callable[[Case], None]
    kind: str
    subject: str
    words: str
    """A part of the reason."""
    restarts: tuple[str, ...] = ()


BOTH = ("chat", "embed")
PLANTED = [
    Planted("unit edited", edit_unit, "file", UNIT, "was edited on the host", ("chat",)),
    Planted("unit edited and restarted", edit_unit_and_restart, "file", UNIT, "--ctx-size 2048 -> 4096", ("chat",)),
    Planted(
        "unit removed",
        put("files", OTHER_UNIT, value={"type": "absent"}),
        "file",
        OTHER_UNIT,
        "is not there",
        ("embed",),
    ),
    Planted(
        "unit masked",
        put("files", UNIT, value={"type": "link", "target": "/dev/null"}),
        "file",
        UNIT,
        "is a link instead of a file",
        ("chat",),
    ),
    Planted("flag changed", change_flag_in_spec, "file", UNIT, "the spec changed: --ctx-size 4096 -> 8192", ("chat",)),
    Planted("binary replaced", replace_binary, "release", RELEASE, "bin/llama-server was replaced", BOTH),
    Planted("library added", add_library, "release", RELEASE, "lib/libggml-evil.so was added", BOTH),
    Planted(
        "library mode",
        put("releases", RELEASE, "files", "lib/libggml.so.0", "mode", value="0666"),
        "release",
        RELEASE,
        "others may write it",
        BOTH,
    ),
    Planted(
        "server not executable",
        put("releases", RELEASE, "files", "bin/llama-server", "mode", value="0644"),
        "release",
        RELEASE,
        "may not execute",
        BOTH,
    ),
    Planted(
        "library a link elsewhere",
        put("releases", RELEASE, "files", "lib/libggml.so.0", value={"type": "link", "target": "/tmp/x.so"}),
        "release",
        RELEASE,
        "lib/libggml.so.0 is a link",
        BOTH,
    ),
    Planted(
        "release directory open",
        put("releases", RELEASE, "directories", "lib", "mode", value="0777"),
        "release",
        RELEASE,
        "its directory lib has mode 0777",
        BOTH,
    ),
    Planted(
        "provenance edited",
        put("releases", RELEASE, "provenance-sha256", value=sha("x")),
        "release",
        RELEASE,
        "provenance.json was changed",
        BOTH,
    ),
    Planted("model swapped", swap_model, "model", MODEL, "has other content", BOTH),
    Planted("model link moved", put("links", LINK, value="../sha256/other"), "model", MODEL, "leads to", BOTH),
    Planted("model mode", put("models", MODEL, "mode", value="0644"), "model", MODEL, "mode 0644 instead of 0444"),
    Planted("model cut short", put("models", MODEL, "size", value=10), "model", MODEL, "has 10 bytes", BOTH),
    Planted("package removed", put("packages", "cmake", value=None), "package", "cmake", "is not installed"),
    Planted(
        "package of another version",
        put("packages", "libgomp1", value="15.1"),
        "package",
        "libgomp1",
        "has version 15.1 instead of 14.2.0-19",
    ),
    Planted("link moved", move_link, "switch", "/opt/llamarig/current", f"leads to releases/{OLDER}"),
    Planted("link moved and one restarted", move_link_and_restart, "switch", "/opt/llamarig/current", OLDER, ("chat",)),
    Planted("older binary runs", run_older_binary, "service", "chat", "which is not of release", ("chat",)),
    Planted("other library loaded", run_other_library, "service", "chat", "libllama.so.0 loaded", ("chat",)),
    Planted("other arguments run", run_other_arguments, "service", "chat", "--ctx-size 2048 -> 4096", ("chat",)),
    Planted(
        "variable planted",
        put("processes", "812", "environment", value={"LLAMA_ARG_TOOLS": "all"}),
        "service",
        "chat",
        "variable LLAMA_ARG_TOOLS dropped",
        ("chat",),
    ),
    Planted(
        "runs as root", put("processes", "812", "user", value="root"), "service", "chat", "runs as root", ("chat",)
    ),
    Planted("service stopped", stop, "service", "chat", "is inactive (dead)", ("chat",)),
    Planted("service crashed", crash, "service", "chat", "is failed (dead, oom-kill)", ("chat",)),
    Planted(
        "service disabled",
        put("units", "llama-chat.service", "enabled", value="disabled"),
        "service",
        "chat",
        "does not start at boot (disabled)",
    ),
    Planted(
        "another unit file",
        put("units", "llama-chat.service", "fragment", value="/run/systemd/system/x.service"),
        "service",
        "chat",
        "another unit file is in force",
    ),
    Planted(
        "not reloaded",
        put("units", "llama-chat.service", "need-reload", value=True),
        "service",
        "chat",
        "has not read its changed unit",
        ("chat",),
    ),
    Planted(
        "nobody listens", put("ports", "127.0.0.1:8080", value=[]), "service", "chat", "does not listen at", ("chat",)
    ),
    Planted("port taken", take_port, "port", "127.0.0.1:8080", "is taken by pid 4711 (python3)", ("chat",)),
    Planted("port shared", share_port, "port", "127.0.0.1:8080", "is taken by pid 4711", ("chat",)),
    Planted(
        "user's shell",
        put("users", "llama-chat", "shell", value="/bin/bash"),
        "user",
        "llama-chat",
        "shell /bin/bash instead of",
    ),
    Planted(
        "user's groups",
        put("users", "llama-chat", "groups", value=["video", "docker"]),
        "user",
        "llama-chat",
        "docker",
        ("chat",),
    ),
    Planted("user unlocked", put("users", "llama-chat", "locked", value=False), "user", "llama-chat", "password"),
    Planted(
        "user is root", put("users", "llama-embed", "uid", value=0), "user", "llama-embed", "user id 0", ("embed",)
    ),
    Planted("user removed", put("users", "llama-chat", value=None), "user", "llama-chat", "no such user", ("chat",)),
    Planted("file mode", put("files", PROBE, "mode", value="0777"), "file", PROBE, "mode 0777 instead of 0755"),
    Planted("file owner", put("files", UNIT, "owner", value="llama-chat"), "file", UNIT, "owner llama-chat instead"),
    Planted(
        "directory mode",
        put("directories", "/opt/llamarig", "mode", value="0777"),
        "directory",
        "/opt/llamarig",
        "mode 0777 instead of 0755",
    ),
    Planted(
        "directory a link",
        put("directories", "/opt/llamarig", value={"type": "link", "mode": "0777"}),
        "directory",
        "/opt/llamarig",
        "is a link instead of a dir",
    ),
    Planted("credential removed", remove_credential, "credential", KEYS, "is not there", ("chat",)),
    Planted(
        "credential emptied", put("credentials", KEYS, "keys", value=0), "credential", KEYS, "holds no key", ("chat",)
    ),
    Planted("credential readable", put("credentials", KEYS, "mode", value="0644"), "credential", KEYS, "mode 0644"),
    Planted("credential of a stranger", change_client, "credential", KEYS, "stranger", ("chat",)),
    Planted("record edited", edit_record, "record", RECORD, "its digest does not hold"),
    Planted("record removed", put("record-state", value="absent"), "record", RECORD, "is not there"),
    Planted("record unreadable", put("record-state", value="unreadable"), "record", RECORD, "cannot be read"),
    Planted("record of another release", put("record", "release", value=OLDER), "record", RECORD, OLDER),
    Planted("model touched", touch_model, "record", RECORD, "has other time stamps"),
    Planted("drop-in added", add_drop_in, "service", "chat", "override.conf is not ours", ("chat",)),
    Planted(
        "unit of a removed service",
        leave_unit,
        "file",
        "/etc/systemd/system/llama-old.service",
        "is not wanted any more",
    ),
]


def one(case: Case) -> Action:
    actions = compare(case.wanted, case.observed)
    assert len(actions) == 1, [f"{action.kind} {action.subject}: {action.reason}" for action in actions]
    return actions[0]


def test_a_converged_host_has_nothing_to_do() -> None:
    case = Case()
    assert compare(case.wanted, case.observed) == []


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name.replace(" ", "-"))
def test_a_planted_change_gives_exactly_its_own_action(planted: Planted) -> None:
    case = Case()
    planted.change(case)
    action = one(case)
    assert (action.kind, action.subject) == (planted.kind, planted.subject)
    assert planted.words in action.reason
    assert action.restarts == planted.restarts
    assert action.expected
    assert action.observed


def test_two_planted_changes_give_two_actions() -> None:
    case = Case()
    edit_unit(case)
    add_drop_in(case)
    remove_credential(case)
    assert [(action.kind, action.subject) for action in compare(case.wanted, case.observed)] == [
        ("credential", KEYS),
        ("file", UNIT),
        ("service", "chat"),
    ]


def test_a_fresh_host_lists_everything_once_and_in_order() -> None:
    wanted = wanted_state()
    actions = compare(wanted, bare_observation(wanted))
    assert [action.kind for action in actions] == [
        "package",
        "package",
        "user",
        "user",
        "user",
        "directory",
        "directory",
        "release",
        "model",
        "credential",
        "file",
        "file",
        "file",
        "switch",
        "record",
    ]
    assert len({(action.kind, action.subject) for action in actions}) == len(actions)
    assert restarts(actions, wanted) == ["chat", "embed"]


def test_a_new_release_is_built_and_switched_to_and_only_the_switch_restarts() -> None:
    case = Case()
    case.want(release=replace(case.wanted.release, id="4df29be4f-newnewnewnew"))
    actions = compare(case.wanted, case.observed)
    assert [(action.kind, action.restarts) for action in actions] == [("release", ()), ("switch", BOTH)]


def test_services_that_swap_their_ports_are_no_strangers_to_each_other() -> None:
    case = Case()
    first, second = case.wanted.services
    case.want(services=(replace(first, port=8081), replace(second, port=8080)))
    assert "port" not in {action.kind for action in compare(case.wanted, case.observed)}


def test_the_json_form_of_the_wanted_state_compares_alike() -> None:
    case = Case()
    edit_unit(case)
    assert compare(case.wanted.to_json(), case.observed) == compare(case.wanted, case.observed)
    assert compare(Case().wanted.to_json(), Case().observed) == []


def test_an_argument_with_an_equals_sign_or_a_dash_is_told_apart() -> None:
    case = Case()
    case.process()["argv"] = [SERVER, "--model=x", "-ngl", "-1"]
    reason = one(case).reason
    assert "-ngl dropped" in reason
    assert "--ctx-size 4096 added" in reason


def test_the_release_is_what_was_built_not_what_its_name_says() -> None:
    case = Case()
    assert set(case.release()["files"]) > set(BUILT)
    case.release()["provenance"]["release"] = OLDER
    assert one(case).kind == "release"


def test_only_the_unit_is_blamed_for_a_changed_flag() -> None:
    case = Case()
    change_flag_in_spec(case)
    case.want(files=(replace(case.wanted.files[0], content="#!another probe\n"), *case.wanted.files[1:]))
    reasons = {action.subject: action.reason for action in compare(case.wanted, case.observed)}
    assert reasons == {
        PROBE: "the spec or llamarig itself changed its content",
        UNIT: "the spec changed: --ctx-size 4096 -> 8192",
    }


def test_a_file_that_no_record_knows_just_differs() -> None:
    case = Case()
    del case.observed["record"]["files"][PROBE]
    case.observed["files"][PROBE]["sha256"] = sha("other")
    assert one(case).reason == "differs from what the spec renders"
