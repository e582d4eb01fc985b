"""The NVIDIA driver: packages, what keeps them, a module for every kernel that could boot, and what really runs."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any

from llamarig.compare.act import absence, ownership
from llamarig.compare.action import Action
from llamarig.compare.driver_left import driver_left
from llamarig.compare.text import printable, short_hash
from llamarig.compare.view import View, as_map, as_text, as_texts
from llamarig.render.driver import SOURCE
from llamarig.render.wanted import WantedDriver

RUN_FILE = "run-file"
REBOOT = "reboot"
SECURE_BOOT = "secure-boot"
PERSISTENCE = "nvidia-persistenced.service"


def upstream_version(version: str) -> str:
    """``610.57.04`` of a package's ``1:610.57.04-1``: without epoch and revision."""
    return version.rpartition(":")[2].partition("-")[0]


def is_module(name: str) -> bool:
    """Whether a package is the one that dkms builds the module from: it alone is held to a revision."""
    return "dkms" in name


def revision_of(version: str) -> str:
    """``2`` of ``1:550.163.01-2``."""
    return version.rpartition("-")[2]


def driver(view: View) -> Iterator[Action]:
    """Everything in which the host's driver differs from the one that is wanted."""
    wanted = view.wanted.driver
    if wanted is None:
        yield from driver_left(view)
        return
    seen = view.part("driver")
    if seen.get("run-file") is True:
        yield Action(
            "driver",
            RUN_FILE,
            f"driver {printable(seen.get('loaded')) or 'of NVIDIA'} is there and no package owns it: a .run file",
            expected="packages",
            observed="a .run file",
        )
        return
    yield from _packages(wanted, seen)
    yield from _files(wanted, seen)
    yield from _kernels(wanted, seen)
    if seen.get("enabled") is not True:
        yield Action("driver", wanted.unit, "does not start at boot", expected="enabled", observed="not enabled")
    if seen.get("persistence-masked") is True:
        why = "is masked, so the driver forgets limits and state whenever nobody uses a card"
        yield Action("driver", PERSISTENCE, why, expected="not masked", observed="masked")
    yield from _signature(seen)
    yield from _running(view, wanted, seen)


def stuck(view: View) -> list[str]:
    """What no apply can mend: a driver that came as a .run file."""
    if view.wanted.driver is None or view.part("driver").get("run-file") is not True:
        return []
    return [
        "the host has an NVIDIA driver from a .run file, which packages would overwrite only in part\n"
        "fix: run `nvidia-uninstall` on the host, reboot it, then apply again; nothing was touched"
    ]


def without_module(wanted: WantedDriver, seen: Mapping[str, Any]) -> dict[str, str]:
    """Kernel that could boot -> why it has no module of the wanted version. A reboot is safe when there is none."""
    found: dict[str, str] = {}
    for kernel, entry in as_map(seen.get("kernels")).items():
        states = as_map(as_map(entry).get("dkms"))
        ours = [state for module, state in states.items() if module.rpartition("/")[2] == wanted.version]
        if "installed" in ours:
            continue
        if as_map(entry).get("headers") is not True:
            found[kernel] = f"the headers of kernel {printable(kernel)} are not installed, so it has no module"
        elif ours:
            found[kernel] = f"the module for kernel {printable(kernel)} is only {printable(ours[0])}"
        else:
            found[kernel] = f"there is no module {wanted.version} for kernel {printable(kernel)}"
    return found


def _is_own(wanted: WantedDriver, name: str) -> bool:
    plain = name.partition(":")[0]
    return any(fnmatch.fnmatchcase(plain, each) for each in wanted.own) and not any(
        fnmatch.fnmatchcase(plain, each) for each in wanted.apart
    )


def _packages(wanted: WantedDriver, seen: Mapping[str, Any]) -> Iterator[Action]:
    there = as_map(seen.get("packages"))
    for name in wanted.packages:
        if name not in there:
            yield Action("driver", name, "is not installed", expected=wanted.version, observed="absent")
    for name, entry in sorted(there.items(), key=lambda pair: str(pair[0])):
        reason = _package_wrong(wanted, name, as_map(entry))
        if reason:
            yield Action(
                "driver",
                name,
                reason,
                expected="absent" if "flavour" in reason or "list" in reason else wanted.version,
                observed=printable(as_map(entry).get("version")),
            )


