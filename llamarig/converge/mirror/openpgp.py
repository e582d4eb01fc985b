"""Sign an index with a key that is made for it and kept nowhere (RFC 9580, version 4 packets, Ed25519).

Whoever reads the index gets the public key from the controller, in the host's own list of packages. The private half
is gone when this returns: nobody, not even who holds the mirror, can sign another index that such a host would take.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from llamarig.render.openpgp import armour_lines

_EDDSA, _SHA512, _VERSION = 22, 10, 4
_OID = bytes.fromhex("2b06010401da470f01")
"""Of Ed25519, as version 4 keys name the curve."""
_PUBLIC_KEY, _USER_ID, _SIGNATURE = 6, 13, 2
_CREATED, _KEY_FLAGS, _ISSUER, _ISSUER_FINGERPRINT, _PREFERRED_HASH = 2, 27, 16, 33, 21
_CERTIFIES_AND_SIGNS = b"\x03"
_POSITIVE, _TEXT = 0x13, 0x01
_Subpackets = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Signed:
    """A signed text, and the key that it was signed with."""

    text: str
    """In the clear-signed form, as apt reads InRelease."""
    key: tuple[str, ...]
    """The public key, armoured, in lines."""
    fingerprint: str


def sign(text: str, name: str, at: int) -> Signed:
    """Sign ``text`` at ``at`` (seconds since 1970) as ``name``."""
    private = Ed25519PrivateKey.generate()
    point = b"\x40" + private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    body = bytes([_VERSION]) + at.to_bytes(4, "big") + bytes([_EDDSA, len(_OID)]) + _OID + _integer(point)
    hashed_key = b"\x99" + len(body).to_bytes(2, "big") + body
    # The format's name for a key; what vouches for it is that the controller hands it out whole.
    fingerprint = hashlib.sha1(hashed_key, usedforsecurity=False).digest()
    user = name.encode()
    certified = hashed_key + b"\xb4" + len(user).to_bytes(4, "big") + user
    flags = [(_KEY_FLAGS, _CERTIFIES_AND_SIGNS), (_PREFERRED_HASH, bytes([_SHA512]))]
    own = _signature(private, fingerprint, certified, at, flags)
    packets = _packet(_PUBLIC_KEY, body) + _packet(_USER_ID, user) + _packet(_SIGNATURE, own)
    canonical = "\r\n".join(line.rstrip(" \t\r") for line in text.removesuffix("\n").split("\n")).encode()
    signature = _packet(_SIGNATURE, _signature(private, fingerprint, canonical, at))
    escaped = "\n".join(f"- {line}" if line.startswith("-") else line for line in text.removesuffix("\n").split("\n"))
    clear = ["-----BEGIN PGP SIGNED MESSAGE-----", "Hash: SHA512", "", escaped, *_armour(signature, "SIGNATURE"), ""]
    return Signed("\n".join(clear), tuple(_armour(packets, "PUBLIC KEY BLOCK")), fingerprint.hex().upper())


def _signature(
    private: Ed25519PrivateKey, fingerprint: bytes, data: bytes, at: int, extra: _Subpackets | None = None
) -> bytes:
    """The body of a signature packet over ``data``: of the key over itself with ``extra``, else of a text."""
    kind = _TEXT if extra is None else _POSITIVE
    hashed = [(_CREATED, at.to_bytes(4, "big")), (_ISSUER_FINGERPRINT, bytes([_VERSION]) + fingerprint), *(extra or [])]
    inside = b"".join(bytes([1 + len(value), tag]) + value for tag, value in hashed)
    head = bytes([_VERSION, kind, _EDDSA, _SHA512]) + len(inside).to_bytes(2, "big") + inside
    digest = hashlib.sha512(data + head + bytes([_VERSION, 0xFF]) + len(head).to_bytes(4, "big")).digest()
    signed = private.sign(digest)
    issuer = bytes([9, _ISSUER]) + fingerprint[-8:]
    half = len(signed) // 2
    return (
        head + len(issuer).to_bytes(2, "big") + issuer + digest[:2] + _integer(signed[:half]) + _integer(signed[half:])
    )


def _integer(data: bytes) -> bytes:
    """A multiprecision integer: its length in bits, then its bytes without leading zeros."""
    number = int.from_bytes(data, "big")
    return number.bit_length().to_bytes(2, "big") + number.to_bytes((number.bit_length() + 7) // 8, "big")


def _packet(tag: int, body: bytes) -> bytes:
    return bytes([0xC0 | tag, 0xFF]) + len(body).to_bytes(4, "big") + body


def _armour(data: bytes, kind: str) -> list[str]:
    return [f"-----BEGIN PGP {kind}-----", "", *armour_lines(data), f"-----END PGP {kind}-----"]
