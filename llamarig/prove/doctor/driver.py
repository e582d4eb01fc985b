"""The driver: module, library, kernels, flavour, signatures and device nodes.

Field reports: llama.cpp and driver issue trackers, named beside each rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from llamarig.catalog import gpus
from llamarig.catalog.pci_ids import generation_of
from llamarig.prove.doctor.bundle import NOT_THERE, Bundle
from llamarig.prove.doctor.diagnosis import Diagnosis
from llamarig.prove.hostile import mapping, show, text

_VERSION = re.compile(r"\b(\d{3,4}\.\d{1,3}(?:\.\d{1,3})?)\b")
_LIBRARY = re.compile(
    r"^.i\S*\s+(?:libnvidia-compute\S*|libcuda1\S*|nvidia-utils\S*|nvidia-driver-cuda) (\S+)$", re.MULTILINE
)
_DKMS = re.compile(
    r"^(?P<name>nvidia[\w.-]*)[/,] ?(?P<version>[\w.~+-]+), (?P<kernel>[^,]+),.*: (?P<state>\w+)", re.MULTILINE
)


def module_version(bundle: Bundle) -> str:
    """Version of the module that is loaded, empty when none is."""
    return bundle.text("module-version").strip()


def mismatch(bundle: Bundle) -> Iterator[Diagnosis]:
    """The loaded module is of another version than the library (an upgrade without a reboot)."""
    said = bundle.text("nvidia-smi") + bundle.text("kernel-log")
    loaded = module_version(bundle)
    packaged = {found.partition("-")[0].rpartition(":")[2] for found in _LIBRARY.findall(bundle.text("packages"))}
    versions = {version for version in packaged if _VERSION.fullmatch(version)}
    apart = loaded and versions and loaded not in versions
    if "version mismatch" in said.lower() or "API mismatch" in said or apart:
        libraries = ", ".join(sorted(versions)) or "another one"
        yield Diagnosis(
            "driver-version-mismatch",
            "error",
            f"the loaded module is {show(loaded, 40) or 'of another version'}, the libraries are {show(libraries, 80)}",
            "the driver's packages were upgraded while the old module went on running, often by unattended upgrades",
            "reboot when the host is idle; hold the driver's packages and exclude them from unattended upgrades",
            _line(said, "mismatch"),
        )


def not_loaded(bundle: Bundle) -> Iterator[Diagnosis]:
    """No module is loaded although there are cards."""
    if not bundle.links or module_version(bundle) or "nvidia " in bundle.text("modules"):
        return
    kernel = next((each for each in bundle.kernels if each.version == bundle.kernel), None)
    if kernel is not None and kernel.modules:
        cause = "it is built for the running kernel, and was not loaded: see the kernel's log"
    elif kernel is not None:
        cause = f"there is no NVIDIA module for the running kernel {show(bundle.kernel, 60)}"
    else:
        cause = "no driver is installed, or its module was not built"
    yield Diagnosis(
        "module-not-loaded",
        "error",
        "the NVIDIA kernel module is not loaded",
        cause,
        "`modprobe nvidia` says why not; build it for this kernel (`dkms autoinstall`), then reboot",
        _line(bundle.text("kernel-log"), "nvidia"),
    )


def kernels_without_module(bundle: Bundle) -> Iterator[Diagnosis]:
    """A kernel that could boot next has no module (NVIDIA/open-gpu-kernel-modules issues 441 and 1272)."""
    if not any(kernel.modules for kernel in bundle.kernels) and not bundle.text("dkms-status").strip():
        return
    states = {match["kernel"]: match for match in _DKMS.finditer(bundle.text("dkms-status"))}
    for kernel in bundle.kernels:
        state = states.get(kernel.version)
        if kernel.modules and (state is None or state["state"] == "installed"):
            continue
        why = "its headers are not installed" if not kernel.headers else "building the module for it failed"
        package = f"linux-headers-{kernel.version}"
        yield Diagnosis(
            "kernel-without-module",
            "error" if kernel.version == bundle.kernel else "warning",
            f"kernel {show(kernel.version, 60)} has no NVIDIA module; a boot into it has no card",
            why,
            f"install {show(package, 80)} and run `dkms autoinstall -k {show(kernel.version, 60)}`; do not reboot "
            "before every bootable kernel says `installed`",
            show(state[0], 200) if state is not None else "",
        )


def flavour(bundle: Bundle) -> Iterator[Diagnosis]:
    """Blackwell needs the open module, what is older than Turing the proprietary one (open-gpu-kernel-modules 872)."""
    kernel = next((each for each in bundle.kernels if each.version == bundle.kernel), None)
    told = bundle.text("driver-version")
    license_ = kernel.info.get("license", "") if kernel is not None else ""
    if "Open Kernel Module" in told or "MIT" in license_:
        has = "open"
    elif told or license_.upper().startswith("NVIDIA"):
        has = "proprietary"
    else:
        return
    for link in bundle.links:
        known = generation_of(link.device)
        generation = gpus.generations().get(known or "")
        if generation is not None and has not in generation.flavours:
            yield Diagnosis(
                "wrong-flavour",
                "error",
                f"the card at {show(link.bus_id, 20)} ({known}) needs the {' or '.join(generation.flavours)} module, "
                f"and the {has} one is there",
                "the same version exists in two flavours, and the wrong one finds no card or hangs",
                f"install the {generation.flavours[0]} flavour of the same version (driver.flavour in the spec)",
                show(license_ or told, 120),
            )


def nouveau(bundle: Bundle) -> Iterator[Diagnosis]:
    """The free driver took the card first (ansible-role-nvidia-driver issue 44)."""
    held = [link for link in bundle.links if link.driver in ("nouveau", "nova_core", "nova-core")]
    if held or "Kernel driver in use: nouveau" in bundle.text("lspci"):
        where = ", ".join(show(link.bus_id, 20) for link in held) or "a card"
        yield Diagnosis(
            "nouveau-bound",
            "error",
            f"nouveau drives {where}",
            "it is not blacklisted, or an initramfs from before the blacklist loads it",
            "blacklist nouveau, run `update-initramfs -u -k all`, reboot",
            _line(bundle.text("lspci"), "nouveau"),
        )


def unsigned(bundle: Bundle) -> Iterator[Diagnosis]:
    """Secure Boot refuses a module whose key is not enrolled."""
    if "SecureBoot enabled" not in bundle.text("secure-boot"):
        return
    log = bundle.text("kernel-log")
    refused = _line(log, "Loading of unsigned") or _line(log, "Key was rejected") or _line(log, "Lockdown: modprobe")
    kernel = next((each for each in bundle.kernels if each.version == bundle.kernel), None)
    key = kernel.info.get("sig_key", "") if kernel is not None else ""
    enrolled = re.sub(r"[^0-9a-f]", "", bundle.text("enrolled-keys").lower())
    unknown = bool(key) and bool(enrolled) and re.sub(r"[^0-9a-f]", "", key.lower()) not in enrolled
    if refused or unknown or (kernel is not None and kernel.info and not key):
        yield Diagnosis(
            "module-key-not-enrolled",
            "error",
            "Secure Boot is on, and the NVIDIA module's signature is not accepted" + ("" if key else ": it has none"),
            "the module was signed with a key that this machine's firmware does not know (dkms and shim-signed keep "
            "theirs in different places)",
            "`mokutil --import` the key of dkms, reboot and enrol it at the console, once; or turn Secure Boot off",
            refused or show(key, 120),
        )


def device_nodes(bundle: Bundle) -> Iterator[Diagnosis]:
    """uvm's nodes are made lazily, and a sandboxed service cannot make them."""
    if not module_version(bundle):
        return
    missing = [node for node in ("/dev/nvidiactl", "/dev/nvidia-uvm") if node not in bundle.nodes]
    if not any(re.fullmatch(r"/dev/nvidia\d+", node) for node in bundle.nodes):
        missing.append("/dev/nvidia0")
    if missing:
        yield Diagnosis(
            "device-nodes-missing",
            "error",
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there, so CUDA finds no card",
            "nvidia-uvm is loaded, and its nodes are made, by the first privileged program that asks; a hardened "
            "service is none",
            "load nvidia-uvm at boot (/etc/modules-load.d) and run `nvidia-modprobe -u -c 0` before the services",
            show(", ".join(bundle.nodes[:8]), 200),
        )


