"""Failures of Ansible, ssh, apt and systemd as errors that say what to do; their own words come first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llamarig.errors import ExitCode, RigError

_CAUSES: tuple[tuple[str, str, str], ...] = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key for .* has changed",
        "the host shows another host key than the pinned one",
        "find out why before anything else: a reinstalled host has a new key, an intercepted connection too. Compare "
        "with /etc/ssh/ssh_host_ed25519_key.pub on the host's own console, then change connection.host-key (or your "
        "known_hosts)",
    ),
    (
        r"Host key verification failed|host key is known for",
        "the host's key is not known, and it is never accepted silently",
        "read /etc/ssh/ssh_host_ed25519_key.pub on the host's own console (or fetch it with `ssh-keyscan -t ed25519 "
        "ADDRESS` and compare its fingerprint with the console's), and write it as connection.host-key into the spec",
    ),
    (
        r"Permission denied \(|Too many authentication failures",
        "the host refused the login",
        "give connection.user and connection.identity-file of a key in that user's authorized_keys, or load the key "
        "into your ssh agent",
    ),
    (
        r"Could not resolve hostname|Name or service not known",
        "the host's name has no address",
        "give connection.address",
    ),
    (
        r"Connection refused|Connection timed out|No route to host|timed out during banner|Operation timed out",
        "the host cannot be reached",
        "is it on, does sshd run there, are connection.address and connection.port right?",
    ),
    (
        r"Missing sudo password|a password is required|Incorrect sudo password|incorrect password attempt",
        "sudo wants a password",
        "name a file with it in connection.become-password-file, or run with --ask-become-pass",
    ),
    (r"is not in the sudoers file|may not run sudo", "the user may not use sudo", "add it to the host's sudoers"),
    (
        r"python3: (command )?not found|python3: No such file|interpreter .*python3.* was not found",
        "the host has no Python",
        "install python3 on the host",
    ),
)
_LOCKED = re.compile(r"another apply (?:holds|took over) this host's lock")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NOISE = re.compile(
    r"^@+$|^@ .* @$|^Add correct host key in |^Offending .* key in |^\s+remove with:|^\s+ssh-keygen -f "
)
"""Lines of ssh that are decoration, or advice about a file of ours that is gone by then."""
_LIMIT = 6000


def printable(text: str) -> str:
    """Text from a host without what could steer a terminal, cut to its last 6,000 characters."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))[-_LIMIT:].strip()


def _words(result: Mapping[str, Any]) -> str:
    """The tool's own words: the message, and its output where the message does not hold it already."""
    said: list[str] = []
    for key in ("msg", "stderr", "module_stderr", "stdout", "module_stdout"):
        text = printable(str(result.get(key) or "")).removeprefix("Task failed: ")
        if text and not any(text in other for other in said):
            said.append(text)
    return "\n".join(line for line in "\n".join(said).splitlines() if not _NOISE.search(line))


def explain(host: str, event: Mapping[str, Any]) -> RigError:
    """The error of a failed or unreachable result, as the callback sent it."""
    result = event.get("result")
    words = _words(result) if isinstance(result, dict) else ""
    for pattern, what, fix in _CAUSES:
        if re.search(pattern, words, re.IGNORECASE):
            return RigError(what=what, where=host, why=words, fix=fix, code=ExitCode.HOST_FAILED)
    if _LOCKED.search(words):
        fix = "wait until it is done; if that process is gone for good, give --break-lock"
        return RigError(what=words, where=host, fix=fix, code=ExitCode.HOST_FAILED)
    if event.get("status") == "unreachable":
        return RigError(what="the host cannot be reached", where=host, why=words, code=ExitCode.HOST_FAILED)
    if event.get("action") == "fail":
        # A play that fails on purpose has said it all: a headline and what is behind it.
        headline, _, rest = words.partition("\n")
        return RigError(what=headline, where=host, why=rest.strip(), code=ExitCode.HOST_FAILED)
    task = printable(str(event.get("task", "")))
    return RigError(what=f"failed at: {task}", where=host, why=words, code=ExitCode.HOST_FAILED)