def _package_wrong(wanted: WantedDriver, name: str, entry: Mapping[str, Any]) -> str:
    plain, version = name.partition(":")[0], as_text(entry.get("version")) or ""
    if plain in wanted.other:
        other = "proprietary" if wanted.flavour == "open" else "open"
        return f"{name} is of the {other} flavour, wanted {wanted.flavour}"
    if plain in wanted.stale_packages:
        return f"{name} brings a list and key of its own for the same repository"
    if plain not in wanted.packages and not _is_own(wanted, name):
        return ""
    if entry.get("state") != "installed":
        return f"{name} is {printable(entry.get('state'))}: dpkg has not finished with it"
    if other := _version_wrong(wanted, plain, version):
        return f"{name} is {other}"
    return "" if entry.get("held") is True else f"{name} is not held, so that an upgrade may part it from the others"


def _version_wrong(wanted: WantedDriver, plain: str, version: str) -> str:
    """Which other version, or revision of the module, a package is; empty when it is the wanted one."""
    if upstream_version(version) != wanted.version:
        return f"{printable(upstream_version(version))}, wanted {wanted.version}"
    if wanted.revision and is_module(plain) and revision_of(version) != wanted.revision:
        return f"of revision {printable(revision_of(version))}, wanted {wanted.revision}"
    return ""


def _files(wanted: WantedDriver, seen: Mapping[str, Any]) -> Iterator[Action]:
    files = as_map(seen.get("files"))
    for file in wanted.files:
        entry = as_map(files.get(file.path))
        missing = absence(entry, "file")
        wrong = missing or ("differs from what the spec renders" if entry.get("sha256") != file.sha256 else "")
        wrong = wrong or "; ".join(ownership(entry, file.mode, file.owner, file.group))
        if wrong:
            yield Action(
                "driver",
                file.path,
                wrong,
                expected=short_hash(file.sha256),
                observed="absent" if missing else short_hash(entry.get("sha256")),
            )
    for path in as_texts(seen.get("stale")):
        if path in wanted.stale:
            why = "a list or key of another form, with which apt refuses the one that is wanted"
            why = "the list of a repository from which no driver is wanted any more" if path == SOURCE else why
            yield Action("driver", path, why, expected="absent", observed="a file")


def _kernels(wanted: WantedDriver, seen: Mapping[str, Any]) -> Iterator[Action]:
    if not as_map(seen.get("kernels")):
        yield Action(
            "driver",
            "kernel",
            "no kernel lies in /boot, so nobody can say which one would boot",
            expected="a kernel in /boot",
            observed="none",
        )
    for kernel in as_texts(seen.get("initramfs")):
        yield Action(
            "driver",
            f"initramfs {printable(kernel)}",
            f"the initramfs of kernel {printable(kernel)} is older than the list that keeps nouveau out",
            expected="newer",
            observed="older",
        )
    for flavour, entry in sorted(as_map(seen.get("flavours")).items()):
        if as_map(entry).get("headers") is not True:
            yield Action(
                "driver",
                f"linux-headers-{printable(flavour)}",
                f"linux-image-{printable(flavour)} brings new kernels, and nothing brings the headers with which their "
                "module is built",
                expected="installed",
                observed="absent",
            )
    for kernel, why in without_module(wanted, seen).items():
        yield Action("driver", f"kernel {kernel}", why, expected="installed", observed="not installed")


def _signature(seen: Mapping[str, Any]) -> Iterator[Action]:
    state = seen.get("signing-key")
    if seen.get("secure-boot") is True and state != "enrolled":
        told = {
            "pending": "its enrolment waits to be confirmed at the console",
            "absent": "dkms has made none yet",
        }.get(str(state), "the firmware does not know it")
        certificate = as_text(seen.get("signing-certificate")) or ""
        named = f", {printable(certificate)}" if certificate else ""
        yield Action(
            "driver",
            SECURE_BOOT,
            f"Secure Boot is on and takes no module without the key of dkms{named}: {told}",
            expected="enrolled",
            observed=printable(state),
        )


def _running(view: View, wanted: WantedDriver, seen: Mapping[str, Any]) -> Iterator[Action]:
    """The module that runs is another than the one that is installed; only where there is a card to drive."""
    loaded, cards = as_text(seen.get("loaded")) or "", view.observed.get("gpus")
    if loaded == wanted.version and (seen.get("open") is True) == (wanted.flavour == "open"):
        return
    if not loaded and not (isinstance(cards, list) and cards):
        return
    if as_texts(seen.get("nouveau")):
        now = "a free driver holds the cards"
    elif not loaded:
        now = "no NVIDIA module is loaded"
    else:
        now = f"module {printable(loaded)}{' (open)' if seen.get('open') is True else ''} is loaded"
    yield Action(
        "driver", REBOOT, f"{now}, wanted {wanted.version}", expected=wanted.version, observed=loaded or "not loaded"
    )
