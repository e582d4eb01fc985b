"""Every check has a twin here: one planted difference, and exactly that check is red.

A check that stands on the broken one is red as blocked; nothing else changes colour.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llamarig.prove.evaluate import SERVICE_RULES
from llamarig.prove.host import RULES as HOST_RULES
from tests.support.proof.cases import UUID, Case, cpu_case, cuda_case

Plant = Callable[[Case], object]


def stop(case: Case) -> None:
    case.unit.update({"active": "failed", "sub": "failed", "main-pid": 0})


def replace_library(case: Case) -> None:
    mapped = case.process["mapped"]
    path = next(path for path in mapped if "libllama.so" in path)
    mapped[path] = "d" * 64


def other_release(case: Case) -> None:
    case.process["exe"] = case.process["exe"].replace("000000000001", "000000000002")


def library_of_another_release(case: Case) -> None:
    mapped = case.process["mapped"]
    path = next(path for path in mapped if "libllama.so" in path)
    mapped[path.replace("000000000001", "000000000002")] = mapped.pop(path)


def swap_model(case: Case) -> None:
    next(iter(case.observed["models"].values()))["sha256"] = "e" * 64


def cut_model(case: Case) -> None:
    next(iter(case.observed["models"].values()))["size"] -= 1


def move_link(case: Case) -> None:
    case.observed["links"] = dict.fromkeys(case.observed["links"], "../sha256/other")


def replaced_while_running(case: Case) -> None:
    case.said["mapped"]["models"][0]["inode"] += 1


def model_deleted_while_running(case: Case) -> None:
    case.said["mapped"]["models"][0]["deleted"] = True


def second_owner(case: Case) -> None:
    case.observed["ports"]["127.0.0.1:18080"].append({"pid": 999, "command": "nc"})


def stranger(case: Case) -> None:
    case.observed["ports"]["127.0.0.1:18080"] = [{"pid": 999, "command": "nc"}]


def socket_of_another(case: Case) -> None:
    case.said["owner"] = {"pid": 0, "ours": False, "why": "a socket there is not the unit's own"}


def release_edited(case: Case) -> None:
    case.release["files"]["bin/llama-server"]["sha256"] = "f" * 64


def release_file_missing(case: Case) -> None:
    del case.release["files"]["bin/llama-server"]


def open_server(case: Case) -> None:
    case.said["open"]["status"] = 200


def any_key_will_do(case: Case) -> None:
    case.said["wrong-key"]["status"] = 200


def own_key_refused(case: Case) -> None:
    case.said["props"] = {"status": 401, "json": {}}


def key_withheld(case: Case) -> None:
    case.said["withheld"] = "the key file is gone"


def set_said(what: str, key: str, value: object) -> Plant:
    return lambda case: case.said[what]["json"].__setitem__(key, value)


def speculate(case: Case) -> None:
    for slot in case.said["slots"]["json"]:
        slot["speculative"] = True


def narrow_slot(case: Case) -> None:
    case.said["slots"]["json"][1]["n_ctx"] = 1024


def lose_slot(case: Case) -> None:
    case.said["slots"]["json"].pop()


def set_process(**values: object) -> Plant:
    return lambda case: case.process.update({key.replace("_", "-"): value for key, value in values.items()})


def argument(case: Case) -> None:
    case.process["argv"] = ["8192" if word == "4096" else word for word in case.process["argv"]]


UNIT_FILE = "/etc/systemd/system/llama-chat.service"


def planned_file(sha256: str | None) -> Plant:
    """The unit is planned with a content; what lies there has ``sha256``, or nothing does."""

    def plant(case: Case) -> None:
        case.wanted["files"] = [{"path": UNIT_FILE, "sha256": "1" * 64, "restarts": ["chat"]}]
        case.observed["files"] = {
            UNIT_FILE: {"type": "absent"} if sha256 is None else {"type": "file", "sha256": sha256}
        }

    return plant


CPU: list[tuple[str, Plant]] = [
    ("chat/files", planned_file("2" * 64)),
    ("chat/files", planned_file(None)),
    ("chat/files", lambda case: case.unit.update({"fragment": "/run/systemd/system/llama-chat.service"})),
    ("chat/files", lambda case: case.unit.update({"drop-ins": [f"{UNIT_FILE}.d/x.conf"]})),
    ("host/current", lambda case: case.observed.__setitem__("current", "releases/4df29be4f-000000000002")),
    ("host/release", release_edited),
    ("host/release", release_file_missing),
    ("chat/unit", stop),
    ("chat/unit", lambda case: case.unit.update({"enabled": "disabled"})),
    ("chat/unit", lambda case: case.unit.update({"need-reload": True})),
    ("chat/restarts", lambda case: case.unit.update({"restarts": 2})),
    ("chat/user", set_process(user="root")),
    ("chat/executable", set_process(exe_sha256="d" * 64)),
    ("chat/executable", set_process(deleted=True)),
    ("chat/executable", other_release),
    ("chat/libraries", replace_library),
    ("chat/libraries", library_of_another_release),
    ("chat/libraries", lambda case: case.said["mapped"].update(outside=["/tmp/evil.so"])),
    ("chat/arguments", argument),
    ("chat/arguments", lambda case: case.process["argv"].append("--tools")),
    ("chat/environment", set_process(environment={"GGML_CUDA_FORCE_MMQ": "1"})),
    ("chat/port", second_owner),
    ("chat/port", stranger),
    ("chat/port", socket_of_another),
    ("chat/model", swap_model),
    ("chat/model", cut_model),
    ("chat/model", move_link),
    ("chat/model", replaced_while_running),
    ("chat/model", model_deleted_while_running),
    ("chat/health", lambda case: case.said.update(health={"status": 503, "json": {}})),
    ("chat/health", lambda case: case.said.update(health={"error": "timed out"})),
    ("chat/key", open_server),
    ("chat/key", any_key_will_do),
    ("chat/key", own_key_refused),
    ("chat/key", key_withheld),
    ("chat/build", set_said("props", "build_info", "b10454-4df29be4f")),
    ("chat/context", set_said("props", "n_ctx", 4096)),
    ("chat/context", narrow_slot),
    ("chat/slots", set_said("props", "total_slots", 4)),
    ("chat/slots", lose_slot),
    ("chat/modalities", set_said("props", "modalities", {"vision": True})),
    ("chat/modalities", lambda case: case.service.update(modalities=["text", "vision"])),
    ("chat/served-model", set_said("props", "model_path", "/other.gguf")),
    ("chat/served-model", lambda case: case.service.update(alias="qwen")),
    ("chat/completion", set_said("completion", "text", "  ")),
    ("chat/completion", lambda case: case.said.update(completion={"error": "no whole answer within 120 s"})),
    ("chat/completion", lambda case: case.said["completion"].update(status=500)),
    ("chat/speculation", speculate),
    ("chat/metrics", lambda case: case.said.update(metrics={"status": 501, "json": {}})),
]


def no_memory_on_the_card(case: Case) -> None:
    case.probed["vram"]["processes"] = []


def too_little_memory(case: Case) -> None:
    case.probed["vram"]["processes"][0]["mib"] = 899.0


def other_card(case: Case) -> None:
    case.probed["vram"]["processes"][0]["uuid"] = "GPU-of-another-service"


def cards_swapped(case: Case) -> None:
    """The projector's 90 MiB on the planned card, and everything else on the one that was meant for it."""
    held = case.probed["vram"]["processes"]
    held[0]["mib"] = 90.0
    held.append({"pid": case.pid, "uuid": "GPU-of-the-projector", "mib": 900.0})


