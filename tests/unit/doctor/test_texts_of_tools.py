"""What apt, dpkg, dkms, modprobe, the kernel, CUDA and a build say when they fail; and what only looks like it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llamarig.catalog.error_texts import error_texts
from llamarig.prove.doctor import examine, examine_text
from llamarig.prove.doctor.bundle import read_bundle
from tests.support.doctor_bundles import bundle
from tests.support.driver_cases import MAKE_LOG

DOCS = Path(__file__).resolve().parents[3] / "docs"

# Composed in the tools' own words, with names and versions of ours put in. Where read: each entry's `source`.
SAID = {
    # kmod and systemd-modules-load: strerror(EKEYREJECTED) behind their own words; the kernel's notice beside it.
    "could not insert 'nvidia': Key was rejected by service": "module-signature-refused",
    "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service": "module-signature-refused",
    "modules-load[6]: Failed to insert module 'nvidia': Key was rejected by service": "module-signature-refused",
    "[    7.1] Loading of module with unavailable key is rejected": "module-signature-refused",
    "Loading of unsigned module is rejected": "module-signature-refused",
    "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.12.118": "module-not-for-this-kernel",
    "modprobe: FATAL: Module nvidia-uvm not found in directory /lib/modules/6.12.118": "module-not-for-this-kernel",
    # The notice as older drivers end the line, and as those of 2025 do.
    "NVRM: API mismatch: the client has the version 610.57.04, but\nNVRM: this kernel module has the version 610.43": (
        "module-of-another-version"
    ),
    "NVRM: API mismatch: the client 'llama-server' (pid 1005)\nNVRM: has the version 610.57.04, but this kernel": (
        "module-of-another-version"
    ),
    "Error! Your kernel headers for kernel 6.12.118 cannot be found at /lib/modules/6.12.118/build": (
        "kernel-headers-missing"
    ),
    "Error! Bad return status for module build on kernel: 6.12.118 (x86_64)": "dkms-build-failed",
    "dpkg: error processing package nvidia-open-kernel-dkms (--configure):": "package-script-failed",
    MAKE_LOG: "driver-too-old-for-kernel",
    # GCC with the quotation marks of a UTF-8 locale, and the longer form of GCC 15.
    "nv-pci.c:237:9: error: too few arguments to function \u2018pci_resize_resource\u2019": "driver-too-old-for-kernel",
    "nv-pci.c:240:9: error: too few arguments to function 'pci_resize_resource'; expected 4, have 3": (
        "driver-too-old-for-kernel"
    ),
    "CUDA error: the provided PTX was compiled with an unsupported toolchain.\n  current device: 0": (
        "ptx-newer-than-driver"
    ),
    # apt's `E:` lines, alone and behind the name of a unit in a journal.
    "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.": "dpkg-interrupted",
    "apt-daily[812]: E: dpkg was interrupted, you must manually run 'dpkg --configure -a'": "dpkg-interrupted",
    "E: Package 'x' has no installation candidate": "package-not-offered",
    "E: Unable to locate package nvidia-open": "package-not-offered",
    "E: Version '610.57.04-1' for 'nvidia-open' was not found": "package-version-not-found",
    # scripts/ui-assets.cmake, in the forms of May 2026 and of later commits.
    '-- UI: failed to download index.html from version: "Timeout was reached"': "interface-not-fetched",
    "-- UI: npm install failed (1)\n--   stderr: npm error code EAI_AGAIN": "interface-not-fetched",
    '-- UI: download dist.tar.gz from latest failed: "Could not resolve hostname"\n-- UI: HF download failed': (
        "interface-not-fetched"
    ),
    "Failed to initialize NVML: Unknown Error": "container-lost-gpu",
}


@pytest.mark.parametrize("text", SAID)
def test_what_a_tool_says_is_known(text: str) -> None:
    assert [each.code for each in examine_text(text)] == [SAID[text]]


# Composed: lines near to those above, which mean something else or nothing.
NEAR = {
    "mount error(129): Key was rejected by service": "text-not-known",
    "modprobe: ERROR: could not insert 'nvidia': No such device": "text-not-known",
    "modprobe: FATAL: Module nouveau not found in directory /lib/modules/6.12.118": "text-not-known",
    "Failed to initialize NVML: Driver/library version mismatch": "smi-mismatch",
    "REST: API mismatch: the client has the version 2, the server 1": "text-not-known",
    "nv-pci.c:237:9: error: too few arguments to function 'drm_fb_helper_prepare'": "text-not-known",
    "CUDA error: the launch timed out and was terminated": "cuda-error",
    "E: The repository 'file:/srv x' does not have a Release file.": "text-not-known",
    "apt.systemd.daily[7]: E: Sub-process returned a code": "text-not-known",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  610.57.04": "no-error-in-text",
    "Loading of module nvidia is done": "no-error-in-text",
    "nvidia/610.57.04, 6.12.118, x86_64: installed": "no-error-in-text",
    "dpkg: warning: files list file for package 'x' is empty": "no-error-in-text",
    "Selected version '610.57.04-1' (NVIDIA:13/trixie [amd64]) for 'nvidia-open'": "no-error-in-text",
    "They must be configured using dpkg --configure or the configure menu option in dselect": "no-error-in-text",
    "  Candidate: 610.57.04-1": "no-error-in-text",
    "compiling PTX with the toolchain of CUDA 13": "no-error-in-text",
    "-- UI: npm build succeeded": "no-error-in-text",
    "drive E: is mounted": "no-error-in-text",
    "note: the word Key: was taken by the service": "no-error-in-text",
}


@pytest.mark.parametrize("text", NEAR)
def test_what_is_near_to_it_is_not_taken_for_it(text: str) -> None:
    assert [each.code for each in examine_text(text)] == [NEAR[text]]


def test_a_module_that_does_not_compile_is_told_by_its_cause_alone() -> None:
    log = "\n".join([
        MAKE_LOG,
        error_texts()["dkms-build-failed"].example,
        "Consult /var/lib/dkms/nvidia-current-open/550.163.01/build/make.log for more information.",
        error_texts()["package-script-failed"].example,
    ])  # fmt: skip
    assert [each.code for each in examine_text(log)] == ["driver-too-old-for-kernel"]
    without = log.replace(MAKE_LOG, "")
    assert [each.code for each in examine_text(without)] == ["dkms-build-failed", "package-script-failed"]


def test_a_package_audit_is_no_interrupted_dpkg() -> None:
    """`dpkg --audit` in its own words names packages halfway, which is another diagnosis."""
    said = (
        "The following packages are only half configured, probably due to problems\nconfiguring them the first time.\n"
    )
    assert {each.code for each in examine(read_bundle(bundle(dpkg_audit=said)))} == {"packages-half-installed"}


def test_a_diagnosis_names_the_page_that_tells_more() -> None:
    (found,) = examine_text(error_texts()["module-signature-refused"].example)
    assert found.fix.endswith("(docs/how-to/install-the-driver.md#secure-boot)")
    (without,) = examine_text(error_texts()["port-in-use"].example)
    assert "docs/" not in without.fix


def test_the_pages_that_are_named_are_there() -> None:
    pages = {known.page for known in error_texts().values() if known.page}
    assert len(pages) > 3
    for page in pages:
        path, _, heading = page.partition("#")
        text = (DOCS / path).read_text(encoding="utf-8")
        headings = {
            re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in re.findall(r"^#+ (.+)$", text, re.M)
        }
        assert not heading or heading in headings, page
