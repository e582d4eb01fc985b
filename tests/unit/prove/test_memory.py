"""A plan against what engine, fit tool, kernel and driver say of a running service; their lines are composed here."""

from __future__ import annotations

from typing import Any

import pytest

from llamarig.memory.units import MIB
from llamarig.plan import Plan, plan_host
from llamarig.prove.check import Check
from llamarig.prove.fit_settings import fit_columns
from llamarig.prove.fit_tool import FitRow, fit_arguments, read_fit
from llamarig.prove.journal import read_start
from llamarig.prove.late_rows import late_rows_mib
from llamarig.prove.memory import measured_service, memory_checks, read_account
from tests.support.big_models import header_of, qwen35_27b
from tests.support.plan_specs import REFERENCE, UUIDS, spec
from tests.unit.memory.test_drafters import eagle3

SPEC = spec(REFERENCE)
HEADER = header_of(qwen35_27b())
PLAN = plan_host(SPEC, {"qwen": HEADER})
CPU = fit_columns(SPEC, SPEC.services["chat"], HEADER)
LATE = late_rows_mib(SPEC, SPEC.services["chat"], {"qwen": HEADER})
TERMS = PLAN.devices[0].services["chat"]
PID = 4711


def lines(**changes: float) -> list[str]:
    """The engine's lines of a start as it prints them at -lv 4, with the planned figures unless changed."""
    ram = PLAN.ram.services["chat"]
    sizes = {
        "model": TERMS["weights"] + TERMS.get("draft-weights", 0.0),
        "KV": TERMS["kv-cache"],
        "draft KV": TERMS["draft-kv-cache"],
        "RS": TERMS["recurrent-state"],
        "compute": TERMS["compute"],
        "draft compute": TERMS["draft-compute"],
        **changes,
    }
    host = {"model": ram["weights"], "compute": ram["compute"] + ram.get("draft-compute", 0.0) - LATE}
    return [
        *(f"llama: CUDA0 {name.removeprefix('draft ')} buffer size = {mib:9.2f} MiB" for name, mib in sizes.items()),
        *(f"llama: CUDA_Host {name} buffer size = {mib:9.2f} MiB" for name, mib in host.items()),
    ]


def answer(**parts: Any) -> dict[str, Any]:
    """What rig_prove returns as ``measured``."""
    held = sum(TERMS.values())
    seen = {
        "journal": {"lines": lines()},
        "process": {"VmHWM": 3_000_000},
        "fit": {"lines": [], "error": "not asked"},
        **parts.pop("chat", {}),
    }
    return {
        "services": {"chat": seen},
        "pids": {"chat": PID},
        "cards": {"blackwell": UUIDS[0], "ada": UUIDS[1]},
        "vram": {
            "processes": [{"pid": PID, "uuid": UUIDS[0], "mib": held + 10}, {"pid": 1, "uuid": UUIDS[0], "mib": 9}]
        },
        **parts,
    }


def judge(said: dict[str, Any], plan: Plan = PLAN) -> dict[str, Check]:
    return {check.name: check for check in memory_checks(plan, "chat", read_account("chat", said), None, LATE)}


def test_a_server_that_does_what_was_planned_passes() -> None:
    found = judge(answer())
    for term in ("weights", "kv-cache", "recurrent-state", "compute"):
        assert found[f"chat/memory-{term}"].ok, found[f"chat/memory-{term}"]
    assert "by the engine's lines" in found["chat/memory-compute"].detail


@pytest.mark.parametrize(
    ("line", "change", "check"),
    [
        ("KV", 0.5, "kv-cache"),
        ("KV", -0.5, "kv-cache"),
        ("RS", 149.63, "recurrent-state"),
        ("compute", 1.0, "compute"),
        ("compute", -100.0, "compute"),
        ("model", 5.0, "weights"),
    ],
)
def test_a_figure_off_the_plan_is_red(line: str, change: float, check: str) -> None:
    term = {"KV": "kv-cache", "RS": "recurrent-state", "compute": "compute", "model": "weights"}[line]
    base = TERMS[term] + (TERMS.get("draft-weights", 0.0) if line == "model" else 0.0)
    found = judge(answer(chat={"journal": {"lines": lines(**{line: base + change})}}))
    assert not found[f"chat/memory-{check}"].ok
    others = {name for name, each in found.items() if not each.ok and "fit-tool" not in name and "driver" not in name}
    assert others == {f"chat/memory-{check}"}


def test_a_little_too_careful_is_fine() -> None:
    assert judge(answer(chat={"journal": {"lines": lines(compute=TERMS["compute"] - 5)}}))["chat/memory-compute"].ok


def test_rows_that_come_with_the_first_batch_are_not_missed() -> None:
    # A hidden row of every token of a batch, which the head's batch and its one slot have too; the head's answer, which
    # has three more rows for its samplers and a hidden row; logits of a draft of 64 (of ngram-default).
    assert pytest.approx((3 * 512 * 5120 + 5120 + 3 * 248_320 + 1 + 64 * 248_320) * 4 / MIB) == LATE
    found = {each.name: each for each in memory_checks(PLAN, "chat", read_account("chat", answer()), None)}
    assert not found["chat/memory-compute"].ok, "it is more than may be missing by chance"
    assert late_rows_mib(SPEC, SPEC.services["chat"], {}) == 0