def half_offloaded(case: Case) -> None:
    case.said["journal"]["lines"][0] = "load_tensors: offloaded 15/31 layers to GPU"


def weights_on_the_cpu(case: Case) -> None:
    case.said["journal"]["lines"] = ["load_tensors:   CPU_Mapped model buffer size =   850.00 MiB"]


def no_gpu_found(case: Case) -> None:
    case.said["journal"]["lines"].append("warning: no usable GPU found, --gpu-layers option will be ignored")


def only_loaded(case: Case) -> None:
    """libcuda and the device files alone: true of a server whose weights are all in RAM."""
    case.said["journal"]["lines"] = []
    case.probed["vram"] = {"processes": [], "error": "nvidia-smi is not there"}


def only_one_card_account(case: Case) -> None:
    case.process.update(devices=[])


def projector_on_cpu(case: Case) -> None:
    case.service["modalities"] = ["text", "vision"]
    case.said["props"]["json"]["modalities"] = {"vision": True}
    case.said["journal"]["lines"].append("clip_ctx: CLIP using CPU backend")


def projector_on_another_card(case: Case) -> None:
    projector_on_cpu(case)
    case.service["environment"]["MTMD_BACKEND_DEVICE"] = "CUDA1"
    case.process["environment"]["MTMD_BACKEND_DEVICE"] = "CUDA1"
    case.said["journal"]["lines"][-1] = "clip_ctx: CLIP using CUDA0 backend"


def drafts(drafted: int, accepted: int) -> Plant:
    def plant(case: Case) -> None:
        case.service["speculative"] = True
        for argv in (case.service["argv"], case.process["argv"]):
            argv += ["--spec-type", "draft-mtp"]
        speculate(case)
        case.said["completion"]["json"]["timings"].update(draft_n=drafted, draft_n_accepted=accepted)

    return plant


def not_speculating(case: Case) -> None:
    drafts(32, 20)(case)
    case.said["slots"]["json"][0]["speculative"] = False


