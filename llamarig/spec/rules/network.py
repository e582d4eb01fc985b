"""Where a server listens: legal addresses, no two on one port, nothing open by accident."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterator
from urllib.parse import urlsplit

from llamarig.spec.rules.base import Broken, View
from llamarig.spec.service import Listen
from llamarig.spec.tree import Loc

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_FIRST_PORT = 1024
_SOCKET_BYTES = 107
"""sun_path holds 108 bytes, the last of which is NUL."""
_SOCKET = ".sock"


def is_socket(address: str) -> bool:
    """Whether the engine takes an address for a unix socket: it goes by this suffix."""
    return address.endswith(_SOCKET)


def parse(address: str) -> Address | None:
    """The IP address, or None."""
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None


def is_local(address: str) -> bool:
    """Whether only this machine can reach it."""
    found = parse(address)
    return is_socket(address) or (found is not None and found.is_loopback)


def _is_legal(address: str) -> bool:
    """Whether a server can listen there; of what is not, nothing else is said."""
    found = parse(address)
    scoped = isinstance(found, ipaddress.IPv6Address) and found.scope_id is not None
    return is_socket(address) or (found is not None and not found.is_multicast and not scoped)


def addresses(view: View) -> Iterator[Broken]:
    """An address is an IP address or a socket's path; a port goes with the former only."""
    for name, service in view.spec.services.items():
        listen = service.listen
        at: Loc = ("services", name, "listen")
        if is_socket(listen.address):
            yield from _socket(listen, at)
            continue
        if not _is_legal(listen.address):
            fix = "write 127.0.0.1" if listen.address == "localhost" else "for example 127.0.0.1, ::1 or 0.0.0.0"
            yield Broken(
                (*at, "address"), f"`{listen.address}` is no IP address of a host and no path ending in .sock", fix
            )
        if listen.port == 0:
            yield Broken((*at, "port"), "`listen.port` is missing", "add `port: 8080`", rests_on=((*at, "address"),))
        elif listen.port < _FIRST_PORT:
            yield Broken(
                (*at, "port"),
                f"port {listen.port} is below {_FIRST_PORT}: the unit has no right to open it",
                "choose a port from 1024 on; put a reverse proxy in front for 443",
            )


def _socket(listen: Listen, at: Loc) -> Iterator[Broken]:
    directory, _, file = listen.address.rpartition("/")
    own = f"/run/llama-{at[1]}"
    # The unit makes that directory; in any other the server would write beside a service of the system.
    if directory != own or file == _SOCKET:
        yield Broken(
            (*at, "address"),
            f"the socket `{listen.address}` must lie in the service's own directory below /run",
            f"write {own}/server.sock",
        )
    if len(listen.address.encode()) > _SOCKET_BYTES:
        yield Broken((*at, "address"), f"a socket's path has at most {_SOCKET_BYTES} bytes", "shorten it")
    if listen.port != 0:
        yield Broken((*at, "port"), "a unix socket has no port", "remove `port`", rests_on=((*at, "address"),))
    if listen.tls is not None:
        yield Broken((*at, "tls"), "a unix socket needs no TLS", "remove `tls`", rests_on=((*at, "address"),))


def collisions(view: View) -> Iterator[Broken]:
    """No two services of a host listen in the same place."""
    for (one, first), (two, second) in itertools.combinations(view.spec.services.items(), 2):
        if not _overlap(first.listen, second.listen):
            continue
        place = first.listen.address if is_socket(first.listen.address) else f"port {first.listen.port}"
        loc: Loc = ("services", two, "listen")
        other: Loc = ("services", one, "listen")
        key = "address" if is_socket(first.listen.address) else "port"
        yield Broken(
            (*loc, key),
            f"the services `{one}` and `{two}` both listen on {place}",
            "give each its own",
            rests_on=((*loc, "address"), (*other, "address"), (*other, "port")),
        )


def _overlap(first: Listen, second: Listen) -> bool:
    if is_socket(first.address) or is_socket(second.address):
        return first.address == second.address
    if first.port != second.port or first.port == 0:
        return False
    one, two = parse(first.address), parse(second.address)
    if one is None or two is None or one == two:
        return first.address == second.address or one == two
    # `::` takes IPv4 as well, and 0.0.0.0 every IPv4 address.
    wide = [found for found in (one, two) if found.is_unspecified]
    return any(isinstance(found, ipaddress.IPv6Address) for found in wide) or (
        bool(wide) and one.version == two.version
    )


