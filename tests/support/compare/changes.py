"""Changes that somebody or something makes to a converged host, or to its spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from llamarig.render.site import SOURCE
from tests.support.compare.cases import (
    BASE,
    KEYS,
    MODEL,
    UNIT,
    Case,
    sha,
)

RECORD = "/var/lib/llamarig/record.json"
UNFINISHED = {"release": "r", "run": "r7", "from": "ada@desk", "at": "2026-11-29T16:00:00Z"}
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


def preload_library(case: Case) -> None:
    case.process()["mapped"]["/usr/local/lib/evil.so"] = None


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


def leave_unknown_unit(case: Case) -> None:
    """Of an apply that was killed: no record knows it, the observer found it by its header."""
    leave_unit(case)
    del case.observed["record"]["files"]["/etc/systemd/system/llama-old.service"]
    case.observed["units"]["llama-old.service"] = {**case.unit(), "main-pid": 4711}
    place = next(iter(case.observed["ports"]))
    case.observed["ports"][place] = [{"pid": 4711, "command": "llama-server"}]


def leave_unknown_key_file(case: Case) -> None:
    entry = {"type": "file", "mode": "0600", "owner": "root", "group": "root"}
    case.observed["files"]["/etc/llamarig/keys/old.keys"] = entry


def add_key(case: Case) -> None:
    case.observed["credentials"][KEYS]["keys"] += 1


def add_drop_in_of_a_package(case: Case) -> None:
    case.unit()["drop-ins"] = ["/usr/local/lib/systemd/system/llama-chat.service.d/x.conf"]


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
    leave(case, "/etc/systemd/system/llama-old.service")


def leave_mirror_list(case: Case) -> None:
    leave(case, SOURCE)


def leave(case: Case, old: str) -> None:
    """A file that an earlier apply wrote, as its record says, and that nobody wants."""
    case.observed["record"]["files"][old] = {"sha256": sha("old"), "stat": [1, 2, 3, 4, 5]}
    case.observed["files"][old] = {
        "type": "file",
        "sha256": sha("old"),
        "mode": "0644",
        "owner": "root",
        "group": "root",
        "size": 3,
    }