CUDA: list[tuple[str, Plant]] = [
    ("chat/gpu", set_process(libcuda=False)),
    ("chat/gpu", only_one_card_account),
    ("chat/gpu", no_memory_on_the_card),
    ("chat/gpu", too_little_memory),
    ("chat/gpu", other_card),
    ("chat/gpu", cards_swapped),
    ("chat/gpu", half_offloaded),
    ("chat/gpu", weights_on_the_cpu),
    ("chat/gpu", no_gpu_found),
    ("chat/gpu", only_loaded),
    ("chat/projector", projector_on_cpu),
    ("chat/projector", projector_on_another_card),
    ("chat/speculation", drafts(0, 0)),
    ("chat/speculation", drafts(40, 0)),
    ("chat/speculation", not_speculating),
    ("chat/environment", set_process(environment={})),
    ("chat/environment", set_process(environment={"CUDA_VISIBLE_DEVICES": "0"})),
    (
        "chat/libraries",
        lambda case: (
            case.process["mapped"].popitem()
            and case.process["mapped"].update(
                {"/opt/llamarig/releases/4df29be4f-000000000001/lib/libggml-cuda.so.0.20.0": "9" * 64}
            )
        ),
    ),
]


def assert_exactly(case: Case, name: str) -> None:
    red = [check for check in case.judge().values() if not check.ok]
    assert [check.name for check in red if check.blocked_by is None] == [name]
    assert {check.blocked_by for check in red} <= {None, name}


@pytest.mark.parametrize(("name", "plant"), CPU, ids=[f"{at}-{name}" for at, (name, _) in enumerate(CPU)])
def test_planted_on_a_cpu_host(name: str, plant: Plant) -> None:
    case = cpu_case()
    plant(case)
    assert_exactly(case, name)


@pytest.mark.parametrize(("name", "plant"), CUDA, ids=[f"{at}-{name}" for at, (name, _) in enumerate(CUDA)])
def test_planted_on_a_cuda_host(name: str, plant: Plant) -> None:
    case = cuda_case()
    plant(case)
    assert_exactly(case, name)


def test_every_check_has_a_twin() -> None:
    made = {f"chat/{rule.name}" for rule in SERVICE_RULES} | {f"host/{rule.name}" for rule in HOST_RULES}
    assert {name for name, _ in CPU + CUDA} == made


def test_every_check_is_in_the_reference() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "checks.md").read_text()
    proof, of_memory = page.split("\n## Of memory\n")
    listed = {line.split("`")[1] for line in proof.splitlines() if line.startswith("| `")}
    assert "verify --memory" in of_memory
    assert listed == {rule.name for rule in SERVICE_RULES} | {f"host/{rule.name}" for rule in HOST_RULES}


def test_planned_files_as_planned_are_fine() -> None:
    case = cpu_case()
    planned_file("1" * 64)(case)
    case.unit["drop-ins"] = []
    assert case.judge()["chat/files"].ok


def test_two_proofs_without_contradiction_are_enough() -> None:
    """The engine prints its lines only at a higher verbosity, and before the first apply no UUID is pinned."""
    case = cuda_case()
    case.said["journal"]["lines"] = []
    case.service["gpu_uuid"] = None
    assert case.judge()["chat/gpu"].ok


def test_a_projector_on_another_card_counts_for_the_plan() -> None:
    case = cuda_case()
    held = case.probed["vram"]["processes"]
    held[0]["mib"] = 880.0
    held.append({"pid": case.pid, "uuid": "GPU-of-the-projector", "mib": 90.0})
    assert case.judge()["chat/gpu"].ok


def split_case() -> Case:
    case = cuda_case()
    for argv in (case.service["argv"], case.process["argv"]):
        argv.extend(("--device", "CUDA0,CUDA1"))
    visible = {"CUDA_VISIBLE_DEVICES": f"{case.service['gpu_uuid']},GPU-of-the-second"}
    case.service["environment"] = visible
    case.process["environment"] = dict(visible)
    case.probed["vram"]["processes"][0]["mib"] = 300.0
    return case


def test_a_model_split_over_two_cards_may_have_most_on_the_second() -> None:
    case = split_case()
    case.probed["vram"]["processes"].append({"pid": case.pid, "uuid": "GPU-of-the-second", "mib": 690.0})
    assert case.judge()["chat/gpu"].ok


def test_a_model_split_over_two_cards_is_on_both() -> None:
    case = split_case()
    case.probed["vram"]["processes"][0]["mib"] = 990.0
    found = case.judge()["chat/gpu"]
    assert not found.ok
    assert "none of it on GPU-of-the-second" in found.detail


def test_partial_offload_is_fine_when_planned() -> None:
    case = cuda_case()
    for argv in (case.service["argv"], case.process["argv"]):
        argv += ["--n-gpu-layers", "15"]
    half_offloaded(case)
    assert all(check.ok for check in case.judge().values())


def test_a_stopped_unit_blocks_what_stands_on_it() -> None:
    case = cuda_case()
    stop(case)
    checks = case.judge()
    assert checks["chat/completion"].blocked_by == "chat/unit"
    assert checks["chat/gpu"].blocked_by == "chat/unit"
    assert "not checked" in checks["chat/gpu"].detail
    assert UUID not in checks["chat/gpu"].detail
