"""Which machine code a CUDA library carries, read from its fat binaries; needs no toolkit.

The vendor does not document the container. What is read here was seen in what nvcc 13.0 makes for 75, 86, 89, 90a,
100f, 103a, 120, 120a, 120f and 121a: a container is 0xBA55ED50, version, size of its header, size of its content; an
entry in it has its kind (1 PTX, 2 machine code) at 0, the size of its header at 4, of its content at 8, the
architecture at 28 and flags at 40, of which 0x100000 stands for the suffix ``a`` and 0x200000 for ``f``.

Standard library only, used on the host. Sizes are bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

SECTION = ".nv_fatbin"
MAGIC = 0xBA55ED50
PTX, CODE = 1, 2
SPECIFIC, FAMILY = 0x100000, 0x200000
MAX_SECTIONS = 4096
MAX_IMAGES = 200_000
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQ12xI8xQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")


class NotElfError(Exception):
    """The file is no 64-bit ELF file, or its fat binaries do not make sense; the text says how."""


class Image(NamedTuple):
    """Machine code or PTX for one architecture, ``120a``."""

    architecture: str
    ptx: bool


def images(stream: BinaryIO) -> Iterator[Image]:
    """Every image of a library; one comes as often as there are translation units with it.

    Raises :class:`NotElfError`; reads headers only, however big the library is.
    """
    start, size = _section(stream)
    end, at, count = start + size, start, 0
    while at + _CONTAINER.size <= end:
        magic, _, header, content = _CONTAINER.unpack(_read(stream, at, _CONTAINER.size))
        if magic != MAGIC:
            # Containers are aligned to 8 bytes, and filled up with zeros.
            at += 8
            continue
        entry, after = at + header, at + header + content
        if header < _CONTAINER.size or after > end:
            raise NotElfError(f"a fat binary at {at:#x} claims {content} bytes beyond its section")
        while entry < after:
            kind, _, length, inner, architecture, flags = _ENTRY.unpack(_read(stream, entry, _ENTRY.size))
            count += 1
            if length < _ENTRY.size or entry + length + inner > after or count > MAX_IMAGES:
                raise NotElfError(f"an image at {entry:#x} claims {inner} bytes beyond its container")
            if kind in (PTX, CODE) and architecture:
                suffix = "a" if flags & SPECIFIC else "f" if flags & FAMILY else ""
                yield Image(f"{architecture}{suffix}", kind == PTX)
            entry += length + inner
        at = after + -after % 8


def _read(stream: BinaryIO, at: int, size: int) -> bytes:
    stream.seek(at)
    found = stream.read(size)
    if len(found) != size:
        raise NotElfError(f"the file ends at {at:#x}, where {size} bytes were to be read")
    return found


def _section(stream: BinaryIO) -> tuple[int, int]:
    """(offset, size) of the section with the fat binaries; (0, 0) when there is none."""
    head = _read(stream, 0, 64)
    if head[:5] != b"\x7fELF\x02":
        raise NotElfError("it is no 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", head, 40)
    entry_size, count, names_at = struct.unpack_from("<HHH", head, 58)
    if entry_size != _SECTION.size or not 0 < count <= MAX_SECTIONS or names_at >= count:
        raise NotElfError("its table of sections makes no sense")
    sections = [_SECTION.unpack(_read(stream, table + number * entry_size, entry_size)) for number in range(count)]
    names = sections[names_at]
    for section in sections:
        if section[0] < names[5] and _name(stream, names[4] + section[0]) == SECTION:
            return section[4], section[5]
    return 0, 0


def _name(stream: BinaryIO, at: int) -> str:
    stream.seek(at)
    return stream.read(64).split(b"\0", 1)[0].decode("ascii", "replace")


def wrong(found: set[Image], asked: set[str], cards: set[str]) -> list[str]:
    """What is not as asked: ``asked`` are architectures as CMake names them, ``cards`` those of the installed cards."""
    code = {image.architecture for image in found if not image.ptx}
    ptx = {image.architecture for image in found if image.ptx}
    wanted_code = {name.removesuffix("-real") for name in asked if not name.endswith("-virtual")}
    wanted_ptx = {name.removesuffix("-virtual") for name in asked if not name.endswith("-real")}
    problems = []
    for words, seen, wanted in (("machine code", code, wanted_code), ("PTX", ptx, wanted_ptx)):
        if missing := sorted(wanted - seen):
            problems.append(f"there is no {words} for {', '.join(missing)}")
        if surplus := sorted(seen - wanted):
            problems.append(f"there is {words} for {', '.join(surplus)}, which nobody asked for")
    problems += [
        f"no machine code runs on an installed card of {card}" for card in sorted(cards) if not runs_on(code, card)
    ]
    return problems


def runs_on(code: set[str], card: str) -> bool:
    """Whether some machine code runs on a card of the architecture ``120a`` (the card's own, with its letter or not).

    Plain code runs on the same major version from its minor version on; code with ``a`` on its very own architecture,
    with ``f`` on its family (source: the vendor's compiler documentation on architecture-specific features).
    """
    number = int(card.rstrip("af"))
    for each in code:
        own = int(each.rstrip("af"))
        same_major = own // 10 == number // 10
        if own == number or (same_major and own <= number and not each.endswith("a")):
            return True
    return False
