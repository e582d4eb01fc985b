"""What is offered and what is solved: a spec that `check` accepts, and that fits."""

from __future__ import annotations

from typing import Any

import pytest

from llamarig.catalog.known_files import table
from llamarig.cli.solve import bound_words
from llamarig.gguf import Header
from llamarig.plan import plan_host
from llamarig.plan.alternatives import Change
from llamarig.plan.alternatives.kinds import context, drafts, setting, slots
from llamarig.plan.alternatives.legal import refused
from llamarig.plan.alternatives.placing import file_keys, usable_files
from llamarig.plan.alternatives.tries import Tries
from llamarig.plan.host import planned_subject
from llamarig.plan.solve import Solution, solve
from llamarig.plan.stand_in import scaled
from llamarig.spec.host import HostSpec
from tests.support.models import header as published
from tests.support.plan_specs import CPU, REFERENCE, spec
from tests.unit.plan.test_alternatives import PLAIN, QWEN

ROOMY = {"total-mib": 500_000}


def solved(found: HostSpec, what: str, headers: dict[str, Header | None] | None = None) -> Solution:
    return solve(*planned_subject(found, headers or {"qwen": QWEN, "small": PLAIN}), what)


def smallest() -> dict[str, Any]:
    """The least known file of the reference model, as a spec names it."""
    known = table().of("qwen3.8-27b")
    least = min((each for each in known if each.size is not None and each.mtp), key=lambda each: each.most_bytes)
    return file_keys(least)


TWO_CARDS = {
    "g0": {"model": "rtx-5090", "bus-id": "01:00.0"},
    "g1": {"model": "rtx-4090", "bus-id": "02:00.0"},
}


@pytest.mark.parametrize(
    "reads",
    [
        {"model": "big", "speculation": {"type": "draft-model", "model": "m"}},
        {"model": "big", "router": {"models": ["big", "m"], "models-max": 2}},
    ],
    ids=["drafter", "router"],
)
def test_a_file_that_another_service_reads_too_has_to_fit_there_too(reads: dict[str, Any]) -> None:
    big = published("llama-3.1-8b")
    beside = {"context": 4096, "listen": {"port": 8081}, "gpu": "g1"}
    services = {
        "s": {"model": "m", "gpu": "g0", "context": 4096, "listen": {"port": 8080}},
        "b": {**beside, **reads},
    }
    models = {"m": smallest(), "big": {**CPU["models"]["small"], "size": big.minimum_size}}
    base: dict[str, Any] = {**REFERENCE, "gpus": TWO_CARDS, "models": models, "services": services}
    headers = {"m": scaled(QWEN, models["m"]["size"]), "big": big}
    found = solve(*planned_subject(spec(base), headers), "quant", "s")
    size = found.change["models"]["m"]["size"]
    written = spec(base, models={**models, "m": found.change["models"]["m"]})
    again = plan_host(written, {**headers, "m": scaled(QWEN, size)}, with_alternatives=False)
    assert again.fits
    assert found.free_mib == pytest.approx({each.gpu: each.free_mib for each in again.devices}, abs=0.02)


def test_a_file_for_two_services_has_the_head_when_either_drafts_with_it() -> None:
    chat = {**REFERENCE["services"]["chat"], "speculation": {"type": "draft-mtp"}}
    plain = {key: value for key, value in chat.items() if key != "speculation"}
    own = next(each for each in table().of("qwen3.8-27b") if each.mtp)

    def heads(**services: Any) -> set[bool]:
        found = spec(REFERENCE, services=services)
        subject = planned_subject(found, {"qwen": QWEN})[0]
        return {bool(each.mtp) for each in usable_files(subject, found.services["plain"], own)}

    assert heads(plain=plain) == {True, False}
    assert heads(plain=plain, chat={**chat, "listen": {"port": 8081}}) == {True}


def test_slots_are_searched_where_fewer_of_them_take_more() -> None:
    service = {"context": 32_768, "flash-attention": "off", "kv-cache": {"k": "f16", "v": "f16"}, "speculation": None}
    roomy = spec(CPU, {"context": 32_768, "flash-attention": "off"}, memory=ROOMY)
    header = published("llama-3.1-8b")
    used = {
        count: plan_host(
            spec(CPU, {**service, "parallel": count}, memory=ROOMY), {"small": header}, with_alternatives=False
        ).ram.used_mib
        for count in (1, 2, 4, 8, 16)
    }
    assert used[1] > used[8]
    total = int((used[1] + used[8]) / 2)
    reserve = roomy.memory.reserve_mib if roomy.memory is not None else 0
    short = spec(CPU, {**service, "parallel": 16}, memory={"total-mib": total + reserve})
    found = solve(*planned_subject(short, {"small": header}), "slots")
    assert isinstance(found.value, int)
    assert found.value > 1
    one = spec(CPU, {**service, "parallel": 1}, memory={"total-mib": total + reserve})
    assert not plan_host(one, {"small": header}, with_alternatives=False).fits


