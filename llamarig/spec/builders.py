"""A host that builds for others: that the project has it, that it builds, and that what it builds runs there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from llamarig.spec.problem import SpecProblem
from llamarig.spec.rules.base import near

if TYPE_CHECKING:
    from llamarig.spec.host import HostSpec
    from llamarig.spec.load import LoadedHost


def builder_problems(hosts: Sequence[LoadedHost]) -> Iterator[tuple[LoadedHost, SpecProblem]]:
    """Each host whose builder cannot build for it, with what is wrong; a host with errors of its own is left out."""
    known: dict[str, LoadedHost] = {}
    for loaded in hosts:
        known.setdefault(loaded.host, loaded)
    for loaded in hosts:
        if loaded.spec is None or loaded.spec.engine.build.where != "builder":
            continue
        name = loaded.spec.engine.build.builder
        builder = known.get(name or "")
        path, line = loaded.builder_at or (loaded.path, loaded.line)
        if builder is None:
            fix = near(str(name), sorted(known))
            yield loaded, SpecProblem(path, line, f"no spec names the builder {name!r}", fix)
        elif builder is loaded:
            message = f"{loaded.host} names itself as its builder"
            yield loaded, SpecProblem(path, line, message, "a host that builds for itself has `where: host`")
        elif builder.spec is not None and (further := _sent_on(builder.spec)):
            message = f"the builder {name} has its own release from {further}, and does not build"
            fix = f"name {further} here, or write `where: host` for {name}"
            yield loaded, SpecProblem(path, line, message, fix)
        elif builder.spec is not None and builder.spec.os != loaded.spec.os:
            ours, theirs = (f"{each.os.distribution} {each.os.release}" for each in (loaded.spec, builder.spec))
            message = f"the builder {name} runs {theirs}, and {loaded.host} runs {ours}"
            fix = f"name a host that runs {ours}: what is built elsewhere may not start here"
            yield loaded, SpecProblem(path, line, message, fix)


def _sent_on(builder: HostSpec) -> str:
    """The builder that a builder names for itself; empty when it builds, or names itself, which is told of it alone."""
    build = builder.engine.build
    return str(build.builder) if build.where == "builder" and build.builder != builder.host else ""
