"""Each case of the field reports that a tool's output can show has its machine here, and is the only thing found."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from llamarig.prove.doctor import examine
from llamarig.prove.doctor.bundle import read_bundle
from llamarig.prove.doctor.diagnosis import Diagnosis
from tests.support.doctor_bundles import (
    ADA,
    HEALTHY,
    KERNEL,
    OLDER,
    PASCAL,
    bundle,
    without_driver,
)

Change = Callable[[], dict[str, Any]]


def found(document: dict[str, Any], limits: dict[str, float] | None = None) -> dict[str, Diagnosis]:
    return {each.code: each for each in examine(read_bundle(document), limits)}


def test_nothing_is_wrong_with_a_healthy_machine() -> None:
    assert found(HEALTHY, {"01:00.0": 450.0}) == {}


def changed(**top: Any) -> dict[str, Any]:
    made = copy.deepcopy(HEALTHY)
    made.update(top)
    return made


def card(**changes: str) -> dict[str, Any]:
    return changed(links=[{**HEALTHY["links"][0], **changes}])


def kernel(version: str, **changes: Any) -> dict[str, Any]:
    return {**HEALTHY["kernels"][0], "version": version, **changes}


def upgraded() -> dict[str, Any]:
    """Case 54: libraries of the next version, the old module still loaded (pando85/homelab pull 4110)."""
    packages = "ii  nvidia-open 570.133.07-1\nii  libnvidia-compute 570.133.07-1\n"
    return bundle(module_version="570.124.06", packages=packages)


def smi_mismatch() -> dict[str, Any]:
    return bundle(
        nvidia_smi="Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.133"
    )


def next_kernel_without_module() -> dict[str, Any]:
    """Case 49: the module is only added for the newer kernel (open-gpu-kernel-modules issue 1272)."""
    made = bundle(
        uname=OLDER,
        dkms_status=f"nvidia/610.57.04, {OLDER}, x86_64: installed\nnvidia/610.57.04, {KERNEL}, x86_64: added\n",
    )
    made["kernels"] = [kernel(OLDER), kernel(KERNEL, modules=[], info={})]
    return made


def headers_missing() -> dict[str, Any]:
    """Case 50: only the older kernel's headers are there."""
    made = bundle(dkms_status=f"nvidia/610.57.04, {OLDER}, x86_64: installed\n")
    made["kernels"] = [kernel(OLDER), kernel(KERNEL, modules=[], info={}, headers=False)]
    return made


def proprietary_on_blackwell() -> dict[str, Any]:
    """Case 47: same version, wrong flavour (open-gpu-kernel-modules issue 872)."""
    made = bundle(driver_version="NVRM version: NVIDIA UNIX x86_64 Kernel Module  610.57.04\n")
    made["kernels"] = [kernel(KERNEL, info={"license": "NVIDIA", "sig_key": "AA"})]
    return made


def open_on_pascal() -> dict[str, Any]:
    """The other way round (negativo17/nvidia-driver issue 158)."""
    return card(device=PASCAL)


def free_driver() -> dict[str, Any]:
    """Case 53: nouveau has the card (ansible-role-nvidia-driver issue 44)."""
    made = card(driver="nouveau")
    made["parts"]["lspci"] = {"status": 0, "text": "01:00.0 VGA\n\tKernel driver in use: nouveau\n"}
    return made


def key_not_enrolled() -> dict[str, Any]:
    """Case 52: Secure Boot, and the module's key is not in the firmware (realtek-r8126-dkms issue 3)."""
    return bundle(secure_boot="SecureBoot enabled\n", enrolled_keys="SHA1 Fingerprint: 11:22:33:44\n")


def uvm_missing() -> dict[str, Any]:
    """Case 18: no uvm node at boot (enroot issue 106)."""
    return changed(nodes=["/dev/nvidia0", "/dev/nvidiactl"])


def half_a_driver() -> dict[str, Any]:
    """Case 3: no libcuda (ProxmoxVED issue 2124)."""
    return bundle(libraries="\tlibnvidia-ml.so.1 => /lib/libnvidia-ml.so.1")