def test_slots_that_share_a_short_window_are_not_offered() -> None:
    found = solved(spec(CPU, {"context": 4096}, memory=ROOMY), "slots")
    assert (found.value, found.bound.by, found.bound.where) == (16, "spec", "256 tokens a slot")
    shared = solved(spec(CPU, {"context": 4096, "kv-unified": True}, memory=ROOMY), "slots")
    assert (shared.value, shared.bound.where) == (256, "")


def test_the_slots_of_a_divided_window_are_planned_one_by_one() -> None:
    subject = planned_subject(spec(CPU, {"context": 65_536, "parallel": 200}), {"small": PLAIN})[0]
    series = slots(subject, "chat")
    assert series is not None
    assert not series.monotone
    assert series.count <= 32
    counts = [series.at(at).shown["parallel"] for at in range(series.count)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 199
    unified = planned_subject(spec(CPU, {"context": 65_536, "parallel": 9, "kv-unified": True}), {"small": PLAIN})[0]
    shared = slots(unified, "chat")
    assert shared is not None
    assert (shared.monotone, shared.count) == (False, 8)


def test_a_shorter_draft_takes_the_shortest_one_down() -> None:
    drafting = {"type": "draft-mtp", "n-max": 64, "n-min": 60}
    subject = planned_subject(spec(REFERENCE, {"speculation": drafting}), {"qwen": QWEN})[0]
    series = drafts(subject, "chat")
    assert series is not None
    assert series.at(0).shown == {"speculation": {"n-max": 63}}
    assert series.at(53).shown == {"speculation": {"n-max": 10, "n-min": 10}}
    for at in (0, 53):
        assert refused(subject.spec, series.at(at).apply(subject.spec, subject.headers)[0]) is None
    found = solved(spec(REFERENCE, {"accept-margin": None, "context": 131_072, "speculation": drafting}), "n-max")
    keys = found.change["speculation"]
    assert keys["n-min"] == keys["n-max"] == found.value
    assert keys["n-max"] < 60


def test_a_window_leaves_each_slot_its_256_tokens() -> None:
    service = {"accept-margin": None, "parallel": 8}
    subject = planned_subject(spec(REFERENCE, service), {"qwen": QWEN})[0]
    series = context(subject, "chat")
    assert series is not None
    assert series.at(series.count - 1).shown == {"context": 2048}
    tiny = {**REFERENCE["gpus"], "blackwell": {**REFERENCE["gpus"]["blackwell"], "reserve-mib": 20_000}}
    none = solved(spec(REFERENCE, service, gpus=tiny), "context")
    assert (none.value, none.bound.next) == (None, 2048)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("parallel", 17, "17 slots share 4096 tokens"),
        ("ubatch", 4096, "`ubatch` 4096 is larger"),
        ("parallel", 0, "services.chat holds a value"),
    ],
)
def test_a_change_that_check_would_refuse_never_fits(key: str, value: int, words: str) -> None:
    subject, replan = planned_subject(spec(CPU, {"context": 4096}, memory=ROOMY), {"small": PLAIN})
    change = Change("chat", {key: value}, "", setting(**{key: value}))
    changed = change.apply(subject.spec, subject.headers)[0]
    assert words in str(refused(subject.spec, changed))
    if value:
        assert not Tries(subject, replan).fits((change,))


def test_what_was_wrong_before_is_not_held_against_a_change() -> None:
    wrong = spec(CPU, {"context": 4096, "ubatch": 4096, "batch": 2048})
    services = {"chat": wrong.services["chat"].model_copy(update={"cache_ram_mib": 10})}
    assert refused(wrong, wrong.model_copy(update={"services": services})) is None


def test_a_next_value_that_check_refuses_bounds_by_its_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llamarig.plan.solve._MOST_SLOTS", 258)
    found = solved(spec(CPU, {"context": 4096, "kv-unified": True}, memory=ROOMY), "slots")
    assert (found.value, found.bound.by, found.bound.next) == (256, "spec", 257)
    assert "no spec may hold" in found.bound.where
    assert "no spec may hold" in bound_words(found.bound)
