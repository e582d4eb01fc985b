"""What an installation of the NVIDIA driver would do, found out before anything is touched: each package and version in
the index of exactly its source, and the whole transaction as apt simulates it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible.module_utils import rig_apt, rig_nvidia
from ansible.module_utils.rig_apt import FailedError

NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
VERSION = re.compile(r"[0-9A-Za-z.+:~-]+")
NVIDIAS = re.compile(r"^(lib)?nvidia|^libcuda|^libnv|^cuda|^firmware-nvidia|^xserver-xorg-video-nvidia|^libxnvctrl")
KEEP = ["-o", "Dpkg::Options::=--force-confold", "--no-install-recommends", "--allow-downgrades"]
SOURCES = "/etc/apt/sources.list.d"
LISTS = "/var/lib/apt/lists"
PREFERENCES = "/etc/apt/preferences.d"
STATE = "/var/lib"
MOST_NAMED = 8
WISHED = ("nvidia-persistenced",)
"""Taken along where the source has them at the wanted version: without persistence a card forgets its limits. Whether
NVIDIA's own packages bring it differs by branch, so its absence is no error."""


def upstream(version: str) -> str:
    """``610.57.04`` of ``1:610.57.04-1``."""
    return version.rpartition(":")[2].partition("-")[0]


def is_module(name: str) -> bool:
    """Whether a package is the one that dkms builds the module from: it must have the revision that is wanted."""
    return "dkms" in name


def of_revision(driver: dict[str, Any], version: str) -> bool:
    """Whether a package's version has the revision that is wanted; any has where none is."""
    return driver.get("revision", "") in ("", version.rpartition("-")[2])


def there(driver: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The driver's packages on the host."""
    named = [*driver["packages"], *driver["other"], *driver["stale_packages"]]
    return rig_nvidia.packages(named, driver["own"], driver["apart"])


def packages_wrong(driver: dict[str, Any], seen: dict[str, dict[str, Any]]) -> bool:
    """Whether apt has anything to do."""
    for name in driver["packages"]:
        if name not in seen:
            return True
    for name, entry in seen.items():
        own = name in driver["packages"] or rig_nvidia.is_own(name, driver["own"], driver["apart"])
        if name in driver["other"] or name in driver["stale_packages"]:
            return True
        if own and (entry["state"] != "installed" or upstream(entry["version"]) != driver["version"]):
            return True
        if own and is_module(name) and not of_revision(driver, entry["version"]):
            return True
    return False


def missing_headers(kernels: dict[str, dict[str, Any]]) -> list[str]:
    """The header package of each kernel that has none."""
    return [f"linux-headers-{kernel}" for kernel, entry in kernels.items() if not entry["headers"]]


def missing_metapackages(flavours: dict[str, dict[str, Any]]) -> dict[str, str]:
    """What brings the headers of the kernels to come, where something brings such kernels and nothing their headers ->
    the version of what brings the kernels."""
    return {f"linux-headers-{name}": entry["version"] for name, entry in flavours.items() if not entry["headers"]}


def resolve_metapackages(missing: dict[str, str], index: rig_apt.Index) -> list[str]:
    """Each as apt is asked for it: at the version of the kernels', so that no headers of an absent kernel come along;
    where no source has that any more, as it is offered. Raises FailedError where one is offered by none."""
    if lacking := [name for name in missing if name not in index]:
        images = ", ".join(name.replace("headers", "image") for name in lacking)
        raise FailedError(
            f"no package source offers {', '.join(lacking)}, without which the next kernel comes without its module\n"
            "fix: complete the host's package sources (at a site with a mirror: what `llamarig mirror` collects), "
            f"or remove {images}, so that no kernel comes; nothing was touched"
        )
    return [
        f"{name}={version}" if any(each.version == version for each in index[name]) else name
        for name, version in missing.items()
    ]


def resolve(driver: dict[str, Any], index: rig_apt.Index, where: str) -> dict[str, str]:
    """Each package that is installed by name, and those of the same version that it depends on -> exact version.

    Raises FailedError when one is not there in that version, with what is there.
    """
    pins: dict[str, str] = {}
    missing: list[str] = []
    queue = [*driver["packages"], *(name for name in WISHED if rig_nvidia.is_own(name, driver["own"], driver["apart"]))]
    while queue:
        name = queue.pop(0)
        if name in pins:
            continue
        fitting = [each for each in index.get(name, []) if upstream(each.version) == driver["version"]]
        exact = [each for each in fitting if of_revision(driver, each.version)]
        # Debian's nvidia-persistenced, say, comes from a source of its own with revisions of its own.
        fitting = exact if exact or is_module(name) else fitting
        if not fitting:
            if name in driver["packages"]:
                offered = sorted({each.version for each in index.get(name, [])})
                missing.append(
                    f"{name}: " + (f"there is {', '.join(offered[-MOST_NAMED:])}" if offered else "not there at all")
                )
            continue
        best = max(fitting, key=lambda each: _revision(each.version))
        pins[name] = best.version
        queue += [each for each in best.depends if rig_nvidia.is_own(each, driver["own"], driver["apart"])]
    if missing:
        raise FailedError(
            f"{where} does not offer driver {_named(driver)}:\n" + "\n".join(missing) + "\n"
            "fix: write a version that is there into driver.version, or take another source; nothing was touched"
        )
    return pins


def _named(driver: dict[str, Any]) -> str:
    """Version and revision, as far as the spec says them."""
    return "-".join(filter(None, (driver["version"], driver.get("revision", ""))))


def _revision(version: str) -> list[tuple[int, str]]:
    """A key by which revisions of one version sort: runs of digits as numbers."""
    parts = re.findall(r"\d+|\D+", version.rpartition("-")[2])
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts]


