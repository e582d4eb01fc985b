"""Which quant suits a card: the sizing guide's verdicts, out of arithmetic and stated thresholds."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from llamarig.catalog.known_files import KnownFile, Table, table
from llamarig.errors import RigError
from llamarig.gguf import Header
from llamarig.plan.advise import Advice, Money, Question, Row, advise, card_names, card_notes
from llamarig.plan.advise.month import month_words
from llamarig.plan.advise.verdict import SLOWEST_TOK_S, verdict
from llamarig.plan.stand_in import scaled
from llamarig.speed.economics import Hosted
from tests.support.big_models import header_of, qwen35_27b
from tests.unit.plan.test_solve import rig

MODEL = "qwen3.8-27b"


def nothing_at_hand(_file: KnownFile) -> Header | None:
    return None


@cache
def advice(gpu: str, **words: object) -> Advice:
    question = Question(card_names(gpu), MODEL, **words)  # type: ignore[arg-type] # keywords of one dataclass
    return advise(question, table(), nothing_at_hand)


def of_bits(*bits: int) -> Table:
    """The table with no other quants: a class's row does not depend on what else there is."""
    known = table()
    return Table(known.models, tuple(each for each in known.files if each.quant is None or each.quant_class in bits))


@cache
def four_bits(gpu: str, **words: object) -> Advice:
    """The same advice of the one row that a test asks for."""
    question = Question(card_names(gpu), MODEL, **words)  # type: ignore[arg-type] # keywords of one dataclass
    return advise(question, of_bits(4), nothing_at_hand)


def test_a_row_does_not_depend_on_the_other_classes(guide: dict[str, Advice]) -> None:
    for card in ("rtx-4090", "rtx-5070"):
        (only,) = four_bits(card).rows
        assert only == row(guide[card], 4)


def row(found: Advice, bits: int) -> Row:
    return next(each for each in found.rows if each.bits == bits)


@pytest.fixture(scope="module")
def guide() -> dict[str, Advice]:
    return {name: advice(name) for name in ("rtx-5090", "rtx-4090", "rtx-5080", "rtx-5070-ti", "rtx-5070")}


def test_32_gb_hold_4_and_6_bits_with_room_for_the_window(guide: dict[str, Advice]) -> None:
    found = guide["rtx-5090"]
    assert row(found, 4).verdict == row(found, 6).verdict == "recommended"
    assert found.rows[0].bits == 6
    assert "with room for a 32,768-token window" in found.summary


def test_24_gb_hold_4_bits_and_a_small_file_of_5_with_room(guide: dict[str, Advice]) -> None:
    found = guide["rtx-4090"]
    assert [each.bits for each in found.rows if each.verdict == "recommended"] == [5, 4]
    largest = max(each.size or 0 for each in table().of(MODEL) if each.quant_class == 5)
    assert (row(found, 5).file.size or 0) < largest, "a larger file would hold the window without room"
    assert "watch the KV cache" in advice("rtx-4090", context=65_536).summary
    assert not row(found, 6).fits
    longest = row(found, 4).windows
    assert 65_536 <= (longest["f16"] or 0) < (longest["q8_0"] or 0) < 262_144


@pytest.mark.parametrize("card", ["rtx-5080", "rtx-5070-ti"])
def test_16_gb_hold_3_bits_or_4_with_layers_in_ram(guide: dict[str, Advice], card: str) -> None:
    found = guide[card]
    assert found.rows[0].bits == 3
    assert found.rows[0].verdict == "usable"
    four = row(found, 4)
    assert not four.fits
    assert four.layers_in_ram > 0
    assert found.summary.startswith("3 bits whole on the cards")
    assert "layers in RAM, at a cost in speed" in found.summary


def test_12_gb_hold_2_bits_and_that_is_not_recommended(guide: dict[str, Advice]) -> None:
    found = guide["rtx-5070"]
    two = row(found, 2)
    assert two.fits
    assert two.verdict == "not-recommended"
    assert not row(found, 3).fits
    assert not row(found, 4).fits
    assert "2 bits fit with a 32,768-token window, not recommended" in found.summary


def test_every_row_is_a_file_known_to_the_byte_that_fits_as_it_says(guide: dict[str, Advice]) -> None:
    for found in guide.values():
        assert found.rounded == 3
        for each in found.rows:
            assert each.file.size is not None
            assert each.reasons
            if each.fits:
                assert min(each.free_mib.values()) >= 512
                assert (each.windows["f16"] or 0) >= 32_768
                assert each.decode_tok_s is not None
            else:
                assert not each.windows["f16"] or each.windows["f16"] < 32_768


