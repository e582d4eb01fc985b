#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Install the NVIDIA driver's packages: resolved and simulated before anything is touched, proven by dkms after."""

from __future__ import annotations

import subprocess
import time
from typing import Any

from ansible.module_utils import rig_apt, rig_make_log, rig_nvidia
from ansible.module_utils import rig_driver_plan as plan_of
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_apt import FailedError

DOCUMENTATION = r"""
---
module: rig_driver
short_description: Resolve, install and prove the packages of the NVIDIA driver
description:
  - C(preflight) reads the index of exactly the wanted source into a state of its own, finds every package and its
    version there, and lets apt simulate the whole transaction. It changes nothing on the host.
  - C(install) removes what is in the way, installs the headers of every kernel that could boot, then all packages in
    one transaction, and holds them.
  - C(build) lets dkms build what is missing, and fails with the compiler's words where that does not succeed.
  - C(initramfs) makes those anew that are older than a file of the driver for modprobe or modules-load.
options:
  operation:
    description: What to do.
    type: str
    required: true
    choices: [preflight, install, build, initramfs]
  driver:
    description: The wanted driver, see docs/contracts.md.
    type: dict
    required: true
  plan:
    description: What C(preflight) has returned, for C(install).
    type: dict
    default: {}
  site:
    description:
      - C(path) and C(content) of each list of the site's mirror. Where there is one, apt reads it and the driver's own
        list, and none of the host's, which may lead to where the site has no way.
    type: list
    elements: dict
    default: []
  lock_timeout:
    description: Seconds to wait for another apt or dpkg.
    type: int
    default: 300
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Resolve the driver's packages before anything is touched
  rig_driver:
    operation: preflight
    driver: "{{ nvidia_driver_wanted }}"
"""

RETURN = r"""
plan:
  description: C(pins) (name=version), C(headers) and C(drop) (packages to remove); all empty when all is in place.
  returned: when operation is preflight
  type: dict
"""


PREFLIGHT_S = 1800
"""For each step of a preflight: it fetches an index, and waits for nobody's lock."""


def others_half_done() -> list[str]:
    """Packages that dpkg has begun and not finished, and that are none of the driver's."""
    return [name for name in rig_nvidia.half_done() if not plan_of.NVIDIAS.match(name)]


def finish_dpkg() -> None:
    """Configure what an interrupted dpkg left of other packages; the driver's own are dealt with by what follows, and a
    module that does not build would only fail again. A dpkg that was killed leaves a journal that apt stops at."""
    if not (others := others_half_done()) and not rig_nvidia.interrupted():
        return
    status, text = rig_apt.call(["dpkg", "--configure", "-a"])
    if status != 0 and (others := others_half_done()):
        raise FailedError(
            f"dpkg cannot finish with {', '.join(others[: plan_of.MOST_NAMED])}:\n{rig_apt.words(text)}\n"
            "fix: mend or remove that package (`dpkg --configure -a` tells the error again), then apply again"
        )


def install(driver: dict[str, Any], plan: dict[str, Any], site: list[dict[str, str]], timeout: int) -> bool:
    """Carry out what preflight has planned; True when anything was installed, removed or held."""
    wait = ["-o", f"DPkg::Lock::Timeout={timeout}"]
    changed = False
    if plan["pins"] or plan["headers"] or plan["drop"]:
        finish_dpkg()
        with plan_of.only(driver, site) as lists:
            options = [*wait, *lists]
            refresh(options, timeout)
            if plan["headers"]:
                _apt(options, plan["headers"], "the headers of the kernels")
            _apt(
                options, [*plan["pins"], *(f"{name}-" for name in plan["drop"])], f"driver {driver['version']}", driver
            )
        changed = True
    unheld = [
        name
        for name, entry in plan_of.there(driver).items()
        if not entry["held"] and (name in driver["packages"] or rig_nvidia.is_own(name, driver["own"], driver["apart"]))
    ]
    if unheld:
        status, text = rig_apt.call(["apt-mark", "hold", "--", *unheld], 120)
        if status != 0:
            raise FailedError(f"the driver's packages cannot be held:\n{rig_apt.words(text)}")
    return changed or bool(unheld)


def refresh(options: list[str], timeout: int) -> None:
    """Fetch the lists anew, waiting while another apt holds them."""
    deadline = time.monotonic() + timeout
    while True:
        status, text = rig_apt.call(["apt-get", "-q", *options, "-o", "APT::Update::Error-Mode=any", "update"])
        if status == 0:
            return
        if "Could not get lock" not in text or time.monotonic() > deadline:
            raise FailedError(f"apt-get update failed ({status}):\n{rig_apt.words(text)}")
        time.sleep(2)


