"""Do a piece of work as another user, in a child process that cannot come back."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Callable
from typing import Any


class ChildFailedError(Exception):
    """The work ended with an error; the text is the child's."""


def as_user(name: str, work: Callable[[], Any]) -> Any:
    """Run ``work`` as user ``name`` (with no further groups and umask 022) and return its JSON-able result.

    Raises :class:`ChildFailedError` with the child's words, :class:`KeyError` for an unknown user.
    """
    account = pwd.getpwnam(name)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _child(account, work, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    outcome = json.loads(text) if text else {"error": "the worker process was killed"}
    if "error" in outcome:
        raise ChildFailedError(outcome["error"])
    return outcome["result"]


def _child(account: pwd.struct_passwd, work: Callable[[], Any], write_end: int) -> None:
    try:
        if os.geteuid() != account.pw_uid:
            os.setgroups([])
            os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
            os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
        os.umask(0o022)
        outcome = {"result": work()}
    except BaseException as error:  # whatever it was, the parent has to hear it
        outcome = {"error": str(error) or type(error).__name__}
    with os.fdopen(write_end, "wb") as answer:
        answer.write(json.dumps(outcome).encode())
    os._exit(0)