def test_below_five_tokens_a_second_a_machine_is_no_host() -> None:
    assert verdict(4, "whole", room=True, tok_s=SLOWEST_TOK_S - 0.1) == "not-a-host"
    assert verdict(4, "whole", room=True, tok_s=SLOWEST_TOK_S) == "recommended"
    slow = four_bits("rtx-5070", ram_gb_s=20.0)
    four = row(slow, 4)
    assert four.verdict == "not-a-host"
    assert four.decode_at_most is not None
    assert four.decode_at_most < 5
    assert "below 5, not a host" in " ".join(four.reasons)
    assert row(four_bits("rtx-5070", ram_gb_s=100.0), 4).verdict == "layers-in-ram"


def test_a_card_that_holds_nothing_is_no_host() -> None:
    found = advice("rtx-5070", context=4_000_000, ram_gb_s=5.0)
    assert not found.host
    assert found.summary == "not a host for this model"
    assert {each.verdict for each in found.rows} <= {"not-a-host", "does-not-fit"}


def test_text_only_leaves_the_projector_out() -> None:
    both, text = row(four_bits("rtx-4090"), 4), row(four_bits("rtx-4090", projector=False), 4)
    assert text.file.most_bytes >= both.file.most_bytes
    assert (text.windows["f16"] or 0) > (both.windows["f16"] or 0)


def test_a_display_takes_room() -> None:
    plain, shown = four_bits("rtx-4090"), four_bits("rtx-4090", display=True)
    assert (row(shown, 4).windows["f16"] or 0) < (row(plain, 4).windows["f16"] or 0)


def test_two_cards_hold_what_one_does_not() -> None:
    two = four_bits("rtx-5080,rtx-5080")
    assert row(two, 4).fits
    assert row(two, 4).decode_tok_s is None
    assert row(two, 4).decode_at_most is not None
    assert "not predicted" in " ".join(two.notes)
    assert set(row(two, 4).free_mib) == {"rtx-5080-1", "rtx-5080-2"}


def test_a_header_at_hand_is_used_instead_of_a_composed_one() -> None:
    real = header_of(qwen35_27b())

    def q4_alone(file: KnownFile) -> Header | None:
        return scaled(real, file.size or 0) if file.quant == "Q4_K_M" else None

    found = advise(Question(("rtx-4090",), MODEL), of_bits(4, 5), q4_alone)
    assert not row(found, 4).composed
    assert row(found, 5).composed


def test_without_header_and_dimensions_there_is_no_advice() -> None:
    with pytest.raises(RigError, match="neither the dimensions"):
        advise(Question(("rtx-4090",), "qwen3.5-4b"), table(), nothing_at_hand)
    empty = Table(table().models, ())
    with pytest.raises(RigError, match="known to the byte"):
        advise(Question(("rtx-4090",), MODEL), empty, nothing_at_hand)


@cache
def experts_on_8_gb(ram_gb_s: float | None) -> Advice:
    return advise(Question(("rtx-4060",), "gpt-oss-20b", ram_gb_s=ram_gb_s), table(), nothing_at_hand)


def test_experts_go_to_ram_before_layers_and_only_those_a_token_uses_bound_it() -> None:
    found = experts_on_8_gb(80.0)
    (only,) = found.rows
    assert only.layers_in_ram == 0
    assert 0 < only.experts_in_ram < 24
    bound = only.decode_at_most or 0.0
    # 4 of 32 experts of about half the layers of 12 GB: 0.7 GB at 80 GB/s, and the rest from the card.
    assert 40 < bound < 100
    assert found.summary == (
        f"not whole on the cards: 4 bits only with the experts of {only.experts_in_ram} of 24 layers in RAM, "
        f"at most {bound:,.1f} tok/s"
    )


def test_without_the_speed_of_the_ram_the_headline_says_how_to_ask() -> None:
    found = experts_on_8_gb(None)
    assert found.summary.startswith("not whole on the cards")
    assert found.summary.endswith("speed unknown: say how fast the RAM is with --ram-gb-s")
    assert found.rows[0].decode_at_most is None


def test_a_window_beyond_the_trained_one_is_said() -> None:
    assert any("trained for 262,144" in note for note in four_bits("rtx-5070", context=300_000).notes)
    assert not four_bits("rtx-5070").notes


