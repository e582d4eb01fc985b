"""Every way in which a file can lie ends in one clear error, in bounded time and memory."""

from __future__ import annotations

import io
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamarig.errors import RigError
from llamarig.gguf import Header, HeaderTruncatedError, read_header, read_shards
from llamarig.gguf.reader import KEPT_STRING, KEPT_TOTAL, MAX_ARRAY_STRINGS, MAX_KEYS, MAX_TENSORS
from tests.support import gguf_bytes as raw


def read(content: bytes) -> Header:
    return read_header(io.BytesIO(content))


def header_or_error(content: bytes) -> Header | RigError:
    """Anything but the two is a defect, and fails the test that asks."""
    try:
        return read(content)
    except RigError as error:
        return error


def spoiled(change: Callable[[raw.Composed], object]) -> bytes:
    composed = raw.small()
    change(composed)
    return composed.bytes()


def info(name: str | bytes, dims: tuple[int, ...], number: int = 0, offset: int = 0) -> bytes:
    return raw.text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, offset)


BAD: dict[str, tuple[Callable[[raw.Composed], object], str]] = {
    "bad magic": (lambda c: setattr(c, "magic", b"GGML"), "not a GGUF file"),
    "big-endian": (lambda c: setattr(c, "version", struct.pack(">I", 3)), "big-endian"),
    "version 1": (lambda c: setattr(c, "version", struct.pack("<I", 1)), "version 1 is not supported"),
    "version 0": (lambda c: setattr(c, "version", struct.pack("<I", 0)), "version 0 is not supported"),
    "version 4": (lambda c: setattr(c, "version", struct.pack("<I", 4)), "version 4 is not supported"),
    "huge tensor count": (lambda c: setattr(c, "raw_tensor_count", 2**63), "claims .* tensors"),
    "too many tensors": (lambda c: setattr(c, "raw_tensor_count", MAX_TENSORS + 1), "claims .* tensors"),
    "huge key count": (lambda c: setattr(c, "raw_pair_count", 2**64 - 1), "claims .* keys"),
    "too many keys": (lambda c: setattr(c, "raw_pair_count", MAX_KEYS + 1), "claims .* keys"),
    "duplicate key": (lambda c: c.add("llama.block_count", raw.U32, 2), "there twice"),
    "key without a name": (lambda c: c.add("", raw.U32, 2), "has no name"),
    "key not UTF-8": (lambda c: c.pairs.append(raw.pair(b"\xff\xfe", raw.U32, 1)), "not UTF-8"),
    "value not UTF-8": (
        lambda c: c.pairs.append(raw.text("k") + struct.pack("<I", 8) + raw.text(b"\xc3(")),
        "not UTF-8",
    ),
    "key too long": (lambda c: c.add("k" * 70_000, raw.U32, 1), "bytes long"),
    "unknown value type": (lambda c: c.pairs.append(raw.text("k") + struct.pack("<II", 13, 0)), "unknown type 13"),
    "unknown element type": (
        lambda c: c.pairs.append(raw.text("k") + struct.pack("<IIQ", 9, 99, 1)),
        "unknown type 99",
    ),
    "array of arrays": (lambda c: c.pairs.append(raw.text("k") + struct.pack("<IIQ", 9, 9, 1)), "unknown type 9"),
    "huge array": (lambda c: c.pairs.append(raw.text("k") + struct.pack("<IIQ", 9, 0, 2**63)), "claims .* elements"),
    "array beyond the file": (
        lambda c: c.pairs.append(raw.text("k") + struct.pack("<IIQ", 9, 0, 2**29)),
        "ends inside",
    ),
    "huge string": (lambda c: c.pairs.append(raw.text("k") + struct.pack("<IQ", 8, 2**63)), "ends inside"),
    "string in an array beyond the file": (
        lambda c: c.pairs.append(raw.text("k") + struct.pack("<IIQQ", 9, 8, 1, 2**64 - 1)),
        "ends inside",
    ),
    "too many strings": (
        lambda c: c.pairs.append(raw.text("k") + struct.pack("<IIQ", 9, 8, MAX_ARRAY_STRINGS + 1)),
        "strings",
    ),
    "alignment not a power of two": (lambda c: c.add("general.alignment", raw.U32, 48), "power of two"),
    "alignment 0": (lambda c: c.add("general.alignment", raw.U32, 0), "power of two"),
    "alignment of the wrong type": (lambda c: c.add("general.alignment", raw.STRING, "32"), "not a whole number"),
    "huge alignment": (lambda c: c.add("general.alignment", raw.U32, 1 << 31), "power of two"),
    "zero dimension": (lambda c: setattr(c, "raw_infos", info("a", (32, 0)) + info("b", (32,))), "dimension of 0"),
    "no dimensions": (lambda c: setattr(c, "raw_infos", info("a", ()) + info("b", (32,))), "0 dimensions"),
    "five dimensions": (lambda c: setattr(c, "raw_infos", info("a", (1,) * 5) + info("b", (32,))), "5 dimensions"),
    "a billion dimensions": (
        lambda c: setattr(c, "raw_infos", raw.text("a") + struct.pack("<I", 10**9) + bytes(200)),
        "dimensions",
    ),
    "overflow": (lambda c: setattr(c, "raw_infos", info("a", (2**40, 2**40)) + info("b", (32,))), "too big"),
    "overflow in one dimension": (lambda c: setattr(c, "raw_infos", info("a", (2**63,)) + info("b", (32,))), "too big"),
    "sum overflow": (
        lambda c: setattr(c, "raw_infos", info("a", (2**60,)) + info("b", (2**60,), 0, 2**62)),
        "too big",
    ),
    "removed tensor type": (lambda c: c.raw_type.update({"token_embd.weight": 4}), "unknown type 4"),
    "unknown tensor type": (lambda c: c.raw_type.update({"token_embd.weight": 4096}), "unknown type 4096"),
    "rows that blocks do not divide": (
        lambda c: setattr(c, "raw_infos", info("a", (33,), 8) + info("b", (32,))),
        "stores blocks of 32",
    ),
    "duplicate tensor": (lambda c: c.tensor("token_embd.weight", "F32", 4), "there twice"),
    "tensor name too long": (lambda c: c.tensor("t" * 64, "F32", 4), "bytes long"),
    "overlapping offsets": (lambda c: c.raw_offsets.update({"blk.0.attn_q.weight": 64}), "is its turn"),
    "unsorted offsets": (
        lambda c: c.raw_offsets.update({"token_embd.weight": 128, "blk.0.attn_q.weight": 0}),
        "is its turn",
    ),
    "gap between tensors": (lambda c: c.raw_offsets.update({"blk.0.attn_q.weight": 4096}), "is its turn"),
    "huge offset": (lambda c: c.raw_offsets.update({"blk.0.attn_q.weight": 2**64 - 32}), "is its turn"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_lie_is_told_apart(name: str) -> None:
    change, message = BAD[name]
    with pytest.raises(RigError, match=message) as caught:
        read(spoiled(change))
    assert caught.value.where
    assert caught.value.fix


def test_the_same_file_unspoiled_is_fine() -> None:
    assert read(spoiled(lambda _: None)).architecture == "llama"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html><html><head><title>Sign in</title>", "web page"),
        (b"\n  <html lang=en>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS pointer"),
        (b"", "not a GGUF file"),
        (b"GG", "not a GGUF file"),
    ],
)
def test_what_is_often_saved_as_gguf(content: bytes, message: str) -> None:
    with pytest.raises(RigError, match=message):
        read(content)


