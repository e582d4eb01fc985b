"""An OpenPGP public key as a repository's signer: its full fingerprint, and its armoured form (RFC 4880, RFC 9580)."""

from __future__ import annotations

import base64
import binascii
import hashlib

_BEGIN, _END = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
_PUBLIC_KEY = 6
"""Packet tag of a primary public key."""
_COLUMNS = 64
_OLD_LENGTHS = (1, 2, 4)
_ONE_OCTET, _TWO_OCTETS, _FIVE_OCTETS = 192, 224, 255


class KeyFormatError(ValueError):
    """The file holds no public key that can be read."""


def binary(data: bytes) -> bytes:
    """The key's packets, whether it came armoured or not."""
    text = data.decode("ascii", "ignore")
    if _BEGIN not in text:
        return data
    inside = text.partition(_BEGIN)[2].partition(_END)[0]
    lines = [line.strip() for line in inside.splitlines()]
    body = lines[lines.index("", 1) + 1 :] if "" in lines[1:] else lines[1:]
    coded = "".join(line for line in body if line and not line.startswith("="))
    try:
        return base64.b64decode(coded, validate=True)
    except binascii.Error as error:
        raise KeyFormatError(f"its armour cannot be decoded: {error}") from error


def fingerprints(data: bytes) -> tuple[str, ...]:
    """The fingerprint of each primary key in a file, 40 or 64 upper-case hexadecimal digits.

    Raises :class:`KeyFormatError` when it holds none.
    """
    found = tuple(_fingerprint(body) for tag, body in _packets(binary(data)) if tag == _PUBLIC_KEY)
    if not found:
        raise KeyFormatError("it holds no public key")
    return found


def armoured(data: bytes) -> tuple[str, ...]:
    """The lines of the key's armoured form, without comments or headers of the file it came from."""
    packets = binary(data)
    return (_BEGIN, "", *armour_lines(packets), _END)


def armour_lines(packets: bytes) -> tuple[str, ...]:
    """Packets in lines of Base64, and their checksum."""
    coded = base64.b64encode(packets).decode()
    lines = [coded[at : at + _COLUMNS] for at in range(0, len(coded), _COLUMNS)]
    return (*lines, "=" + base64.b64encode(_crc24(packets).to_bytes(3, "big")).decode())


def _crc24(data: bytes) -> int:
    """The checksum of an armour (RFC 4880, 6.1): newer readers do without it, GnuPG 2.2 of Debian 12 does not."""
    crc = 0xB704CE
    for octet in data:
        crc ^= octet << 16
        for _ in range(8):
            crc = (crc << 1) ^ (0x1864CFB if crc & 0x800000 else 0)
    return crc & 0xFFFFFF


def _fingerprint(body: bytes) -> str:
    """RFC 9580, 5.5.4: version 4 with SHA-1 over the packet, version 6 with SHA-256."""
    version = body[0] if body else 0
    if version == 4:  # noqa: PLR2004 - the version's own number
        head = b"\x99" + len(body).to_bytes(2, "big")
        # The format's name for a key, not a signature: what it is compared with is pinned whole.
        return hashlib.sha1(head + body, usedforsecurity=False).hexdigest().upper()
    if version == 6:  # noqa: PLR2004 - the version's own number
        return hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    raise KeyFormatError(f"its key is of version {version}")


def _packets(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at < len(data):
        head = data[at]
        if not head & 0x80:
            raise KeyFormatError("it is no OpenPGP file")
        at += 1
        if head & 0x40:
            tag = head & 0x3F
            length, at = _new_length(data, at)
        else:
            tag, kind = (head >> 2) & 0x0F, head & 3
            if kind == len(_OLD_LENGTHS):
                raise KeyFormatError("a packet has no length")
            octets = _OLD_LENGTHS[kind]
            length, at = int.from_bytes(data[at : at + octets], "big"), at + octets
        body = data[at : at + length]
        if len(body) != length:
            raise KeyFormatError("it ends in the middle of a packet")
        found.append((tag, body))
        at += length
    return found


def _new_length(data: bytes, at: int) -> tuple[int, int]:
    first = data[at] if at < len(data) else 0
    if first < _ONE_OCTET:
        return first, at + 1
    if first < _TWO_OCTETS:
        second = data[at + 1] if at + 1 < len(data) else 0
        return ((first - _ONE_OCTET) << 8) + second + _ONE_OCTET, at + 2
    if first == _FIVE_OCTETS:
        return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5
    raise KeyFormatError("a packet comes in parts")