def test_a_month_is_reckoned_at_the_speeds_of_a_full_window() -> None:
    money = Money(0.30, hosted=Hosted(input_million=0.40, output_million=3.00))
    best = four_bits("rtx-4090", money=money).rows[0]
    assert best.month is not None
    hours = (10e6 / (best.prefill_tok_s or 0) + 2e6 / (best.decode_tok_s or 0)) / 3600
    assert best.month.hours == pytest.approx(hours)
    assert best.month.electricity == pytest.approx(hours * 0.45 * 0.30)
    assert best.month.hosted == pytest.approx(10.0)
    assert "hosted 10.00 (" in month_words(best.month)
    assert any("no month is reckoned" in note for note in four_bits("rtx-5080,rtx-5080", money=money).notes)


def test_one_name_with_two_sizes_of_memory_says_which_was_taken() -> None:
    (said,) = card_notes(("rtx-4060-ti",))
    assert "taken is rtx-4060-ti with 8,188 MiB, not rtx-4060-ti-16gb" in said
    assert "16,311 MiB" in card_notes(("rtx-5060-ti-16gb",))[0]
    assert card_notes(("rtx-4090",)) == []


def test_a_number_alone_is_the_card_that_ends_in_it() -> None:
    assert card_names("4090") == ("rtx-4090",)
    with pytest.raises(RigError, match="more than one card") as refused:
        card_names("4000-ada,ada")
    assert "rtx-4000-ada" in refused.value.fix


def test_a_model_goes_by_its_repository_and_its_files() -> None:
    known = table()
    file = known.of("gpt-oss-20b")[0]
    assert known.model(file.repo) == known.model(file.file) == known.model(f"{file.repo}/{file.file}") == "gpt-oss-20b"
    with pytest.raises(RigError) as refused:
        known.model("llama-7b")
    assert "model memory FILE" in refused.value.fix


def test_the_command_lists_and_asks_for_what_is_missing(tmp_path: Path) -> None:
    listed = json.loads(rig(tmp_path, "advise", "--list", "--json").stdout)
    assert listed["models"]["gpt-oss-20b"] == 1
    assert listed["cards"]["rtx-4090"] == 24_564
    nothing = rig(tmp_path, "advise", "--model", MODEL)
    assert nothing.returncode == 2
    assert "no card is named" in nothing.stderr
    half = rig(tmp_path, "advise", "--gpu", "rtx-4090", "--model", MODEL, "--hosted-in", "0.4")
    assert half.returncode == 2
    assert "--price-kwh" in half.stderr


@pytest.mark.parametrize("name", ["rtx-4090", "RTX 4090", "NVIDIA GeForce RTX 4090", "rtx_4090"])
def test_cards_go_by_the_names_that_people_write(name: str) -> None:
    assert card_names(name) == ("rtx-4090",)


@pytest.mark.parametrize(
    ("words", "fix"), [("rtx-4900", "rtx-4090"), ("rtx-4090,rtx-508", "rtx-5080"), ("zzzz", "gpus.yml"), (",", "--gpu")]
)
def test_an_unknown_card_lists_near_names(words: str, fix: str) -> None:
    with pytest.raises(RigError) as refused:
        card_names(words)
    assert fix in refused.value.fix


def test_the_command_prints_a_ranking(tmp_path: Path) -> None:
    words = rig(tmp_path, "advise", "--gpu", "RTX 5080", "--model", "Qwen3.8 27B")
    assert words.returncode == 0, words.stderr
    assert words.stdout.startswith("qwen3.8-27b on rtx-5080: 3 bits whole on the cards")
    assert "composed from the model's dimensions" in " ".join(words.stdout.split())
    data = json.loads(rig(tmp_path, "advise", "--gpu", "rtx-5080", "--model", MODEL, "--json").stdout)
    assert list(data) == [
        "gpus", "model", "context", "projector", "host", "summary", "notes", "advice", "rounded-sizes-left-out",
    ]  # fmt: skip
    assert set(data["advice"][0]) == {
        "bits", "verdict", "reasons", "file", "composed", "fits", "free-mib", "longest-context", "kv-cache",
        "layers-in-ram", "experts-in-ram", "decode-tok-s", "decode-tok-s-full", "decode-tok-s-at-most",
        "prefill-tok-s-full", "month",
    }  # fmt: skip
    lost = rig(tmp_path, "advise", "--gpu", "rtx-4090", "--model", "qwen3.8-72b")
    assert lost.returncode == 2
    assert "did you mean qwen3.8-27b" in lost.stderr