def test_a_file_cut_anywhere_in_its_header_is_truncated() -> None:
    content = raw.small().header()
    for length in range(4, len(content) - 32):
        with pytest.raises(HeaderTruncatedError):
            read(content[:length])


def test_a_file_that_shrinks_while_it_is_read_is_truncated() -> None:
    content = raw.small().bytes()
    with pytest.raises(HeaderTruncatedError):
        read_header(io.BytesIO(content[:100]), file_size=1 << 40)


def test_a_file_that_grew_is_refused_where_its_size_counts(tmp_path: Path) -> None:
    path = tmp_path / "grown.gguf"
    path.write_bytes(raw.small().bytes() + bytes(4096))
    with pytest.raises(RigError, match="longer than its header says"):
        read_shards(path)


def test_memory_and_time_stay_bounded_whatever_a_file_claims() -> None:
    """Keys and strings as many and as long as the limits allow; what is kept stays below its budget."""
    composed = raw.Composed()
    for number in range(60):
        composed.add(f"k{number}", raw.STRING, "x" * (KEPT_STRING - 1))
    composed.add("too-long", raw.STRING, "x" * (KEPT_STRING + 1))
    content = composed.bytes()
    tracemalloc.start()
    started = time.monotonic()
    header = read(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.monotonic() - started < 5
    assert peak < KEPT_TOTAL + (8 << 20)
    kept = [value for value in header.metadata.values() if isinstance(value, str)]
    assert sum(len(value) for value in kept) <= KEPT_TOTAL


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_flipped_bytes_end_in_a_header_or_in_one_error(data: st.DataObject) -> None:
    content = bytearray(raw.small().bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    outcome = header_or_error(bytes(content))
    assert outcome.what if isinstance(outcome, RigError) else outcome.data_size >= 0


@settings(max_examples=150, deadline=None)
@given(tail=st.binary(max_size=400))
def test_arbitrary_bytes_after_the_magic_end_in_a_header_or_in_one_error(tail: bytes) -> None:
    outcome = header_or_error(b"GGUF\x03\x00\x00\x00" + tail)
    assert outcome.where if isinstance(outcome, RigError) else isinstance(outcome, Header)
