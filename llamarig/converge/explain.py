"""Failures of Ansible, ssh, apt and systemd as errors that say what to do; their own words come first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
_PREFIX = re.compile(
    r"(?:Task failed: )?(?:Data could not be sent to remote host \"[^\"]*\"\. "
    r"Make sure this host can be reached over ssh: |Failed to connect to the host via ssh: )"
)
"""What Ansible says before ssh's own words."""
_FIX = re.compile(r"(?:\A|\n)[ \t]*fix: ")
_AGAIN = "mend what is said above, then run the same command again; what was finished is not done again"
_TOLD = {"fail", "rig_decide"}
"""Actions that say in their first line what is wrong, whatever their task is called."""


def printable(text: str, limit: int = _LIMIT) -> str:
    """Text from a host without what could steer a terminal, cut to its last ``limit`` characters."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))[-limit:].strip()


def _words(result: Mapping[str, Any]) -> str:
    """The tool's own words: the message, and its output where the message does not hold it already. A loop speaks by
    its failed items; its own message tells only that there are some."""
    items = result.get("items")
    named = [each for each in items if isinstance(each, Mapping)] if isinstance(items, list) else []
    if named:
        return "\n".join(printable(f"{each.get('item') or 'an item'}: {_words(each)}") for each in named)
    said: list[str] = []
    for key in ("msg", "stderr", "module_stderr", "stdout", "module_stdout"):
        text = printable(str(result.get(key) or "")).removeprefix("Task failed: ")
        text = _PREFIX.sub("", text)
        if text and not any(text in other for other in said):
            said.append(text)
    return "\n".join(line for line in "\n".join(said).splitlines() if not _NOISE.search(line))


def explain_all(host: str, events: Sequence[Mapping[str, Any]]) -> RigError:
    """The error of a host with all its failed results, oldest first.

    A play that goes back ends in a failure that tells the whole story. Without one the first failure is the cause;
    what failed after the cause, while going back or releasing the lock, is told behind it.
    """
    told = [at for at, event in enumerate(events) if event.get("action") == "fail"]
    at = told[-1] if told else 0
    error = explain(host, events[at])
    later = [explain(host, event) for event in events[at + 1 :]]
    if not later:
        return error
    words = [f"after that {each.what}" + (f": {each.why}" if each.why else "") for each in later]
    return replace(error, why="\n".join(filter(None, [error.why, *words])))


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
        fix = "see whether `ssh` with the same user, address and port gets there, then run the same command again"
        return RigError("the host cannot be reached", host, words, fix, ExitCode.HOST_FAILED)
    words, fix = _split(words)
    if event.get("action") in _TOLD and words:
        # A play that fails on purpose has said it all: a headline and what is behind it.
        headline, _, rest = words.partition("\n")
        why = "\n".join(line.removeprefix("  why: ") for line in rest.strip("\n").splitlines())
        return RigError(headline.removeprefix(f"{host}: "), host, why, fix, ExitCode.HOST_FAILED)
    task = printable(str(event.get("task", "")))
    return RigError(f"failed at: {task}", host, words, fix, ExitCode.HOST_FAILED)


def _split(words: str) -> tuple[str, str]:
    """The words, and what follows their last ``fix:``; general advice where they have none."""
    marks = list(_FIX.finditer(words))
    if not marks:
        return words, _AGAIN
    return words[: marks[-1].start()].rstrip(), " ".join(words[marks[-1].end() :].split())