def keys(view: View) -> Iterator[Broken]:
    """Keys everywhere; none only on loopback or a socket, and asked for."""
    for name, service in view.spec.services.items():
        listen = service.listen
        at: Loc = ("services", name, "listen")
        given = listen.keys.model_fields_set
        if listen.keyless is not None:
            yield from _keyless(listen, at)
        elif not listen.keys.clients and listen.keys.file is None:
            yield Broken(
                (*at, "keys", "clients"),
                "no client and no key file: with an empty key file the engine serves everybody",
                "name a client, or say `keyless: {reason: …}` on loopback",
            )
        if listen.keys.file is not None and "clients" in given:
            yield Broken(
                (*at, "keys"), "keys come from `file` or are generated for `clients`, not both", "remove one of the two"
            )
        twice = {client for client in listen.keys.clients if listen.keys.clients.count(client) > 1}
        for client in sorted(twice):
            yield Broken((*at, "keys", "clients"), f"the client `{client}` is named twice", "name each client once")


def _keyless(listen: Listen, at: Loc) -> Iterator[Broken]:
    if not is_local(listen.address) and _is_legal(listen.address):
        yield Broken(
            (*at, "keyless"),
            f"a server on {listen.address} without keys serves everybody who reaches it",
            "remove `keyless`, or listen on 127.0.0.1 or a socket",
            rests_on=((*at, "address"),),
        )
    if "keys" in listen.model_fields_set:
        yield Broken((*at, "keyless"), "both `keys` and `keyless` are given", "keep one of them")
    if "*" in listen.cors_origins:
        yield Broken(
            (*at, "cors-origins"),
            "without keys, `*` lets any web page in a browser on this machine use the model",
            "name the origins, for example http://127.0.0.1:3000",
            rests_on=((*at, "keyless"),),
        )


def transport(view: View) -> Iterator[Broken]:
    """Beyond loopback, keys and text travel encrypted, or the user says that plain text is right."""
    for name, service in view.spec.services.items():
        listen = service.listen
        at: Loc = ("services", name, "listen")
        if listen.tls is not None and listen.plaintext is not None:
            yield Broken((*at, "plaintext"), "with `tls` nothing is sent in plain text", "remove `plaintext`")
        outside = _is_legal(listen.address) and not is_local(listen.address)
        if outside and listen.tls is None and listen.plaintext is None:
            yield Broken(
                (*at, "address"),
                f"{listen.address} is reachable from other machines, and keys would travel in plain text",
                "add `tls: {certificate: …, key: …}`, or `plaintext: accepted` where the network is trusted",
                rests_on=((*at, "tls"), (*at, "plaintext")),
            )
        if listen.tls is not None and not view.spec.engine.build.openssl:
            yield Broken(
                (*at, "tls"),
                "TLS needs an engine that is linked against OpenSSL",
                "remove `openssl: false` under engine.build",
                rests_on=(("engine", "build", "openssl"),),
            )


def who_may_connect(view: View) -> Iterator[Broken]:
    """Networks are CIDR, origins are origins."""
    for name, service in view.spec.services.items():
        listen = service.listen
        at: Loc = ("services", name, "listen")
        for index, network in enumerate(listen.allow):
            try:
                ipaddress.ip_network(network)
            except ValueError:
                yield Broken((*at, "allow", index), f"`{network}` is no network", "for example 192.168.1.0/24")
        if listen.allow and is_local(listen.address):
            yield Broken(
                (*at, "allow"),
                f"`allow` says nothing: only this machine reaches {listen.address}",
                "remove it, or listen on another address",
                rests_on=((*at, "address"),),
                warning=True,
            )
        for index, origin in enumerate(listen.cors_origins):
            if origin != "*" and not _is_origin(origin):
                yield Broken(
                    (*at, "cors-origins", index), f"`{origin}` is no web origin", "for example https://chat.example.org"
                )


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    plain = f"{parts.scheme}://{parts.netloc}" == text and not set("*,@ ") & set(text) and text.isprintable()
    return plain and parts.scheme in ("http", "https") and bool(host) and (port is None or port > 0)


RULES = (addresses, collisions, keys, transport, who_may_connect)
