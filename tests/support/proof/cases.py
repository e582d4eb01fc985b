"""Whole proofs to judge: one recorded on a CPU host, and one for a CUDA host composed from it."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llamarig.prove import Check, evaluate

UUID = "GPU-5d1f2f0a-6d0c-4b6e-9a55-0123456789ab"
LIB = "lib/libggml-cuda.so.0.20.0"


@dataclass
class Case:
    """The three documents that a proof reads."""

    wanted: dict[str, Any]
    observed: dict[str, Any]
    probed: dict[str, Any]

    @property
    def service(self) -> dict[str, Any]:
        found: dict[str, Any] = self.wanted["services"][0]
        return found

    @property
    def unit(self) -> dict[str, Any]:
        found: dict[str, Any] = self.observed["units"]["llama-chat.service"]
        return found

    @property
    def process(self) -> dict[str, Any]:
        return next(iter(self.observed["processes"].values()))

    @property
    def release(self) -> dict[str, Any]:
        return next(iter(self.observed["releases"].values()))

    @property
    def said(self) -> dict[str, Any]:
        found: dict[str, Any] = self.probed["services"]["chat"]
        return found

    @property
    def pid(self) -> int:
        return int(self.unit["main-pid"])

    def judge(self) -> dict[str, Check]:
        return {check.name: check for check in evaluate(self.wanted, self.observed, self.probed)}


def cpu_case() -> Case:
    """As recorded: everything is as planned."""
    data = json.loads(Path(__file__).with_name("cpu.json").read_text())
    return Case(data["wanted"], data["observed"], data["probed"])


def cuda_case() -> Case:
    """Composed: the recorded host, with what a server on an NVIDIA card adds (names and lines as llama.cpp's source and
    nvidia-smi print them)."""
    case = copy.deepcopy(cpu_case())
    case.wanted["release"]["backend"] = "cuda"
    case.service.update(backend="cuda", gpu_uuid=UUID, vram_mib=1000.0, environment={"CUDA_VISIBLE_DEVICES": UUID})
    digest = "c" * 64
    case.release["provenance"]["files"][LIB] = digest
    case.release["files"][LIB] = {"type": "file", "sha256": digest, "mode": "0755", "owner": "root"}
    base = f"/opt/llamarig/releases/{case.wanted['release']['id']}"
    case.process["mapped"][f"{base}/{LIB}"] = digest
    case.process.update(
        libcuda=True,
        devices=["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl"],
        environment={"CUDA_VISIBLE_DEVICES": UUID},
    )
    case.said["journal"]["lines"] = [
        "0.00.100.000 I load_tensors: offloaded 31/31 layers to GPU",
        "0.00.200.000 I load_tensors:        CUDA0 model buffer size =   850.00 MiB",
        "0.00.200.001 I load_tensors:   CPU_Mapped model buffer size =    28.13 MiB",
        "0.00.300.000 I llama_kv_cache:      CUDA0 KV buffer size =    90.00 MiB",
    ]
    case.probed["vram"] = {"processes": [{"pid": case.pid, "uuid": UUID, "mib": 985.0}], "error": ""}
    return case
