"""The CUDA toolkit: what goes with which version, and where NVIDIA lists it."""

from __future__ import annotations

from functools import cache

from llamarig.catalog.data import Entry, read
from llamarig.catalog.upstream import upstream

_WHOLE = 3
"""Parts of a whole version."""
_LAST_RELEASE = 9
"""A third part up to this is the number of a release; builds of nvcc have two digits and more."""


class Minor(Entry):
    """What one minor version of the toolkit takes and makes."""

    newest_gcc: int
    """Major version of the newest GCC that nvcc accepts as host compiler."""
    architectures: list[str]
    """It makes machine code for these, ``120a``."""


class System(Entry):
    """What a distribution builds with."""

    gcc: str
    glibc: str
    cmake: str


class _HeaderFix(Entry):
    from_glibc: str
    before_toolkit: str


class _Wheels(Entry):
    nvcc_from: str
    of_version: list[str]
    of_minor: list[str]
    others: list[str]


class _Toolkits(Entry):
    minors: dict[str, Minor]
    header_fix: _HeaderFix
    first_driver: dict[str, str]
    systems: dict[str, System]
    engine_rewrites_plain_from: int
    family_suffix_cmake: list[str]
    wheels: _Wheels
    components: list[str]
    required_components: list[str]
    nvcc_builds: dict[str, list[int]]


@cache
def _toolkits() -> _Toolkits:
    return _Toolkits.model_validate(read("toolkits.yml"))


def older(version: str, than: str) -> bool:
    """Whether one dotted version comes before another."""
    return [int(part) for part in version.split(".")] < [int(part) for part in than.split(".")]


def minor_of(version: str) -> str:
    """``12.9`` of ``12.9.86``."""
    return ".".join(version.split(".")[:2])


def minor(version: str) -> Minor | None:
    """What is known of a toolkit's minor version; None when nobody has looked."""
    return _toolkits().minors.get(minor_of(version))


def minors() -> dict[str, Minor]:
    """Every minor version that is known, oldest first."""
    return _toolkits().minors


def first_driver(version: str) -> str | None:
    """The oldest driver on which what a toolkit builds can run at all; None where it is not known."""
    return _toolkits().first_driver.get(version.split(".", maxsplit=1)[0])


def system(name: str) -> System | None:
    """What a distribution, ``debian 13``, builds with."""
    return _toolkits().systems.get(name)


def needs_header_fix(version: str, system_name: str) -> bool:
    """Whether the toolkit's headers have to be mended for the system's C library (see toolkits.yml, header-fix)."""
    fix, known = _toolkits().header_fix, system(system_name)
    return known is not None and not older(known.glibc, fix.from_glibc) and older(version, fix.before_toolkit)


def rewrites_plain(build_number: int) -> bool:
    """Whether the engine's own CMake makes 12Xa of a plain 12X."""
    return build_number >= _toolkits().engine_rewrites_plain_from


def first_rewriting_build() -> int:
    """The oldest build of the engine in which that was seen."""
    return _toolkits().engine_rewrites_plain_from


def takes_family_suffix(system_name: str) -> bool:
    """Whether the system's CMake lets the suffix ``f`` of an architecture through; True when it is not known."""
    known = system(system_name)
    third, fourth = _toolkits().family_suffix_cmake
    if known is None:
        return True
    return not older(known.cmake, third if older(known.cmake, "4.0") else fourth)


def wheel_names(version: str) -> dict[str, str]:
    """The distributions that are a toolkit together, each with what its version must begin with (empty: anything).

    None at all for a version whose distributions hold no nvcc.
    """
    known = _toolkits().wheels
    if older(version, known.nvcc_from):
        return {}
    return {
        **dict.fromkeys(known.of_version, version),
        **dict.fromkeys(known.of_minor, minor_of(version)),
        **dict.fromkeys(known.others, ""),
    }


def components() -> tuple[list[str], list[str]]:
    """The parts of a list of archives that are used where they are named, and those that must be."""
    return _toolkits().components, _toolkits().required_components


def release_of(version: str) -> str | None:
    """The release that a spec's ``cuda.version`` means: ``12.9.86`` (of nvcc), ``12.9.1`` or ``12.9``.

    None when nobody has written down which release that version of nvcc came with.
    """
    parts = version.split(".")
    minor = ".".join(parts[:2])
    if len(parts) < _WHOLE:
        return f"{minor}.0"
    if int(parts[2]) <= _LAST_RELEASE:
        return version
    builds = _toolkits().nvcc_builds.get(minor, [])
    return f"{minor}.{builds.index(int(parts[2]))}" if int(parts[2]) in builds else None


def archive_list(version: str) -> str | None:
    """The address of the list that names every redistributable archive of a toolkit with its sha256."""
    release = release_of(version)
    return f"{upstream().toolkit_archives}/redistrib_{release}.json" if release is not None else None