def run_file() -> dict[str, Any]:
    return bundle(packages="ii  cuda-keyring 1.1-1\n")


def fell_off_the_bus() -> dict[str, Any]:
    """Case 44 (open-gpu-kernel-modules issue 900)."""
    line = "NVRM: Xid (PCI:0000:01:00): 79, pid=1234, name=llama-server, GPU has fallen off the bus."
    return bundle(kernel_log=f"[ 9000.1] {line}\n[ 9000.2] {line}")


def narrow_link() -> dict[str, Any]:
    """Case 44: four lanes of sixteen (open-gpu-kernel-modules issue 1010)."""
    return card(current_link_width="4")


def persistence_off() -> dict[str, Any]:
    """Case 22 (nvidia-persistenced issue 2)."""
    return bundle(nvidia_smi_cards=HEALTHY["parts"]["nvidia-smi-cards"]["text"].replace("Enabled", "Disabled"))


def thermal() -> dict[str, Any]:
    """Case 45 (ollama issue 13552)."""
    return bundle(nvidia_smi_throttle="uuid, clocks_event_reasons.sw_thermal_slowdown\nGPU-a, Active\n")


def compositor() -> dict[str, Any]:
    """Case 38: a display server of 2.9 GiB (egl-wayland issue 126)."""
    heading = "pid, process_name, gpu_uuid, used_gpu_memory [MiB]"
    return bundle(nvidia_smi_processes=f"{heading}\n9, /usr/bin/Xwayland, GPU-a, 2970\n")


def suspended() -> dict[str, Any]:
    """Case 46 (ollama issue 5464)."""
    return bundle(kernel_log="[ 800.0] PM: suspend exit")


def halfway() -> dict[str, Any]:
    """A kernel module that does not build leaves dpkg halfway (seen with 550.163.01 on 6.12.117)."""
    text = "The following packages are only half configured:\n nvidia-open-kernel-dkms\n"
    return bundle(dpkg_audit=text)


def two_branches() -> dict[str, Any]:
    """Case 55 (ansible-role-nvidia-driver issue 33)."""
    added = "ii  libnvidia-cfg1 580.95.05-1\n"
    return bundle(packages=HEALTHY["parts"]["packages"]["text"] + added)


def out_of_memory() -> dict[str, Any]:
    """Case 33 (ollama issue 18264)."""
    return bundle(kernel_log="[ 99.0] Out of memory: Killed process 812 (llama-server)")


def restarting() -> dict[str, Any]:
    """Case 27 (spark-vllm-docker issue 257)."""
    return bundle(units="Id=llama-chat.service\nActiveState=active\nResult=exit-code\nNRestarts=40\n")


def cpu_fallback() -> dict[str, Any]:
    """Case 20 (llama.cpp issue 27923)."""
    return bundle(server_log="warning: no usable GPU found, --gpu-layers option will be ignored")


def rebooted_in_vain() -> dict[str, Any]:
    """Case 49 after a reboot: the new kernel hung, the power was cut, and the former one runs."""
    note = {"schema": 1, "at": "2026-12-01T02:00:00Z", "boot-id": "a", "kernel": NEXT, "module": "610.57.04 open"}
    return bundle(reboot_note=json.dumps(note), boot_id="b\n")


NEXT = "6.12.120+deb13-amd64"
CASES: dict[Change, set[str]] = {
    upgraded: {"driver-version-mismatch"},
    smi_mismatch: {"driver-version-mismatch", "smi-mismatch"},
    next_kernel_without_module: {"kernel-without-module"},
    headers_missing: {"kernel-without-module"},
    proprietary_on_blackwell: {"wrong-flavour"},
    open_on_pascal: {"wrong-flavour"},
    free_driver: {"nouveau-bound"},
    key_not_enrolled: {"module-key-not-enrolled"},
    uvm_missing: {"device-nodes-missing"},
    half_a_driver: {"libcuda-missing"},
    run_file: {"driver-from-run-file"},
    fell_off_the_bus: {"xid"},
    narrow_link: {"link-narrow"},
    persistence_off: {"persistence-off"},
    thermal: {"throttled"},
    compositor: {"foreign-vram"},
    suspended: {"was-suspended"},
    halfway: {"packages-half-installed"},
    two_branches: {"driver-branches-mixed"},
    out_of_memory: {"killed-for-memory"},
    restarting: {"service-fails"},
    cpu_fallback: {"no-usable-gpu"},
    rebooted_in_vain: {"reboot-in-vain"},
}