def _apt(options: list[str], asked: list[str], what: str, driver: dict[str, Any] | None = None) -> None:
    if not asked:
        return
    base = ["apt-get", "-q", *options, *plan_of.KEEP, "--allow-change-held-packages"]
    status, text = rig_apt.call([*base, "-s", "install", "--", *asked])
    if status == 0:
        plan_of.judge(
            rig_apt.read_simulation(text),
            [] if driver is None else plan_of.held_by_others(driver),
            rig_nvidia.bootable(),
        )
        status, text = rig_apt.call([*base, "-y", "install", "--", *asked])
    if status != 0:
        built = "" if driver is None else _unbuilt(driver)
        raise FailedError(
            f"installing {what} failed ({status}):\n{rig_apt.words(text)}" + (f"\n{built}" if built else "")
        )


def unbuilt(driver: dict[str, Any]) -> dict[str, list[str]]:
    """Kernel -> what dkms says of its modules, for each that has none of the wanted version installed."""
    found: dict[str, list[str]] = {}
    for kernel in rig_nvidia.bootable():
        states = rig_nvidia.dkms(kernel)
        ours = {module: state for module, state in states.items() if module.rpartition("/")[2] == driver["version"]}
        if "installed" not in ours.values():
            found[kernel] = [f"{module} is only {state}" for module, state in ours.items()] or ["dkms knows no module"]
    return found


def _unbuilt(driver: dict[str, Any]) -> str:
    """A report of every kernel that has no module, with the compiler's words; empty when all have one."""
    parts = []
    for kernel, states in unbuilt(driver).items():
        parts.append(f"kernel {kernel} has no module {driver['version']}: {', '.join(states)}")
        for module in {state.partition(" ")[0] for state in states if "/" in state}:
            parts += [f"  {line}" for line in rig_make_log.why_not_built(module, kernel)]
    if not parts:
        return ""
    parts.append(
        "fix: do not reboot, the kernel named above would come up without a driver; take a version, or the other "
        "flavour, that builds for it, or remove that kernel, then apply again: what is half installed is then replaced"
    )
    return "\n".join(parts)


def build(driver: dict[str, Any]) -> bool:
    """Let dkms build what is missing; True when it had to. Raises FailedError when a kernel stays without."""
    lacking = unbuilt(driver)
    for kernel in lacking:
        rig_apt.call(["dkms", "autoinstall", "-k", kernel])
    if report := _unbuilt(driver):
        raise FailedError(f"not every kernel that could boot has a driver\n{report}")
    return bool(lacking)


def initramfs(driver: dict[str, Any]) -> bool:
    """Make each initramfs anew that is older than what keeps nouveau out; True when there was one."""
    old = rig_nvidia.old_initramfs([file["path"] for file in driver["files"]])
    for kernel in old:
        status, text = rig_apt.call(["update-initramfs", "-u", "-k", kernel])
        if status != 0:
            raise FailedError(f"the initramfs of kernel {kernel} cannot be made anew:\n{rig_apt.words(text)}")
    return bool(old)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "operation": {"type": "str", "required": True, "choices": ["preflight", "install", "build", "initramfs"]},
            "driver": {"type": "dict", "required": True},
            "plan": {"type": "dict", "default": {}},
            "site": {"type": "list", "elements": "dict", "default": []},
            "lock_timeout": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    params: dict[str, Any] = module.params
    driver, site, timeout = params["driver"], params["site"], params["lock_timeout"]
    for name in (*driver["packages"], *driver["other"], *driver["stale_packages"]):
        if not plan_of.NAME.fullmatch(name):
            module.fail_json(msg=f"{name!r} cannot be a package")
    if not plan_of.VERSION.fullmatch(driver["version"]):
        module.fail_json(msg=f"{driver['version']!r} cannot be a version")
    try:
        if params["operation"] == "preflight":
            module.exit_json(changed=False, plan=plan_of.preflight(driver, site, PREFLIGHT_S))
        if module.check_mode:
            module.exit_json(changed=True)
        if params["operation"] == "install":
            module.exit_json(changed=install(driver, params["plan"], site, timeout))
        module.exit_json(changed=initramfs(driver) if params["operation"] == "initramfs" else build(driver))
    except (FailedError, OSError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
