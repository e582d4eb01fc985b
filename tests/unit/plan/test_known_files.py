"""The table of known files: what it states, how it is found in, and how a project's own word comes first."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from llamarig.catalog.known_files import PROJECT_FILE, UNLOCKED, KnownFile, TensorType, quant_class, table
from llamarig.catalog.speeds import speeds
from llamarig.errors import RigError
from llamarig.gguf.tensor_types import BY_NAME
from llamarig.memory import read_shape
from llamarig.plan.stand_in import composed, scaled
from tests.support.big_models import header_of, qwen35_27b

GUIDE_GB = {
    "UD-IQ2_XXS": 9.01, "UD-IQ3_XXS": 11.91, "Q3_K_M": 13.82, "Q4_0": 16.06, "UD-Q4_K_XL": 17.92,
    "UD-Q6_K_XL": 25.92, "UD-Q8_K_XL": 31.46,
}  # fmt: skip
"""The ends of the sizing guide's ranges, as published."""
FIRST = "fdd03b8bbd279c1694563650e79d85a2373d9934"


def test_every_file_says_where_it_is_from_and_what_is_known_of_it() -> None:
    found = table()
    assert len(found.files) > 70
    for each in found.files:
        assert each.source
        assert (each.size is None) != (each.size_gb is None), each.file
        assert each.sha256 == UNLOCKED or len(each.sha256) == 64
        assert each.revision == UNLOCKED or len(each.revision) == 40
    hashes = [each.sha256 for each in found.files if each.sha256 != UNLOCKED]
    assert len(hashes) == len(set(hashes)), "one content is listed twice"


def test_the_sizes_are_those_of_the_sizing_guide() -> None:
    first = {each.quant: each for each in table().of("qwen3.8-27b") if each.revision == FIRST}
    assert {quant: round((first[quant].size or 0) / 1e9, 2) for quant in GUIDE_GB} == GUIDE_GB


def test_the_same_label_is_not_the_same_file() -> None:
    sizes = {each.most_bytes for each in table().of("qwen3.8-27b") if each.quant == "Q4_K_M"}
    assert len(sizes) >= 4
    assert max(sizes) - min(sizes) > 2_000_000_000


def test_a_rounded_figure_is_not_taken_for_exact() -> None:
    rounded = next(each for each in table().files if each.size_gb == 16.81)
    assert rounded.size is None
    assert rounded.most_bytes == 16_815_000_000


ENTRY = """schema-version: 1
models:
  qwen3.8-27b:
    - repo: a/b
      source: here
      files:
        - {file: x.gguf, quant: Q4_0, %s}
"""


@pytest.mark.parametrize(
    "text",
    [
        "2026-99-99",
        "[" * 3000,
        "a: " + "9" * 5000,
        ENTRY % "size-gb: .inf",
        ENTRY % "size-gb: .nan",
        ENTRY % "size-gb: 1.0e+300",
        ENTRY % ("size: 1" + "0" * 400),
        ENTRY % "size: 0",
        ENTRY % "size: 1, embedding-type: Q9_K",
    ],
)
def test_a_table_of_a_project_that_makes_no_sense_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / PROJECT_FILE).write_text(text)
    with pytest.raises(RigError, match="not usable"):
        table(tmp_path)


def test_the_largest_size_that_is_believed(tmp_path: Path) -> None:
    (tmp_path / PROJECT_FILE).write_text(ENTRY % "size-gb: 1.0e+6")
    assert any(each.most_bytes >= 10**15 for each in table(tmp_path).files)


@pytest.mark.parametrize(
    ("label", "bits"),
    [("Q4_K_M", 4), ("UD-IQ2_XXS", 2), ("UD-Q6_K_XL", 6), ("NVFP4", 4), ("MXFP4", 4), ("BF16", 16), ("Q8_0", 8),
     ("IQ1_M", 1), ("MEDIUM", 0), ("", 0)],
)  # fmt: skip
def test_the_class_is_what_the_label_claims(label: str, bits: int) -> None:
    assert quant_class(label) == bits