def no_library(bundle: Bundle) -> Iterator[Diagnosis]:
    """The module is there, and libcuda is not: the half of a driver."""
    if module_version(bundle) and bundle.status("libraries") == 0 and "libcuda.so.1" not in bundle.text("libraries"):
        yield Diagnosis(
            "libcuda-missing",
            "error",
            "libcuda.so.1 is not installed",
            "only the kernel's half of the driver is there, or the packages for computing were left out",
            "install the driver's CUDA libraries of exactly the module's version",
            f"module {show(module_version(bundle), 40)}",
        )


def from_run_file(bundle: Bundle) -> Iterator[Diagnosis]:
    """A driver that no package owns."""
    if not module_version(bundle) or bundle.status("packages") == NOT_THERE:
        return
    owned = re.search(r"^.i\S*\s+\S*nvidia-(?:driver|kernel|open)\S* ", bundle.text("packages"), re.MULTILINE)
    if owned is None:
        yield Diagnosis(
            "driver-from-run-file",
            "warning",
            f"driver {show(module_version(bundle), 40)} is loaded, and no package owns it",
            "it was installed by NVIDIA's .run file, which kernel updates do not know",
            "`nvidia-uninstall`, then install the driver from packages of the wanted version",
            _line(bundle.text("driver-version"), "NVRM"),
        )


def reboot_in_vain(bundle: Bundle) -> Iterator[Diagnosis]:
    """A reboot that llamarig made did not bring its kernel or module (field cases 49 and 54)."""
    try:
        note = mapping({"note": json.loads(bundle.text("reboot-note"))}, "note")
    except (ValueError, RecursionError):
        return
    kernel, module, before = text(note, "kernel"), text(note, "module").partition(" ")[0], text(note, "boot-id")
    if not kernel or not before or before == bundle.text("boot-id").strip():
        return
    lacks = [f"kernel {show(bundle.kernel, 60)} runs instead of {show(kernel, 60)}"] if bundle.kernel != kernel else []
    if bundle.links and module_version(bundle) != module:
        loaded = show(module_version(bundle), 40)
        lacks.append(f"module {loaded} is loaded" if loaded else "no module is loaded")
        lacks[-1] += f" instead of {show(module, 40)}"
    if lacks:
        yield Diagnosis(
            "reboot-in-vain",
            "error",
            f"a reboot was made at {show(text(note, 'at'), 40)}, and {', '.join(lacks)}",
            "the new kernel did not come up and the former one was booted again, or the module cannot be loaded",
            "see `journalctl --list-boots` and `journalctl -k -b N` of the boots since; mend the cause, or remove that "
            "kernel, and remove /var/lib/llamarig/reboot.json: `llamarig rebuild` tries the same no third time",
            "",
        )


def _line(text: str, word: str) -> str:
    """The first line with a word in it, for evidence."""
    found = next((line for line in text.splitlines() if word.lower() in line.lower()), "")
    return show(found.strip(), 200)


RULES = (
    mismatch,
    not_loaded,
    kernels_without_module,
    flavour,
    nouveau,
    unsigned,
    device_nodes,
    no_library,
    from_run_file,
    reboot_in_vain,
)