def lists(state: Path) -> list[str]:
    """The text of every index that an update has fetched."""
    return [path.read_text("utf-8", "replace") for path in sorted((state / "state" / "lists").glob("*Packages"))]


def private_state(parent: Path, name: str) -> Path:
    """Directories for a state of apt's own; readable, since apt fetches as a user of its own."""
    state = parent / name
    for below in ("state/lists/partial", "cache/archives/partial", "sources"):
        (state / below).mkdir(parents=True)
    return state


def seed(state: Path) -> None:
    """Begin with the lists that the host has, so that only what changed is fetched; apt checks them all the same."""
    for path in sorted(Path(LISTS).glob("*")):
        if path.is_file() and path.name != "lock":
            shutil.copy2(path, state / "state" / "lists" / path.name)


def update(options: list[str], where: str, timeout: int) -> None:
    """Fetch an index; raises FailedError with apt's own words, and why, when its signature is not taken."""
    status, text = rig_apt.call(["apt-get", "-q", *options, "update"], timeout)
    if status == 0:
        return
    if rig_apt.key_refused(text):
        raise FailedError(
            f"apt does not trust {where}:\n{rig_apt.words(text)}\n"
            "fix: give the key with which its issuer signs that repository now (driver.key, driver.key-fingerprint); "
            "one that is bound with SHA-1 stays refused, and no check is turned off for it; nothing was touched"
        )
    raise FailedError(f"the index of {where} cannot be read:\n{rig_apt.words(text)}\nfix: nothing was touched")


def source_file(driver: dict[str, Any]) -> dict[str, str] | None:
    """The list of the driver's own repository among the wanted files."""
    return next((file for file in driver["files"] if file["path"].startswith(f"{SOURCES}/")), None)


def all_sources(driver: dict[str, Any], site: list[dict[str, str]], state: Path) -> Path:
    """The lists that apt may read beside the driver's: those of the site where it has any, for the host's own may lead
    to where no host of the site comes; else the host's, without those that are about to be removed."""
    where = state / "sources"
    for path in [Path("/etc/apt/sources.list"), *sorted(Path(SOURCES).glob("*"))] if not site else ():
        wanted = path.is_file() and path.suffix in (".list", ".sources") and str(path) not in driver["stale"]
        if wanted and not any(str(path) == file["path"] for file in driver["files"]):
            shutil.copyfile(path, where / path.name)
    own = source_file(driver)
    for file in (*site, *([own] if own is not None else [])):
        (where / Path(file["path"]).name).write_text(file["content"])
    return where


@contextmanager
def only(driver: dict[str, Any], site: list[dict[str, str]]) -> Iterator[list[str]]:
    """Options by which apt reads the lists of the site and of the driver alone, and leaves what it knows of the others
    as it is; none where there is no site. They hold as long as the context does."""
    if not site:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="llamarig-driver-", dir=STATE) as place:
        state = Path(place)
        # apt reads lists as root, and fetches as a user of its own.
        state.chmod(0o755)
        (state / "sources").mkdir()
        sources = all_sources(driver, site, state)
        values = ("Dir::Etc::sourcelist=/dev/null", f"Dir::Etc::sourceparts={sources}", "APT::Get::List-Cleanup=0")
        yield [part for value in values for part in ("-o", value)]


def all_preferences(driver: dict[str, Any], state: Path) -> Path:
    """The host's own preferences with the driver's."""
    where = state / "preferences"
    where.mkdir()
    for path in sorted(Path(PREFERENCES).glob("*")):
        if path.is_file() and str(path) not in driver["stale"]:
            shutil.copyfile(path, where / path.name)
    for file in driver["files"]:
        if file["path"].startswith(f"{PREFERENCES}/"):
            (where / Path(file["path"]).name).write_text(file["content"])
    return where