def test_models_go_by_the_names_that_people_write() -> None:
    found = table()
    assert found.model("qwen3.8-27b") == found.model("Qwen3.8 27B") == found.model("QWEN3.8_27B") == "qwen3.8-27b"
    with pytest.raises(RigError) as refused:
        found.model("qwen3.8-72b")
    assert "did you mean qwen3.8-27b" in refused.value.fix
    with pytest.raises(RigError, match="no known files") as unknown:
        found.model("zzzz")
    assert PROJECT_FILE in unknown.value.fix


def test_a_file_of_a_spec_is_recognised() -> None:
    found = table()
    q4 = found.identify(
        sha256="7e78da5d7e3ae28d178121f58646953305f3e5bd3cb46f4a75584e8b6c6fe169", repo=None, file=None, size=None
    )
    assert q4 is not None
    assert q4.quant == "Q4_K_M"
    by_place = found.identify(sha256=UNLOCKED, repo=q4.repo, file=q4.file, size=None)
    assert by_place == q4
    assert found.identify(sha256=UNLOCKED, repo=q4.repo, file=q4.file, size=1) is None
    by_bytes = found.identify(sha256=None, repo=None, file=None, size=17_125_207_136)
    assert by_bytes is not None
    assert by_bytes.quant == "NVFP4"
    assert found.identify(sha256=None, repo="a/b", file="c.gguf", size=123) is None


def test_a_project_s_own_table_comes_first(tmp_path: Path) -> None:
    assert table(tmp_path) is table()
    text = f"""schema-version: 1
models:
  qwen3.8-27b:
    - repo: unsloth/Qwen3.8-27B-GGUF
      revision: {"a" * 40}
      mtp: true
      source: the hub's tree listing
      files: [{{file: Qwen3.8-27B-Q4_K_M.gguf, quant: Q4_K_M, size: 123, sha256: {"b" * 64}}}]
  own:
    - {{repo: me/own, source: mine, files: [{{file: own.gguf, quant: Q8_0, size: 5}}]}}
"""
    (tmp_path / PROJECT_FILE).write_text(text)
    found = table(tmp_path)
    ours = [each for each in found.of("qwen3.8-27b") if each.repo == "unsloth/Qwen3.8-27B-GGUF"]
    assert (ours[0].size, ours[0].revision) == (123, "a" * 40)
    assert UNLOCKED not in {each.revision for each in ours}
    assert FIRST in {each.revision for each in ours}
    assert [each.file for each in found.of("own")] == ["own.gguf"]
    assert len(found.of("gpt-oss-20b")) == 1


@pytest.mark.parametrize(
    "text", ["models: {", "schema-version: 2\nmodels: {}", "[]", "schema-version: 1\nmodels: {x: [{}]}"]
)
def test_a_wrong_table_of_a_project_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / PROJECT_FILE).write_text(text)
    with pytest.raises(RigError, match="not usable"):
        table(tmp_path)


LISTED = """schema-version: 1
models:
  qwen3.8-27b:
    - repo: cdiamond/Qwen3.8-27B-iMatrix-NVFP4-MTP-GGUF
      source: the hub's tree listing
      files: [{file: Qwen3.8-27B-iMatrix-NVFP4-MTP.gguf, quant: NVFP4, mtp: true, sha256: %s, size: %d}]
"""


def reference(project: Path | None = None) -> KnownFile:
    found = table(project).identify(
        sha256=None, repo="cdiamond/Qwen3.8-27B-iMatrix-NVFP4-MTP-GGUF",
        file="Qwen3.8-27B-iMatrix-NVFP4-MTP.gguf", size=None,
    )  # fmt: skip
    assert found is not None
    return found


