"""A stand-in of NVIDIA's driver that is a real kernel module: small, built by real dkms, and driving nothing.

It bears the name, the version and the file in /proc by which the loaded driver is told; that is all it has of it.
"""

from __future__ import annotations

from tests.support.driver_repository import StandIn, set_of

_DKMS = """PACKAGE_NAME="nvidia"
PACKAGE_VERSION="{version}"
BUILT_MODULE_NAME[0]="nvidia"
DEST_MODULE_LOCATION[0]="/kernel/drivers/video"
BUILT_MODULE_NAME[1]="nvidia-uvm"
DEST_MODULE_LOCATION[1]="/kernel/drivers/video"
MAKE[0]="make -C ${{kernel_source_dir}} M=${{dkms_tree}}/nvidia/{version}/build modules"
CLEAN="true"
AUTOINSTALL="yes"
"""
_MAKEFILE = "obj-m := nvidia.o nvidia-uvm.o\n"
_NVIDIA = """/* A stand-in of llamarig's tests: no driver is in it. */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

static int told(struct seq_file *file, void *unused)
{{
	seq_puts(file, "NVRM version: Open Kernel Module stand-in {version}\\n");
	return 0;
}}

static int __init begin(void)
{{{fault}
	proc_mkdir("driver/nvidia", NULL);
	proc_create_single("driver/nvidia/version", 0444, NULL, told);
	return 0;
}}

static void __exit end(void)
{{
	remove_proc_subtree("driver/nvidia", NULL);
}}

module_init(begin);
module_exit(end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("stand-in of llamarig's tests");
MODULE_VERSION("{version}");
"""
_UVM = """/* A stand-in of llamarig's tests: no driver is in it. */
#include <linux/module.h>
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("stand-in of llamarig's tests");
MODULE_VERSION("{version}");
"""
_AFTER = """#!/bin/sh
set -e
# What dh_dkms puts into a package's postinst.
/usr/lib/dkms/common.postinst nvidia {version} "" "" "$2"
"""


def with_module(version: str, *, revision: int = 1, broken: bool = False) -> list[StandIn]:
    """What NVIDIA's repository offers of a version, the open module last, as source that dkms builds.

    ``broken``: for no kernel, since it calls a function of the kernel's wrongly.
    """
    base = f"usr/src/nvidia-{version}"
    texts = {"dkms.conf": _DKMS, "Makefile": _MAKEFILE, "nvidia.c": _NVIDIA, "nvidia-uvm.c": _UVM}
    fault = "\n\tremove_proc_subtree();" if broken else ""
    files = {f"{base}/{name}": text.format(version=version, fault=fault) for name, text in texts.items()}
    module = StandIn(
        "nvidia-kernel-open-dkms",
        f"{version}-{revision}",
        f"Depends: dkms, firmware-nvidia-gsp (= {version}-1)\nConflicts: nvidia-kernel-dkms\n",
        files,
        _AFTER.format(version=version),
    )
    return [each for each in set_of(version) if each.name != module.name] + [module]