def held_by_others(driver: dict[str, Any]) -> list[str]:
    """Packages on hold that are none of the driver's."""
    _, text = rig_apt.call(["apt-mark", "showhold"], 60)
    names = [line.partition(":")[0] for line in text.splitlines() if NAME.fullmatch(line.partition(":")[0])]
    return [name for name in names if not NVIDIAS.match(name) and name not in driver["packages"]]


def judge(simulation: rig_apt.Simulation, held: list[str], installed_kernels: list[str]) -> None:
    """Raise FailedError for a transaction that goes beyond the driver."""
    kernels = [name for name in simulation.installs if re.match(r"linux-image-\d", name)]
    removed = [name for name in simulation.removes if not NVIDIAS.match(name.partition(":")[0])]
    touched = [name for name in held if name in simulation.installs or name in simulation.removes]
    wrong = []
    if kernels:
        wrong.append(f"it would bring another kernel: {', '.join(kernels)} (there: {', '.join(installed_kernels)})")
    if removed:
        wrong.append(f"it would remove what is none of the driver's: {', '.join(removed[:MOST_NAMED])}")
    if touched:
        wrong.append(f"it would change what is on hold: {', '.join(touched[:MOST_NAMED])}")
    if wrong:
        raise FailedError(
            "the packages of the driver cannot be installed without touching others:\n" + "\n".join(wrong) + "\n"
            "fix: see `apt-get -s install` with the same packages; bring the system up to date, or take another version"
        )


def preflight(driver: dict[str, Any], site: list[dict[str, str]], timeout: int) -> dict[str, Any]:
    """What install has to do; raises FailedError when it cannot succeed. Touches nothing.

    ``site`` are the lists of the site's mirror, as path and content: they need not be on the host yet.
    """
    kernels = rig_nvidia.kernels()
    if not kernels:
        raise FailedError(
            "no kernel lies in /boot, so nobody can say for which one the module must be built\n"
            "fix: install one from packages (linux-image-amd64), or mount /boot; nothing was touched"
        )
    asked = missing_headers(kernels) or missing_metapackages(rig_nvidia.flavours())
    if not packages_wrong(driver, there(driver)) and not asked:
        return {"pins": [], "headers": [], "drop": []}
    parent = Path(tempfile.mkdtemp(prefix="llamarig-driver-", dir=STATE))
    try:
        parent.chmod(0o755)
        return _preflight(driver, site, parent, kernels, timeout)
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def _preflight(
    driver: dict[str, Any],
    site: list[dict[str, str]],
    parent: Path,
    kernels: dict[str, dict[str, Any]],
    timeout: int,
) -> dict[str, Any]:
    seen, headers = there(driver), missing_headers(kernels)
    pins: dict[str, str] = {}
    whole = private_state(parent, "whole")
    seed(whole)
    sources, preferences = all_sources(driver, site, whole), all_preferences(driver, whole)
    told = "the site's mirror" if site else "the host's own package sources"
    everything = rig_apt.options(whole, sources, preferences)
    if packages_wrong(driver, seen):
        if (own := source_file(driver)) is not None:
            only = private_state(parent, "only")
            (only / "sources" / "driver.sources").write_text(own["content"])
            update(rig_apt.options(only, only / "sources"), driver["uri"], timeout)
            pins = resolve(driver, rig_apt.read_index(lists(only)), driver["uri"])
        update(everything, told, timeout)
        if own is None:
            pins = resolve(driver, rig_apt.read_index(lists(whole)), "no package source of the host")
    else:
        update(everything, told, timeout)
    if missing := missing_metapackages(rig_nvidia.flavours()):
        headers += resolve_metapackages(missing, rig_apt.read_index(lists(whole), missing))
    drop = [name for name in (*driver["other"], *driver["stale_packages"]) if name in seen and name not in pins]
    named = [f"{name}={version}" for name, version in sorted(pins.items())]
    # What dpkg has not finished is finished first; a half-installed driver that is replaced needs no repair.
    asked = [*headers, *named, *(f"{name}-" for name in drop)]
    status, text = rig_apt.call(
        ["apt-get", "-s", "-q", *everything, *KEEP, "--allow-change-held-packages", "install", "--", *asked], timeout
    )
    if status != 0:
        raise FailedError(
            f"apt finds no way to install driver {driver['version']}:\n{rig_apt.words(text)}\n"
            "fix: nothing was touched; mend what apt names, or write a version that suits the system"
            + ("; a kernel whose headers no source has any more has to be removed" if headers else "")
        )
    judge(rig_apt.read_simulation(text), held_by_others(driver), list(kernels))
    return {"pins": named, "headers": headers, "drop": drop}