@pytest.mark.parametrize(("change", "codes"), CASES.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_a_case_is_found_and_nothing_else(change: Change, codes: set[str]) -> None:
    diagnoses = found(change(), {"01:00.0": 450.0})
    assert set(diagnoses) == codes
    for each in diagnoses.values():
        assert each.what
        assert each.cause
        assert each.fix


def test_a_lost_power_limit_is_found_by_the_spec_alone() -> None:
    assert set(found(HEALTHY, {"01:00.0": 400.0})) == {"power-limit-lost"}
    assert found(HEALTHY, {"02:00.0": 400.0}) == {}


def test_a_machine_without_module_is_told_the_next_step() -> None:
    diagnoses = found(without_driver())
    assert set(diagnoses) == {"module-not-loaded"}
    assert "it is built" in diagnoses["module-not-loaded"].cause
    made = without_driver(dkms_status="")
    made["kernels"] = [kernel(KERNEL, modules=[], info={})]
    assert "no NVIDIA module for the running kernel" in found(made)["module-not-loaded"].cause


def test_the_running_kernel_is_an_error_and_another_one_a_warning() -> None:
    assert found(next_kernel_without_module())["kernel-without-module"].severity == "warning"
    assert found(headers_missing())["kernel-without-module"].severity == "error"
    assert "headers are not installed" in found(headers_missing())["kernel-without-module"].cause


@pytest.mark.parametrize(("restarts", "codes"), [("40", {"service-fails"}), ("²", set()), ("", set()), ("-9", set())])
def test_restarts_are_counted_in_plain_digits(restarts: str, codes: set[str]) -> None:
    unit = f"Id=llama-chat.service\nActiveState=active\nResult=exit-code\nNRestarts={restarts}\n"
    assert set(found(bundle(units=unit))) == codes


def test_how_often_an_xid_came_and_what_to_do() -> None:
    xid = found(fell_off_the_bus())["xid"]
    assert "Xid 79" in xid.what
    assert "2 times" in xid.what
    assert "power" in xid.fix


def test_a_cpu_machine_has_no_card_to_complain_of() -> None:
    made = without_driver(dkms_status="", packages="", libraries="")
    made["links"] = []
    made["kernels"] = [kernel(KERNEL, modules=[], info={})]
    made["parts"]["nvidia-smi"] = {"status": 127, "text": "nvidia-smi is not there"}
    assert found(made) == {}


def test_an_ada_card_takes_both_flavours() -> None:
    assert found(card(device=ADA)) == {}


def test_the_worst_comes_first() -> None:
    made = fell_off_the_bus()
    made["parts"]["dpkg-audit"]["text"] = ""
    made["links"][0]["current_link_width"] = "1"
    severities = [each.severity for each in examine(read_bundle(made))]
    assert severities == ["error", "warning"]


def test_a_reboot_in_vain_says_what_it_did_not_bring() -> None:
    assert f"kernel {KERNEL} runs instead of {NEXT}" in found(rebooted_in_vain())["reboot-in-vain"].what
    note = json.dumps({"boot-id": "a", "kernel": KERNEL, "module": "610.57.04 open"})
    unloaded = found(without_driver(reboot_note=note, boot_id="b"))
    assert "no module is loaded instead of 610.57.04" in unloaded["reboot-in-vain"].what
    assert "reboot-in-vain" not in found(without_driver(reboot_note=note, boot_id="a"))
    assert found(bundle(reboot_note=note, boot_id="b")) == {}


@pytest.mark.parametrize("note", ["", "[]", "7", "{", '{"kernel": 7, "boot-id": "a"}', "[" * 5000])
def test_what_is_no_note_of_a_reboot_says_nothing(note: str) -> None:
    assert found(bundle(reboot_note=note, boot_id="b")) == {}
