"""The reader against files composed byte by byte and written by the gguf package."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from llamarig.errors import RigError
from llamarig.gguf import HeaderTruncatedError, Omitted, read_header, read_shards
from llamarig.gguf.reader import KEPT_ELEMENTS
from llamarig.gguf.tensor_types import TENSOR_TYPES
from tests.support import gguf_bytes as raw
from tests.support.tiny_models import write_llama, write_qwen35


def test_keys_and_tensors_of_a_small_file() -> None:
    header = read_header(io.BytesIO(raw.small().bytes()))
    assert header.architecture == "llama"
    assert header.integer(".block_count") == 1
    assert header.metadata["tokenizer.ggml.tokens"] == Omitted("string", 4)
    assert header.metadata["tokenizer.ggml.token_type"] == (1, 1, 1, 1)
    assert header.metadata["tokenizer.ggml.scores"] == Omitted("f32", 2000)
    assert header.vocabulary == 4
    assert [(t.name, t.type, t.dims, t.offset, t.size) for t in header.tensors] == [
        ("token_embd.weight", "F32", (8, 4), 0, 128),
        ("blk.0.attn_q.weight", "Q8_0", (32, 3), 128, 102),
    ]


def test_completeness_is_a_matter_of_the_last_byte() -> None:
    content = raw.small().bytes()
    header = read_header(io.BytesIO(content))
    assert header.minimum_size == len(content)
    assert header.is_whole(len(content))
    assert not header.is_whole(len(content) - 1)
    header.require_size(len(content))
    header.require_size(len(content) + 31)
    with pytest.raises(RigError, match="not whole"):
        header.require_size(len(content) - 1)
    with pytest.raises(RigError, match="longer than its header says"):
        header.require_size(len(content) + 32)


def test_the_header_of_a_download_in_progress_can_be_read() -> None:
    content = raw.small().bytes()
    header = read_header(io.BytesIO(content[:-200]), file_size=len(content))
    assert header.is_whole(len(content))
    with pytest.raises(HeaderTruncatedError):
        read_header(io.BytesIO(content[:60]), file_size=len(content))


def test_a_stream_that_cannot_seek_is_read_through() -> None:
    class Pipe(io.BytesIO):
        def seek(self, *_: int) -> int:
            raise io.UnsupportedOperation("seek")

    content = raw.small().bytes()
    assert read_header(Pipe(content), file_size=len(content)).vocabulary == 4


def test_every_scalar_type_arrives_as_it_was_written() -> None:
    composed = raw.Composed()
    values = {
        raw.U8: 255, raw.I8: -128, raw.U16: 65535, raw.I16: -32768, raw.U32: 2**32 - 1, raw.I32: -(2**31),
        raw.F32: 0.5, raw.BOOL: True, raw.STRING: "Käse ∎", raw.U64: 2**64 - 1, raw.I64: -(2**63), raw.F64: 1e300,
    }  # fmt: skip
    for kind, value in values.items():
        composed.add(f"k{kind}", kind, value)
    metadata = read_header(io.BytesIO(composed.bytes())).metadata
    assert metadata == {f"k{kind}": value for kind, value in values.items()}


@pytest.mark.parametrize(("count", "kept"), [(KEPT_ELEMENTS, True), (KEPT_ELEMENTS + 1, False)])
def test_number_arrays_are_kept_up_to_a_length(count: int, kept: bool) -> None:
    composed = raw.Composed()
    composed.pairs.append(raw.array("x.head_count", raw.U32, range(count)))
    value = read_header(io.BytesIO(composed.bytes())).metadata["x.head_count"]
    assert value == (tuple(range(count)) if kept else Omitted("u32", count))


def test_strings_longer_than_a_buffer_are_walked_over() -> None:
    composed = raw.Composed()
    long = "x" * (1 << 20)
    composed.pairs.append(raw.array("many", raw.STRING, [long, "", long + "y", "z"] * 2))
    composed.add("after", raw.U32, 7)
    metadata = read_header(io.BytesIO(composed.bytes())).metadata
    assert metadata == {"many": Omitted("string", 8), "after": 7}


def test_lengths_across_buffer_edges_are_read_right() -> None:
    for extra in range(12):
        composed = raw.Composed()
        composed.pairs.append(raw.array("a", raw.STRING, ["p" * ((1 << 20) - 70 + extra)] + ["q" * 5] * 9))
        composed.add("after", raw.U32, extra)
        assert read_header(io.BytesIO(composed.bytes())).metadata["after"] == extra


def test_an_explicit_alignment_moves_data_and_offsets() -> None:
    composed = raw.small()
    composed.alignment = 128
    composed.add("general.alignment", raw.U32, 128)
    header = read_header(io.BytesIO(composed.bytes()))
    assert header.alignment == 128
    assert header.data_start % 128 == 0
    assert header.minimum_size == len(composed.bytes())


def test_the_type_table_is_the_gguf_packages() -> None:
    gguf = pytest.importorskip("gguf")
    for number, (block, size) in gguf.GGML_QUANT_SIZES.items():
        assert TENSOR_TYPES[int(number)][:3] == (number.name, block, size)


@pytest.mark.parametrize("write", [write_qwen35, write_llama])
def test_files_of_the_gguf_package_are_read_as_it_reads_them(write: object, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    path = write(tmp_path / "tiny.gguf")  # type: ignore[operator]  # a function of this suite
    header = read_shards(path)
    theirs = gguf.GGUFReader(path)
    assert header.data_start == theirs.data_offset
    assert [(t.name, t.type, list(t.dims), t.size) for t in header.tensors] == [
        (t.name, t.tensor_type.name, [int(dim) for dim in t.shape], int(t.n_bytes)) for t in theirs.tensors
    ]
    for tensor, their in zip(header.tensors, theirs.tensors, strict=True):
        assert header.data_start + tensor.offset == their.data_offset


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="cannot read the file"):
        read_header(tmp_path / "none.gguf")
