"""How the controller reaches the host."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Iterator

from llamarig.spec.rules.base import Broken, View
from llamarig.spec.tree import Loc

_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_SYSTEM = frozenset(
    re.split(
        " ",
        "bin boot cdrom dev etc initrd lib lib32 lib64 libx32 lost+found proc run sbin snap sys sysroot tmp usr var",
    )
)
"""Top directories of the system itself; /srv, /mnt, /media, /opt and those that an administrator made are free."""
_OWN_MODELS = "/var/lib/llamarig/models"
"""The one place below /var."""
_OWN_ROOT = "/opt/llamarig"
_LONGEST_NAME = 253
"""Characters of a DNS name."""
_KEY_KINDS = {
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
}


def address(view: View) -> Iterator[Broken]:
    """An address is a DNS name or an IP address: nothing that ssh could take for an option."""
    connection = view.spec.connection
    at: Loc = ("connection",)
    if connection.address is not None and not _is_host(connection.address):
        yield Broken(
            (*at, "address"), f"`{connection.address}` is no host name or IP address", "for example atelier.lan"
        )
    if connection.type == "local":
        for key in ("address", "host_key", "identity_file"):
            if getattr(connection, key) is not None:
                name = key.replace("_", "-")
                yield Broken(
                    (*at, name), "the host is the controller itself", f"remove `{name}`", rests_on=((*at, "type"),)
                )


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        labels = text.removesuffix(".").split(".")
        return len(text) <= _LONGEST_NAME and all(_LABEL.fullmatch(label) for label in labels)
    return True


def host_key(view: View) -> Iterator[Broken]:
    """A host key is a whole public key."""
    key = view.spec.connection.host_key
    if key is None:
        return
    words = key.split()
    fix = "copy it from the host: cat /etc/ssh/ssh_host_ed25519_key.pub"
    at: Loc = ("connection", "host-key")
    if not words or words[0] not in _KEY_KINDS:
        yield Broken(at, "`host-key` does not begin with a kind of key", fix)
    elif len(words) == 1 or not _holds(words[0], words[1]):
        yield Broken(at, "`host-key` is cut off or damaged", fix)


def _holds(kind: str, text: str) -> bool:
    """Whether the encoded key names the kind that stands before it."""
    try:
        blob = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    length = int.from_bytes(blob[:4], "big")
    return blob[4 : 4 + length] == kind.encode() and len(blob) > 4 + length


def root(view: View) -> Iterator[Broken]:
    """llamarig changes the system, so it must be root in the end."""
    connection = view.spec.connection
    if connection.type == "ssh" and connection.user != "root" and not connection.become:
        yield Broken(
            ("connection", "user"),
            f"`{connection.user}` cannot change the system",
            "add `become: true` (sudo), or connect as root",
            rests_on=(("connection", "become"), ("connection", "type")),
        )
    if connection.become_password_file is not None and not connection.become:
        yield Broken(
            ("connection", "become-password-file"),
            "a sudo password without `become: true` is never used",
            "add `become: true`, or remove it",
            rests_on=(("connection", "become"),),
        )


def distribution(view: View) -> Iterator[Broken]:
    """Which systems are proven, which are only rendered."""
    system = view.spec.os
    known = {"debian": {"13": "proven", "12": "rendered"}, "ubuntu": {"24.04": "rendered"}}
    state = known[system.distribution].get(system.release)
    if state is None:
        releases = ", ".join(known[system.distribution])
        yield Broken(
            ("os", "release"),
            f"{system.distribution} {system.release} is not known to llamarig",
            f"known: {releases}",
            rests_on=(("os", "distribution"),),
        )
    elif state == "rendered":
        yield Broken(
            ("os", "release"),
            f"{system.distribution} {system.release} is planned and rendered, but proven on no machine yet",
            "expect rough edges, and run `apply --check` first",
            warning=True,
        )


def _below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _taken(place: str) -> str | None:
    """Why nothing of ours may be put there, or None."""
    parts = place.split("/")[1:]
    if _below(place, _OWN_MODELS) or parts[0] in ("home", "root"):
        return None
    if _below(place, "/var/lib/llamarig") or _below(place, _OWN_ROOT):
        return "llamarig keeps other things there"
    if parts[0] in _SYSTEM:
        return f"/{parts[0]} belongs to the system"
    if "lost+found" in parts:
        return "the file system keeps what it recovers there"
    if len(parts) == 1:
        return "that is a top directory, which others use too"
    return None


def places(view: View) -> Iterator[Broken]:
    """The models do not lie where the system or llamarig itself lives."""
    place = view.spec.models_dir
    why = _taken(place)
    if why is not None:
        yield Broken(
            ("models-dir",),
            f"models cannot lie in {place}: {why}",
            f"choose a directory of its own, for example /srv/models or {_OWN_MODELS}",
        )
    elif _below(place, "/home") or _below(place, "/root"):
        yield Broken(
            ("models-dir",),
            f"{place} is a home directory, which services cannot see",
            "choose a directory outside /home and /root, for example /srv/models",
        )


RULES = (address, host_key, root, distribution, places)
