"""From what was seen to verdicts. Lines of the engine: composed after those that llama.cpp b10454 prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from llamarig.converge.store.shelf import sha256_of
from llamarig.render.sandbox import UNPROVEN_ON_GPU
from scripts.gpu_check import asking, files, judge, main, project, sandbox, serve, smi
from scripts.gpu_check.asking import Seen
from scripts.gpu_check.engine import Compiler
from scripts.gpu_check.report import SCHEMA, Engine, Machine, Report, schema_text
from scripts.gpu_check.words import CannotAskError
from tests.support.tiny_models import write_qwen35
from tests.unit.gpu_check.test_smi import CARDS, UUID, answers

CARD = smi.cards(answers())[0]
WHEELS = {"source": "wheels", "version": files.TOOLKIT, "wheels": dict(files.WHEELS)}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_qwen35(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


def prepared(tmp_path: Path, tiny: Path, card: smi.Card | None) -> project.Prepared:
    """Both models are the tiny one here: the plan of SmolLM2 needs its file."""
    pin: dict[str, Any] = {"controller-path": str(tiny), "size": tiny.stat().st_size, "sha256": sha256_of(tiny)}
    spec = project.compose(card, WHEELS, tiny, pin)
    spec["models"]["smol"] = spec["models"]["tiny"]
    return project.prepare(tmp_path, spec)


def seen_as_planned(made: project.Prepared, name: str) -> Seen:
    """A server that shows exactly what was planned, before it is asked."""
    plan = made.plan
    [device] = plan.devices
    terms = device.services[name]
    lines = ["load_tensors: offloaded 6/6 layers to GPU"]
    for kind, of in {
        "model": ("weights", "draft-weights"),
        "KV": ("kv-cache", "draft-kv-cache"),
        "RS": ("recurrent-state",),
        "compute": ("compute", "draft-compute"),
    }.items():
        size = sum(terms.get(term, 0.0) + plan.ram.services[name].get(term, 0.0) for term in of)
        size -= made.late_mib[name] if kind == "compute" else 0.0
        lines.append(f"x: CUDA0 {kind} buffer size = {size:.2f} MiB")
    timings = {"draft_n": 40, "draft_n_accepted": 40, "predicted_per_second": 210.5}
    seen = Seen(True, text="This small model", open_status=401, timings=timings, lines=lines, pid=812)
    seen.ram_peak_mib, seen.driver_mib, seen.card_grew_mib = 300.0, sum(terms.values()) - 20, sum(terms.values())
    return seen


def test_what_comes_true_is_a_yes_and_what_does_not_a_no(tmp_path: Path, tiny: Path) -> None:
    made = prepared(tmp_path, tiny, CARD)
    seen = seen_as_planned(made, project.MTP)
    verdicts = list(judge.service(made, project.MTP, seen, UUID, drafts=True))
    assert {verdict.answer for verdict in verdicts} == {"yes"}, verdicts
    assert {
        f"{project.MTP}/{what}" for what in ("serves", "on-the-card", "drafts-are-accepted", "memory-kv-cache")
    } <= {verdict.question for verdict in verdicts}


@pytest.mark.parametrize(
    ("change", "question"),
    [
        (lambda seen: seen.lines.append("x: CUDA0 KV buffer size = 64.00 MiB"), "memory-kv-cache"),
        (lambda seen: seen.lines.append("x: CUDA0 compute buffer size = 11.27 MiB"), "memory-compute"),
        (lambda seen: seen.lines.__setitem__(0, "load_tensors: offloaded 0/6 layers to GPU"), "on-the-card"),
        (lambda seen: setattr(seen, "driver_mib", 2.0), "memory-on-the-card"),
        (lambda seen: setattr(seen, "driver_mib", 9000.0), "memory-driver-card"),
        (lambda seen: setattr(seen, "open_status", 200), "asks-for-a-key"),
        (lambda seen: seen.timings.update(draft_n_accepted=0), "drafts-are-accepted"),
        (lambda seen: setattr(seen, "text", ""), "serves"),
        (lambda seen: setattr(seen, "ram_peak_mib", 90000.0), "memory-ram"),
    ],
)
def test_each_difference_is_a_no_of_its_own(tmp_path: Path, tiny: Path, change: Any, question: str) -> None:
    made = prepared(tmp_path, tiny, CARD)
    seen = seen_as_planned(made, project.MTP)
    change(seen)
    no = [each.question for each in judge.service(made, project.MTP, seen, UUID, drafts=True) if each.answer == "no"]
    assert f"{project.MTP}/{question}" in no


def test_the_heads_second_reservation_is_no_memory_of_its_own(tmp_path: Path, tiny: Path) -> None:
    """Figures that llama-server b10454 printed for this service on the CPU backend."""
    made = prepared(tmp_path, tiny, None)
    sizes = [("output", 0.0), ("compute", 15.92), ("output", 0.0), ("compute", 11.27), ("compute", 11.27)]
    lines = [f"x:        CPU {kind} buffer size = {mib:.2f} MiB" for kind, mib in sizes]
    seen = Seen(False, text="This small model", open_status=401, lines=lines, pid=812)
    found = {each.question: each for each in judge.service(made, project.MTP, seen, None, drafts=False)}
    verdict = found[f"{project.MTP}/memory-compute"]
    assert (verdict.answer, verdict.detail) == ("yes", "planned 27.19 MiB, 27.19 by the engine's lines")


def test_a_server_that_does_not_run_is_one_no(tmp_path: Path, tiny: Path) -> None:
    made = prepared(tmp_path, tiny, CARD)
    [verdict] = judge.service(made, project.SMOL, Seen(True, error="status 75"), UUID, drafts=False)
    assert (verdict.answer, verdict.detail) == ("no", "status 75")


def test_memory_is_measured_by_process_and_by_card(tmp_path: Path) -> None:
    (tmp_path / "812").mkdir()
    (tmp_path / "812/status").write_text("Name:\tllama\nVmHWM:\t  2048 kB\n")
    assert asking.peak_mib(812, tmp_path) == 2.0
    assert asking.peak_mib(1, tmp_path) is None
    seen = Seen(True, pid=812)
    asking.measure(seen, CARD, 400.0, answers(apps=f"812, {UUID}, 512\n"))
    assert (seen.driver_mib, seen.card_grew_mib) == (512.0, 500.0)
    hidden = Seen(True, pid=812)
    asking.measure(hidden, CARD, 400.0, answers(apps=f"812, {UUID}, [N/A]\n"))
    assert (hidden.driver_mib, hidden.card_grew_mib) == (None, 500.0)


def blamed(first: str, guilty: set[str], *, asked: bool = True) -> dict[str, str]:
    def attempt(without: Sequence[str]) -> str:
        return "" if guilty <= set(without) else "no CUDA"

    return {each.question.partition("/")[2]: each.answer for each in sandbox.blame(first, attempt, asked)}


def test_the_sandbox_is_answered_by_directive() -> None:
    assert set(blamed("", set()).values()) == {"yes"}
    assert set(blamed("", set(), asked=False).values()) == {"not-asked"}
    found = blamed("no CUDA", {"PrivateUsers=yes"})
    assert [name for name, answer in found.items() if answer == "no"] == ["PrivateUsers=yes"]
    assert set(blamed("no model", {"something else"}).values()) == {"not-asked"}
    assert set(found) == set(UNPROVEN_ON_GPU)


def test_the_unit_is_the_rendered_one_less_what_is_left_out(tmp_path: Path, tiny: Path) -> None:
    made = prepared(tmp_path, tiny, CARD)
    place = serve.Place(Path("/srv/gpu-check"), Path("/srv/gpu-check/opt/current"))
    service = made.wanted.services[0]
    whole = serve.unit_text(place, made, service).splitlines()
    for directive in UNPROVEN_ON_GPU:
        left = serve.unit_text(place, made, service, (directive,)).splitlines()
        gone = [line for line in whole if line not in left]
        assert gone, directive
        assert set(gone) <= set(serve.lines_of(directive))
    assert "DynamicUser=yes" in whole
    assert "SupplementaryGroups=video" in whole
    assert not [line for line in whole if "/opt/llamarig" in line or "/etc/llamarig" in line]
    assert "    --model /srv/gpu-check/models/smol/tiny.gguf \\" in whole


def test_a_release_of_the_host_itself_keeps_its_place() -> None:
    place = serve.Place(Path("/srv/gpu-check"), Path("/opt/llamarig/releases/x"))
    assert place.here("/opt/llamarig/current/bin/llama-server") == "/opt/llamarig/releases/x/bin/llama-server"
    assert place.here("/opt/llamarig/libexec/start-probe") == "/srv/gpu-check/opt/libexec/start-probe"


def test_power_is_asked_in_the_sandbox_of_its_unit_and_sets_nothing() -> None:
    command = sandbox.power_command()
    assert "--property=CapabilityBoundingSet=CAP_SYS_ADMIN" in command
    assert command[-3:] == ["-q", "-d", "POWER"]


def test_the_report_has_a_schema_that_is_written_down(tmp_path: Path, tiny: Path) -> None:
    made = prepared(tmp_path, tiny, CARD)
    seen = seen_as_planned(made, project.MTP)
    verdicts = list(judge.service(made, project.MTP, seen, UUID, drafts=True))
    machine = Machine(system="debian 13", kernel="6", cores=2, ram_mib=1.0, systemd=True)
    engine = Engine(
        backend="cuda", commit="c", build_number=1, architecture="89-real", toolkit="13.0.88", built_seconds=None
    )
    figures = judge.service_report(made.plan, project.MTP, ("x",), seen)
    report = Report(
        llamarig="0",
        machine=machine,
        card=main.card_report(CARD),
        engine=engine,
        services={project.MTP: figures},
        verdicts=verdicts,
        seconds=1.0,
    )
    assert Report.model_validate_json(report.text()) == report
    assert figures.planned_mib["card"]["kv-cache"] == 4.0
    assert not report.differs
    report.verdicts.append(judge.verdict("x", False, ""))
    assert report.differs
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), "run `python -m scripts.gpu_check.report`"


def test_a_card_that_the_catalog_lacks_is_planned_as_its_neighbour() -> None:
    odd = smi.cards(answers(CARDS.replace("GeForce RTX 4090", "RTX Odd")))[0]
    name, known, exact = project.planned_as(odd)
    assert (exact, known.compute_capability) == (False, "8.9")
    assert project.planned_as(CARD)[0] == "rtx-4090"
    assert name
    nobody = smi.cards(answers(CARDS.replace("GeForce RTX 4090", "RTX Odd").replace("8.9", "1.0")))[0]
    with pytest.raises(CannotAskError, match=r"compute capability 1\.0"):
        project.planned_as(nobody)


@pytest.mark.parametrize(("driver", "answer"), [("580.95.05", "yes"), ("550.163.01", "no")])
def test_an_old_driver_for_the_toolkit_is_a_no(driver: str, answer: str) -> None:
    card = smi.cards(answers(CARDS.replace("580.95.05", driver)))[0]
    assert main.driver_verdict(card, Compiler(Path("/x"), "13.0.88")).answer == answer
    assert main.driver_verdict(card, None).answer == "not-asked"
