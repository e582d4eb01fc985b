"""A host that is as planned is green; hostile documents end in red checks, never in an exception."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamarig.prove import Check, evaluate, probe_services
from tests.support.proof.cases import Case, cpu_case, cuda_case

SERVICE_CHECKS = [
    "unit",
    "files",
    "restarts",
    "user",
    "executable",
    "libraries",
    "arguments",
    "environment",
    "port",
    "model",
    "health",
    "key",
    "build",
    "context",
    "slots",
    "modalities",
    "served-model",
    "completion",
    "speculation",
    "metrics",
]


def names(case: Case) -> list[str]:
    return list(case.judge())


def test_recorded_cpu_host_is_green_in_every_check() -> None:
    checks = cpu_case().judge()
    assert [check for check in checks.values() if not check.ok] == []
    assert list(checks) == ["host/current", "host/release", *(f"chat/{name}" for name in SERVICE_CHECKS)]


def test_composed_cuda_host_is_green_and_says_which_proofs_hold() -> None:
    checks = cuda_case().judge()
    assert [check for check in checks.values() if not check.ok] == []
    gpu = checks["chat/gpu"].detail
    assert gpu.startswith("4 of 4 proofs")
    assert "libcuda" in gpu
    assert "/dev/nvidia0" in gpu
    assert "31 of 31 layers" in gpu
    assert "985 MiB, planned 1000" in gpu


def test_a_projector_that_the_plan_leaves_to_the_cpu_is_not_looked_for_on_a_card() -> None:
    case = cuda_case()
    case.service["modalities"] = ["text", "vision"]
    assert "chat/projector" in case.judge()
    case.service["argv"] = [*case.service["argv"], "--no-mmproj-offload"]
    assert "chat/projector" not in case.judge()


def test_recorded_cpu_server_is_red_where_the_plan_says_cuda() -> None:
    """The documents of a real CPU server with /health 200, judged under a plan for a card."""
    case = cpu_case()
    case.wanted["release"]["backend"] = "cuda"
    case.service.update(backend="cuda", gpu_uuid=None, vram_mib=300.0)
    checks = case.judge()
    assert checks["chat/health"].ok
    assert checks["chat/completion"].ok
    assert not checks["chat/gpu"].ok
    assert "libcuda is not mapped" in checks["chat/gpu"].detail
    assert "0 MiB of weights on the GPU" in checks["chat/gpu"].detail


@pytest.mark.parametrize(
    ("again", "ago", "before", "holds"),
    [
        (1, 5, None, True),
        (2, 86400, None, True),
        (2, 5, None, False),
        (11, 86400, None, False),
        (3, 86400, {"restarts": 3, "main-pid": 0}, True),
        (1, 5, {"restarts": 0, "main-pid": 1}, False),
        (1, 5, {"restarts": 1, "main-pid": 1}, False),
        (1, 5, {}, False),
    ],
)
def test_restarts_count_of_late_or_within_the_run(
    again: int, ago: float, before: dict[str, int] | None, holds: bool
) -> None:
    case = cpu_case()
    case.unit["restarts"] = again
    case.unit["started"] = case.observed["time"] - ago
    known = None
    if before is not None:
        pid = case.unit["main-pid"]
        known = {case.service["unit"]: {**before, "main-pid": before.get("main-pid") or pid} if before else {}}
    checks = {check.name: check for check in evaluate(case.wanted, case.observed, case.probed, known)}
    assert checks["chat/restarts"].ok is holds, checks["chat/restarts"].detail


def test_json_form_is_the_documented_one() -> None:
    check = Check("chat/context", ok=False, detail="why", blocked_by="chat/health")
    assert check.to_json() == {"name": "chat/context", "ok": False, "detail": "why", "blocked-by": "chat/health"}


def test_probe_list_holds_the_key_file_only_of_a_keyed_service() -> None:
    case = cuda_case()
    (service,) = probe_services(case.wanted)
    assert service["key_file"] == "/etc/llamarig/keys/chat.keys"
    assert service["gpu"] is True
    assert service["release"] == "/opt/llamarig/releases/4df29be4f-000000000001"
    case.service["keyed"] = False
    assert probe_services(case.wanted)[0]["key_file"] == ""


def test_nothing_observed_is_red_and_names_the_first_cause() -> None:
    case = cpu_case()
    checks = evaluate(case.wanted, {}, {})
    assert not any(check.ok for check in checks)
    blocked = {check.blocked_by for check in checks if check.blocked_by}
    assert blocked == {"chat/unit"}


def test_observed_text_is_made_printable() -> None:
    case = cpu_case()
    case.said["props"]["json"]["build_info"] = "b1\x1b[31m\u202egpj\n" + "x" * 5000
    detail = case.judge()["chat/build"].detail
    assert detail.isprintable()
    assert "\\x1b[31m\\u202egpj\\n" in detail
    assert len(detail) < 400


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    found = [path] if path else []
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, item in entries:
        found += places(item, (*path, key))
    return found


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_observed_value_raises(data: st.DataObject) -> None:
    case = copy.deepcopy(CUDA)
    document = data.draw(st.sampled_from(["observed", "probed"]))
    *path, last = data.draw(st.sampled_from(PLACES[document]))
    target = getattr(case, document)
    for key in path:
        target = target[key]
    target[last] = data.draw(JSON)
    checks = evaluate(case.wanted, case.observed, case.probed)
    assert all(check.detail.isprintable() and len(check.detail) < 5000 for check in checks)


CUDA = cuda_case()
PLACES = {"observed": places(CUDA.observed), "probed": places(CUDA.probed)}
