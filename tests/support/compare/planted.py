"""Every planted change with the one action that it must give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llamarig.render.site import SOURCE
from tests.support.compare.cases import (
    KEYS,
    LINK,
    MODEL,
    OTHER_UNIT,
    PROBE,
    RELEASE,
    UNIT,
    Case,
    sha,
)
from tests.support.compare.changes import (
    OLDER,
    RECORD,
    UNFINISHED,
    add_drop_in,
    add_drop_in_of_a_package,
    add_key,
    add_library,
    change_client,
    change_flag_in_spec,
    crash,
    edit_record,
    edit_unit,
    edit_unit_and_restart,
    leave_mirror_list,
    leave_unit,
    leave_unknown_key_file,
    leave_unknown_unit,
    move_link,
    move_link_and_restart,
    preload_library,
    put,
    remove_credential,
    replace_binary,
    run_older_binary,
    run_other_arguments,
    run_other_library,
    share_port,
    stop,
    swap_model,
    take_port,
    touch_model,
)


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
LEFT = "left by an apply that did not end"
PLANTED = [
    Planted("unit of a killed apply", leave_unknown_unit, "file", "/etc/systemd/system/llama-old.service", LEFT),
    Planted("key file of a killed apply", leave_unknown_key_file, "file", "/etc/llamarig/keys/old.keys", LEFT),
    Planted("unknown key", add_key, "credential", KEYS, "holds 3 keys for 2 clients", ("chat",)),
    Planted("drop-in of a package", add_drop_in_of_a_package, "service", "chat", "no apply removes files", ("chat",)),
    Planted("foreign library", preload_library, "service", "chat", "/etc/ld.so.preload", ("chat",)),
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
    Planted(
        "apply interrupted", put("unfinished", value=UNFINISHED), "record", RECORD, "from ada@desk was interrupted"
    ),
    Planted("drop-in added", add_drop_in, "service", "chat", "override.conf is not ours; apply deletes it", ("chat",)),
    Planted(
        "unit of a removed service",
        leave_unit,
        "file",
        "/etc/systemd/system/llama-old.service",
        "is not wanted any more",
    ),
    Planted("list of a former mirror", leave_mirror_list, "file", SOURCE, "is not wanted any more"),
]