def test_a_published_recipe_gives_embedding_and_output_their_types() -> None:
    assert (reference().embedding_type, reference().output_type) == ("Q6_K", "Q8_0")
    model = table().models["qwen3.8-27b"]
    header = composed(model, reference())
    assert header is not None
    assert not header.embedding_assumed
    assert header.by_name["token_embd.weight"].type == "Q6_K"
    # As the server of the stack logs it.
    assert header.by_name["token_embd.weight"].size / (1 << 20) == pytest.approx(994.63, abs=0.01)
    assert header.by_name["output.weight"].type == "Q8_0"
    assert sum(each.size for each in header.tensors) == pytest.approx(17_125_207_136, abs=1000)
    unknown = composed(model, replace(reference(), embedding_type=None))
    assert unknown is not None
    assert unknown.embedding_assumed
    assert unknown.by_name["token_embd.weight"].size < header.by_name["token_embd.weight"].size


def test_the_types_that_may_be_written_down_are_types_of_gguf() -> None:
    assert set(get_args(TensorType)) <= set(BY_NAME)


def test_the_recipe_is_the_one_that_the_speed_model_reckons_with() -> None:
    runs = [each for each in speeds().runs if each.type == "NVFP4" and each.source == "stack"]
    assert len(runs) > 10

    def bits(name: str | None) -> float:
        assert name is not None
        return BY_NAME[name].size * 8 / BY_NAME[name].block

    both = (bits(reference().embedding_type), bits(reference().output_type))
    assert {(each.embedding_bits, each.output_bits) for each in runs} == {both}


@pytest.mark.parametrize(("size", "kept"), [(17_125_207_136, ("Q6_K", "Q8_0")), (17_125_207_137, (None, None))])
def test_a_listing_keeps_the_recipe_of_the_same_bytes_alone(
    size: int, kept: tuple[str | None, str | None], tmp_path: Path
) -> None:
    (tmp_path / PROJECT_FILE).write_text(LISTED % ("c" * 64, size))
    found = reference(tmp_path)
    assert (found.sha256, found.size) == ("c" * 64, size)
    assert (found.embedding_type, found.output_type) == kept


def known(quant: str) -> KnownFile:
    return next(each for each in table().of("qwen3.8-27b") if each.quant == quant and each.revision == FIRST)


def test_a_composed_header_has_the_model_s_dimensions_and_the_file_s_bytes() -> None:
    model = table().models["qwen3.8-27b"]
    header = composed(model, known("Q4_K_M"))
    assert header is not None
    real = read_shape(header_of(qwen35_27b()))
    assert read_shape(header) == real
    assert sum(each.size for each in header.tensors) == pytest.approx(17_106_775_008, abs=1000)
    weights = sum(math.prod(each.dims) for each in header.tensors)
    assert weights == pytest.approx(model.parameters, rel=0.001)
    # A server's log of August 2026 says 682.03 MiB for a Q4_K embedding of this model.
    assert header.by_name["token_embd.weight"].size / (1 << 20) == pytest.approx(682.03, abs=0.01)


def test_a_file_without_the_mtp_head_has_one_block_less() -> None:
    model = table().models["qwen3.8-27b"]
    bare = next(each for each in table().of("qwen3.8-27b") if not each.mtp and each.quant == "UD-IQ4_XS")
    header = composed(model, bare)
    assert header is not None
    assert not read_shape(header).mtp_layers
    assert len(read_shape(header).layers) == 64


def test_without_dimensions_nothing_is_composed() -> None:
    [file] = table().of("qwen3.5-4b")
    assert composed(table().models["qwen3.5-4b"], file) is None


def test_another_quant_has_the_same_shares() -> None:
    header = header_of(qwen35_27b())
    other = scaled(header, 9_010_048_064)
    assert read_shape(other) == read_shape(header)
    assert sum(each.size for each in other.tensors) == pytest.approx(9_010_048_064 - header.data_start, rel=1e-6)
