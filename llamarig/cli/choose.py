"""Which hosts a verb works on when one bad spec must not stop the others."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from llamarig.errors import RigError

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost, Project


def choose(hosts: list[str], all_: bool, verb: str) -> list[LoadedHost]:
    """The named hosts of the project, or all of them, each with what is wrong with its spec.

    Every entry has a name of its own: a spec that says none, or one that another says too, goes by the name of its
    file. With ``all_`` a file that belongs to no host and has an error is an entry as well, so that it is not
    passed over in silence. Raises :class:`RigError` when none or an unknown host is named, and
    :class:`~llamarig.errors.RigErrors` with every error when not one of the chosen specs is without.
    """
    from llamarig.cli.context import hosts_or_all, load

    hosts_or_all(hosts, all_, verb)
    project = load()
    chosen = [*project.hosts, *_strays(project)] if all_ else [project.named(name) for name in dict.fromkeys(hosts)]
    if all(loaded.errors for loaded in chosen):
        return project.valid(None if all_ else hosts)  # raises: there is nothing to go on with
    return _told_apart(project, chosen)


def labelled(hosts: list[LoadedHost], labels: list[str], *, named: bool = False) -> list[LoadedHost]:
    """Those that carry every label, each given as ``NAME=VALUE``; one whose spec has errors stays, to be told.

    ``named``: they were named one by one. Raises :class:`RigError` when one is no such pair, and when no host of them
    carries all.
    """
    wanted = {}
    for label in labels:
        name, equals, value = label.partition("=")
        if not equals:
            raise RigError(what=f"--label {label} gives no value", fix="for example: --label room=studio")
        wanted[name] = value
    if not any(each.spec is not None and wanted.items() <= each.spec.labels.items() for each in hosts):
        whose = "none of the named hosts" if named else "no host"
        fix = "`labels` in a host's spec says what it has" + ("; leave the names out to ask all hosts" if named else "")
        raise RigError(what=f"{whose} carries {' and '.join(labels)}", fix=fix)
    return [each for each in hosts if each.spec is None or wanted.items() <= each.spec.labels.items()]


def _strays(project: Project) -> list[LoadedHost]:
    """Files with an error that is no host's own, as entries that have nothing but their errors."""
    from llamarig.spec.load import LoadedHost

    told = {problem for loaded in project.hosts for problem in loaded.errors}
    found: dict[str, LoadedHost] = {}
    for problem in project.errors:
        if problem not in told:
            entry = found.setdefault(str(problem.path), LoadedHost(problem.path.name, problem.path, None))
            entry.errors.append(problem)
    return list(found.values())


def _told_apart(project: Project, chosen: list[LoadedHost]) -> list[LoadedHost]:
    """The same, where what one bad spec says never lands under the name of another."""
    names = [loaded.host for loaded in chosen]
    return [
        replace(loaded, host=os.path.relpath(loaded.path, project.root))
        if loaded.errors and names.count(loaded.host) > 1
        else loaded
        for loaded in chosen
    ]
