"""The largest value that fits: it is planned, and one step more does not fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamarig.catalog.known_files import table
from llamarig.errors import RigError
from llamarig.gguf import Header
from llamarig.plan import Plan, plan_host
from llamarig.plan.host import planned_subject
from llamarig.plan.solve import Solution, solve
from llamarig.plan.stand_in import scaled
from llamarig.spec.host import HostSpec
from tests.support.plan_specs import CPU, REFERENCE, spec
from tests.support.tiny_models import write_qwen35
from tests.unit.plan.test_alternatives import PLAIN, QWEN

ROOT = Path(__file__).resolve().parents[3]
Q4_K_M = 17_106_775_008


def solved(found: HostSpec, what: str, header: Header | None = QWEN, **words: Any) -> Solution:
    return solve(*planned_subject(found, {"qwen": header, "small": PLAIN}), what, **words)


def planned(service: dict[str, Any], header: Header = QWEN, **top: Any) -> Plan:
    return plan_host(spec(REFERENCE, service, **top), {"qwen": header}, with_alternatives=False)


@given(
    kind=st.sampled_from(["f16", "q8_0", "q4_0"]),
    draft=st.sampled_from(["f16", "q8_0", "q4_0"]),
    ubatch=st.sampled_from([64, 128, 256, 512]),
    slots=st.integers(1, 4),
    n_max=st.integers(1, 16),
    unified=st.booleans(),
    reserve=st.integers(0, 6000),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_solved_window_fits_and_one_step_more_does_not(**drawn: Any) -> None:
    service = {
        "accept-margin": None,
        "kv-cache": {"k": drawn["kind"], "v": drawn["kind"]},
        "ubatch": drawn["ubatch"],
        "parallel": drawn["slots"],
        "kv-unified": drawn["unified"],
        "speculation": {"type": "draft-mtp", "n-max": drawn["n_max"], "kv-cache": drawn["draft"]},
        "context": 4096,
    }
    cards = {**REFERENCE["gpus"], "blackwell": {**REFERENCE["gpus"]["blackwell"], "reserve-mib": drawn["reserve"]}}
    solution = solved(spec(REFERENCE, service, gpus=cards), "context")
    if solution.value is None:
        assert not planned({**service, "context": 256}, gpus=cards).fits
        return
    assert isinstance(solution.value, int)
    assert planned({**service, "context": solution.value}, gpus=cards).fits
    if solution.bound.by == "trained-length":
        assert solution.value == 262_144 * (1 if drawn["unified"] else drawn["slots"])
    else:
        assert solution.bound.where == "blackwell"
        assert solution.bound.next == solution.value + 256
        more = planned({**service, "context": solution.bound.next}, gpus=cards)
        assert not more.fits
        short = 512 - more.devices[0].free_mib
        assert solution.bound.short_mib == pytest.approx(short, abs=0.01)


@given(
    what=st.sampled_from(["n-max", "slots", "ubatch"]),
    context=st.integers(16, 960).map(lambda cells: cells * 256),
    reserve=st.integers(0, 5000),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_solved_value_fits_and_the_next_does_not(what: str, context: int, reserve: int) -> None:
    if what == "slots":  # Each number is planned, and so a short window keeps them few.
        context = -(-context // 2048) * 256
    service: dict[str, Any] = {"accept-margin": None, "context": context, "batch": 2048}
    cards = {**REFERENCE["gpus"], "blackwell": {**REFERENCE["gpus"]["blackwell"], "reserve-mib": reserve}}
    solution = solved(spec(REFERENCE, service, gpus=cards), what)

    def with_value(value: Any) -> Plan:
        speculation = {**REFERENCE["services"]["chat"]["speculation"], "n-max": value}
        change = {"n-max": {"speculation": speculation}, "slots": {"parallel": value}, "ubatch": {"ubatch": value}}
        return planned({**service, **change[what]}, gpus=cards)

    if solution.value is not None:
        assert with_value(solution.value).fits
    if solution.bound.next is not None:
        assert not with_value(solution.bound.next).fits
        assert solution.bound.by == "gpu"


def test_a_solved_quant_is_the_largest_known_file_that_fits() -> None:
    found = spec(REFERENCE, {"accept-margin": None, "speculation": None, "context": 131_072})
    solution = solved(found, "quant")
    chosen = solution.change["models"]["qwen"]
    assert plan_host(found, {"qwen": scaled(QWEN, chosen["size"])}).fits
    sizes = sorted(each.size for each in table().of("qwen3.8-27b") if each.size is not None)
    bigger = [size for size in sizes if size > chosen["size"]]
    assert bigger
    assert not plan_host(found, {"qwen": scaled(QWEN, bigger[0])}).fits
    assert str(solution.bound.next).endswith(".gguf")


def test_what_the_model_was_trained_for_bounds_a_card_that_holds_more() -> None:
    solution = solved(spec(REFERENCE, {"kv-cache": {"k": "q4_0", "v": "q4_0"}, "speculation": None}), "context")
    assert (solution.value, solution.bound.by, solution.bound.next) == (262_144, "trained-length", None)


def test_the_spec_s_own_limit_bounds_what_costs_nothing() -> None:
    cpu = spec(CPU, {"context": 65_536}, memory={"total-mib": 500_000})
    found = solve(*planned_subject(cpu, {"small": PLAIN}), "slots")
    assert (found.value, found.bound.by, found.slot_context) == (256, "spec", 256)
    batch = solve(*planned_subject(cpu, {"small": PLAIN}), "ubatch")
    assert (batch.value, batch.bound.by) == (2048, "batch")


def test_ram_bounds_a_host_without_a_card() -> None:
    small = spec(CPU, {"context": 4096}, memory={"total-mib": 2400})
    found = solve(*planned_subject(small, {"small": PLAIN}), "context")
    assert found.bound.by == "ram"
    assert isinstance(found.value, int)


def test_where_nothing_fits_the_answer_says_by_how_much() -> None:
    tiny = {**REFERENCE["gpus"], "blackwell": {**REFERENCE["gpus"]["blackwell"], "reserve-mib": 20_000}}
    found = solved(spec(REFERENCE, {"accept-margin": None}, gpus=tiny), "context")
    assert found.value is None
    assert found.bound.next == 256
    assert found.bound.short_mib > 10_000


def test_an_error_that_memory_does_not_cure_is_named() -> None:
    unknown = {"blackwell": {"model": "no-such-card"}, "ada": REFERENCE["gpus"]["ada"]}
    found = solved(spec(REFERENCE, gpus=unknown), "context")
    assert found.value is None
    assert found.bound.by == "error"
    assert "gpu-unknown" in found.bound.where


@pytest.mark.parametrize(
    ("service", "what", "header", "words"),
    [
        ({}, "windows", QWEN, "nothing can be solved for 'windows'"),
        ({}, "context", None, "not at hand"),
        ({"speculation": None}, "n-max", QWEN, "has no speculation"),
    ],
)
def test_what_cannot_be_solved_is_refused(
    service: dict[str, Any], what: str, header: Header | None, words: str
) -> None:
    with pytest.raises(RigError, match=words):
        solved(spec(REFERENCE, service), what, header)


def test_a_file_that_nobody_knows_has_no_other_quant() -> None:
    models = {"qwen": {**REFERENCE["models"]["qwen"], "size": 17_000_000_000}}
    with pytest.raises(RigError, match="none that the catalog knows"):
        solved(spec(REFERENCE, models=models), "quant")


def test_of_several_services_one_is_named() -> None:
    chat = REFERENCE["services"]["chat"]
    two = spec(REFERENCE, services={"chat": chat, "other": {**chat, "context": 256, "listen": {"port": 1}}})
    with pytest.raises(RigError, match="has 2 services") as refused:
        solved(two, "context")
    assert "--service" in refused.value.fix
    with pytest.raises(RigError, match="no service 'chatt'") as near:
        solved(two, "context", service="chatt")
    assert "chat" in near.value.fix
    assert solved(two, "context", service="other").service == "other"


TINY = """\
schema-version: 1
host: box
os: {distribution: debian, release: "13"}
memory: {total-mib: 2600}
engine:
  commit: 4df29be4f
  build-number: 10454
  source: {sdist: llama_cpp_python==0.3.35, sha256: unlocked}
  backend: cpu
