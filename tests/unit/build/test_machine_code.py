"""The machine code that a library carries: composed fat binaries, and what nvcc here really makes of a kernel."""

from __future__ import annotations

import contextlib
import io
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.observe.load import module, part

PTX, CODE = 1, 2
FLAGS = {"": 0x1000011, "a": 0x1100011, "f": 0x1200011}


@pytest.fixture(scope="module")
def fatbin() -> Any:
    module("rig_images")
    return part("rig_fatbin")


def image(kind: int, architecture: str, content: bytes = b"x" * 40) -> bytes:
    """An entry with the header that nvcc 13.0 writes."""
    number, suffix = int(architecture.rstrip("af")), architecture.lstrip("0123456789")
    head = struct.pack("<HHIQIIHHIIIQ", kind, 0x101, 64, len(content), 0, 0, 8, 1, number, 0, 0, FLAGS[suffix])
    return head.ljust(64, b"\0") + content


def container(*entries: bytes) -> bytes:
    content = b"".join(entries)
    made = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content
    return made + bytes(-len(made) % 8)


def elf(section: bytes, name: bytes = b".nv_fatbin") -> bytes:
    """A 64-bit ELF file with one named section."""
    names = b"\0" + name + b"\0.shstrtab\0"
    at = 64
    table = at + len(section) + len(names)
    head = (
        b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)
    )
    rows = [
        struct.pack("<IIQQQQIIQQ", *[0] * 10),
        struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, at, len(section), 0, 0, 8, 0),
        struct.pack("<IIQQQQIIQQ", 2 + len(name), 3, 0, 0, at + len(section), len(names), 0, 0, 1, 0),
    ]
    return head + section + names + b"".join(rows)


def seen(fatbin: Any, data: bytes) -> set[Any]:
    return set(fatbin.images(io.BytesIO(data)))


def test_every_image_of_every_container_is_seen(fatbin: Any) -> None:
    section = (
        container(image(CODE, "120a"), image(CODE, "89")) + bytes(16) + container(image(PTX, "89"), image(CODE, "90f"))
    )
    assert seen(fatbin, elf(section)) == {("120a", False), ("89", False), ("89", True), ("90f", False)}


def test_a_library_without_fat_binaries_has_none(fatbin: Any) -> None:
    assert seen(fatbin, elf(b"data", b".rodata...")) == set()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"MZ" + bytes(100), "no 64-bit ELF"),
        (b"\x7fELF\x01" + bytes(100), "no 64-bit ELF"),
        (b"\x7fELF", "ends at"),
        (elf(b"")[:70], "ends at"),
        (elf(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 40)), "beyond its section"),
        (elf(struct.pack("<IHHQ", 0xBA55ED50, 1, 0, 0)), "beyond its section"),
        (elf(container(image(CODE, "89")[:8] + struct.pack("<Q", 1 << 40) + bytes(64))), "beyond its container"),
    ],
)
def test_what_makes_no_sense_is_refused(fatbin: Any, data: bytes, why: str) -> None:
    with pytest.raises(fatbin.NotElfError, match=why):
        seen(fatbin, data)


@given(data=st.binary(max_size=400), cut=st.integers(0, 600))
def test_hostile_bytes_end_in_an_answer_or_a_refusal(data: bytes, cut: int) -> None:
    module("rig_images")
    fatbin = part("rig_fatbin")
    for made in (data, elf(data)[:cut], elf(container(data))):
        found: Any = set()
        with contextlib.suppress(fatbin.NotElfError):
            found = seen(fatbin, made)
        assert isinstance(found, set)


@pytest.mark.parametrize(
    ("code", "asked", "cards", "problems"),
    [
        ({"120a", "89"}, {"120a-real", "89-real"}, {"120a", "89"}, []),
        ({"89"}, {"120a-real", "89-real"}, {"89"}, ["no machine code for 120a"]),
        ({"120a", "89", "86"}, {"120a-real", "89-real"}, set(), ["code for 86, which nobody asked for"]),
        ({"121a", "89"}, {"121a-real", "89-real"}, {"120a"}, ["no machine code runs on an installed card of 120a"]),
        ({"86"}, {"86-real"}, {"89"}, []),
        ({"89"}, {"89-real"}, {"86"}, ["installed card of 86"]),
        ({"120f"}, {"120f-real"}, {"121a"}, []),
    ],
)
def test_exactly_what_was_asked_and_every_card(
    fatbin: Any, code: set[str], asked: set[str], cards: set[str], problems: list[str]
) -> None:
    found = fatbin.wrong({fatbin.Image(each, False) for each in code}, asked, cards)
    assert len(found) == len(problems)
    for each, words in zip(found, problems, strict=True):
        assert words in each


def test_ptx_that_nobody_asked_for_is_told(fatbin: Any) -> None:
    found = {fatbin.Image("89", False), fatbin.Image("89", True)}
    assert fatbin.wrong(found, {"89-real"}, set()) == ["there is PTX for 89, which nobody asked for"]
    assert fatbin.wrong(found, {"89"}, set()) == []


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no CUDA compiler on this machine; the cuda tier brings one")
def test_what_a_real_compiler_makes_is_read(fatbin: Any, tmp_path: Path) -> None:
    source, library = tmp_path / "k.cu", tmp_path / "k.so"
    source.write_text("__global__ void k(float *x) { x[threadIdx.x] *= 2; }\nvoid run(float *x) { k<<<1, 32>>>(x); }\n")
    targets = [f"-gencode=arch=compute_{each},code=sm_{each}" for each in ("120a", "89")]
    command = ["nvcc", *targets, "-Xcompiler", "-fPIC", "-shared", "-o", str(library), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    assert seen(fatbin, library.read_bytes()) == {("120a", False), ("89", False)}