def test_rows_of_a_drafter_are_late_too() -> None:
    drafting = spec(REFERENCE, {"speculation": {"type": "eagle3", "model": "small", "n-max": 3}})
    service, drafter = drafting.services["chat"], eagle3(vocabulary=1000)
    alone = late_rows_mib(drafting, service, {"qwen": HEADER})
    both = late_rows_mib(drafting, service, {"qwen": HEADER, "small": drafter})
    read, gathered = 3 * 512 * 5120, 3 * 512 * 5120 + 3 * 512 * 320
    assert both - alone == pytest.approx((read + gathered + 256 * (4 * 1000 + 320 + 1) - 1000) * 4 / MIB)


def compute(*sizes: float) -> list[str]:
    """Lines of compute buffers, a context's first ``output`` line where a figure is 0."""
    kinds = {True: "CUDA0 compute", False: "CUDA_Host  output"}
    return [f"x:      {kinds[size > 0]} buffer size = {size:8.2f} MiB" for size in sizes]


@pytest.mark.parametrize(
    ("sizes", "mib"),
    [
        ((0, 500, 0, 300), 800),
        ((0, 500, 0, 300, 300), 800),
        ((0, 500, 0, 300, 310), 810),
        ((0, 500, 0, 300, 290), 800),
        ((0, 500, 0, 300, 305, 510), 815),
        ((0, 500, 500), 500),
        # Without the lines that contexts begin with nothing is known to be printed twice.
        ((500, 300, 300), 1100),
    ],
)
def test_a_context_that_reserves_again_is_counted_once(sizes: tuple[float, ...], mib: float) -> None:
    assert read_start(compute(*sizes)).buffers["compute"] == {"CUDA0": mib}


def test_a_projectors_buffer_is_no_contexts() -> None:
    clip = "reserve_compute_meta:      CUDA0 compute buffer size =   248.10 MiB"
    assert read_start([*compute(0, 500), clip]).buffers["compute"] == {"CUDA0": 500}


def test_a_start_without_lines_is_red() -> None:
    found = judge(answer(chat={"journal": {"lines": ["nothing of interest"]}}))
    assert not found["chat/memory-engine"].ok
    assert "not in the journal" in found["chat/memory-engine"].detail


def test_more_than_planned_on_the_card_is_red_and_is_what_later_plans_take() -> None:
    said = answer()
    found = judge(said)["chat/memory-driver-blackwell"]
    assert not found.ok
    measured = measured_service(PLAN, "chat", read_account("chat", said))
    assert measured.cards["blackwell"].residue_mib == pytest.approx(TERMS["process"] + 10, abs=0.02)
    assert "ada" not in measured.cards, "the driver said nothing of the other card"


def test_no_word_of_the_driver_is_no_measurement() -> None:
    found = judge(answer(vram={"processes": [], "error": "nvidia-smi is not there"}))["chat/memory-driver-blackwell"]
    assert not found.ok
    assert "nvidia-smi is not there" in found.detail


@pytest.mark.parametrize("mib", [-1.0, 1e12, "many", None, True])
def test_figures_that_cannot_be_are_not_taken(mib: Any) -> None:
    vram = {"processes": [{"pid": PID, "uuid": UUIDS[0], "mib": mib}]}
    account = read_account("chat", answer(vram=vram, chat={"process": {"VmHWM": mib}}))
    assert account.driver == {}
    assert account.peak_kib is None
    assert measured_service(PLAN, "chat", account).cards == {}


def test_ram_beyond_the_plan_is_red() -> None:
    planned = sum(PLAN.ram.services["chat"].values())
    kib = int((planned + 100) * 1024)
    assert judge(answer())["chat/memory-ram"].ok == (planned >= 3_000_000 / 1024)
    assert not judge(answer(chat={"process": {"VmHWM": kib}}))["chat/memory-ram"].ok


def test_the_fit_tool_is_asked_without_a_card_and_with_what_it_knows() -> None:
    words = fit_arguments(PLAN.services["chat"].argv)
    assert words[-6:] == ["--device", "none", "--no-repack", "--fit-print", "on", "--offline"]
    assert words[words.index("--ctx-size") + 1] == "262144"
    assert "--api-key-file" not in words
    assert "--spec-type" not in words


def test_the_fit_tools_rows_are_read_and_other_lines_passed_over() -> None:
    said = ["Host 994 4757 300 ", "\x1b[31mHost 1 2", "warning: something", "CUDA0 1 2 3", 7]
    assert read_fit(said) == [FitRow("Host", 994, 4757, 300), FitRow("CUDA0", 1, 2, 3)]


def test_a_fit_tool_that_failed_is_red_in_its_own_words() -> None:
    said = answer(chat={"fit": {"lines": [], "error": "ended with 1: cannot open"}})
    found = {check.name: check for check in memory_checks(PLAN, "chat", read_account("chat", said), CPU)}
    assert not found["chat/memory-fit-tool"].ok
    assert "cannot open" in found["chat/memory-fit-tool"].detail


@pytest.mark.parametrize(
    ("off", "ok"), [((0, 0, 0), True), ((0, 1, 0), False), ((1, 0, 0), False), ((0, 0, 99), False)]
)
def test_the_fit_tools_columns_are_held_against_the_estimate(off: tuple[int, int, int], ok: bool) -> None:
    assert CPU.compute is not None
    columns = (CPU.weights, CPU.context, CPU.compute)
    row = " ".join(str(mib + more) for mib, more in zip(columns, off, strict=True))
    said = answer(chat={"fit": {"lines": [f"Host {row} "], "error": ""}})
    found = {check.name: check for check in memory_checks(PLAN, "chat", read_account("chat", said), CPU)}
    assert found["chat/memory-fit-tool"].ok is ok