models:
  tiny: {controller-path: tiny.gguf, sha256: unlocked, size: unlocked}
services:
  chat: {model: tiny, context: 4096, listen: {port: 8080}, speculation: {type: draft-mtp}}
"""


def rig(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(ROOT), XDG_CACHE_HOME=str(project / "cache"), COLUMNS="120")
    command = [sys.executable, "-m", "llamarig.cli.main", "-C", str(project), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_the_command_answers_in_words_and_as_json(tmp_path: Path) -> None:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory" / "box.yml").write_text(TINY)
    write_qwen35(tmp_path / "tiny.gguf")
    words = rig(tmp_path, "plan", "box", "--solve", "slots")
    assert words.returncode == 0, words.stderr
    assert "box chat: slots" in words.stdout
    assert "bounded by" in words.stdout
    data = json.loads(rig(tmp_path, "plan", "box", "--solve", "n-max", "--json").stdout)
    assert list(data) == [
        "host", "service", "solve", "value", "now", "change", "free-mib", "slot-context", "bound", "findings",
    ]  # fmt: skip
    assert set(data["bound"]) == {"by", "where", "next", "short-mib"}
    alone = rig(tmp_path, "plan", "box", "--service", "chat")
    assert alone.returncode == 2
    assert "--solve" in alone.stderr
    wrong = rig(tmp_path, "plan", "box", "--solve", "contxt")
    assert wrong.returncode == 2
    assert "use context" in wrong.stderr
