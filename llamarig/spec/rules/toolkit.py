"""The CUDA toolkit against the compiler, the architectures, and what its parts can be."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.catalog.toolkits import first_driver, minor, minor_of, minors, older, system, wheel_names
from llamarig.spec.rules.base import Broken, View
from llamarig.spec.tree import Loc

_VERSION: Loc = ("cuda", "version")


def compiler(view: View) -> Iterator[Broken]:
    """The distribution's GCC is one that the toolkit accepts; it is never told to accept another."""
    cuda, os = view.spec.cuda, view.spec.os
    runs = f"{os.distribution} {os.release}"
    has = system(runs)
    known = minor(cuda.version) if cuda is not None else None
    if cuda is None or has is None or known is None or int(has.gcc) <= known.newest_gcc:
        return
    later = next((name for name, each in minors().items() if int(has.gcc) <= each.newest_gcc), None)
    yield Broken(
        _VERSION,
        f"CUDA {cuda.version} takes GCC {known.newest_gcc} at most, and {runs} builds with GCC {has.gcc}",
        f"take CUDA {later} or later" if later else "take a later toolkit",
        rests_on=(("os",),),
    )


def architectures(view: View) -> Iterator[Broken]:
    """The toolkit makes machine code for every architecture that is asked for."""
    cuda, engine = view.spec.cuda, view.spec.engine
    known = minor(cuda.version) if cuda is not None else None
    if cuda is None or known is None or engine.backend != "cuda":
        return
    for index, each in enumerate(engine.architectures):
        name = each.removesuffix("-real").removesuffix("-virtual")
        if name in known.architectures:
            continue
        able = [version for version, other in minors().items() if name in other.architectures]
        yield Broken(
            ("engine", "architectures", index),
            f"CUDA {cuda.version} makes no code for {name}",
            f"take CUDA {able[0]}{' or later' if able[-1] == list(minors())[-1] else f' to {able[-1]}'}"
            if able
            else "no toolkit that is known does: write it as nvcc's help does",
            rests_on=(_VERSION,),
        )


def wheels(view: View) -> Iterator[Broken]:
    """Wheels are named, all of them and of one toolkit; those of 12.x hold no nvcc."""
    cuda = view.spec.cuda
    if cuda is None:
        return
    at: Loc = ("cuda", "wheels")
    if cuda.source not in ("wheels", "directory"):
        if cuda.wheels:
            yield Broken(at, f"source {cuda.source} takes no wheels", "remove `wheels`", rests_on=(("cuda", "source"),))
        return
    if cuda.source == "directory" and not cuda.wheels:
        return
    wanted = wheel_names(cuda.version)
    if not wanted:
        yield Broken(
            _VERSION,
            f"the wheels of CUDA {minor_of(cuda.version)} hold no nvcc",
            "take 13.0 or later, or `source: archive`",
            rests_on=(("cuda", "source"),),
        )
        return
    given = dict(each.split("==", 1) for each in cuda.wheels)
    for name, begins in wanted.items():
        if name not in given:
            yield Broken(
                at,
                f"the toolkit lacks {name}",
                f"add `{name}=={begins or '<version>'}{'' if begins in ('', cuda.version) else '.<build>'}: unlocked`",
                rests_on=(_VERSION,),
            )
        elif begins and given[name] != begins and not given[name].startswith(f"{begins}."):
            yield Broken(
                (*at, f"{name}=={given[name]}"),
                f"{name} {given[name]} is of another toolkit than {cuda.version}",
                f"take {begins if begins == cuda.version else f'a version that begins with {begins}'}",
                rests_on=(_VERSION,),
            )
    for name in given.keys() - wanted.keys():
        yield Broken((*at, f"{name}=={given[name]}"), f"{name} is no part of a toolkit that builds", "remove it")


def pins(view: View) -> Iterator[Broken]:
    """What is pinned by its wheels takes no hash beside them."""
    cuda = view.spec.cuda
    if cuda is not None and cuda.sha256 is not None and (cuda.source == "wheels" or cuda.wheels):
        yield Broken(("cuda", "sha256"), "each wheel has its own sha256", "remove `sha256`")


def driver(view: View) -> Iterator[Broken]:
    """The driver runs what the toolkit builds: its own major version, not the exact one, decides."""
    has, cuda = view.spec.driver, view.spec.cuda
    first = first_driver(cuda.version) if cuda is not None else None
    if has is None or cuda is None or first is None or not older(has.version, first):
        return
    yield Broken(
        _VERSION,
        f"what CUDA {cuda.version} builds does not run on driver {has.version}",
        f"take driver {first} or later, or a toolkit of an earlier major version",
        rests_on=(("driver", "version"),),
    )


RULES = (compiler, architectures, wheels, pins, driver)
