"""``llamarig mirror``: collect what hosts need into a directory, for a site without internet access."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from llamarig.converge.mirror.collect import Report


def mirror(
    directory: Annotated[Path, typer.Argument(help="A new or empty directory, or a mirror.")],
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts to collect for.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    packages_from: Annotated[
        list[str] | None,
        typer.Option("--packages-from", help="A host with access to Debian's archive, whose apt chooses packages."),
    ] = None,
    no_python: Annotated[bool, typer.Option("--no-python", help="Leave llamarig's own wheels out.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Hash every file anew, and fetch again what is wrong.")
    ] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Remove what no spec needs; only with --all.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print what was collected as JSON.")] = False,
) -> None:
    """Exit 1 when packages of a system have never been collected; what is there and right is not fetched again."""
    from llamarig.cli.context import emit_json, overlay, project_root, select
    from llamarig.cli.lock import _progress
    from llamarig.converge.mirror.collect import Options, collect
    from llamarig.errors import ExitCode, RigError

    if prune and not all_:
        raise RigError("--prune removes what no spec needs", fix="give --all, or leave --prune out")
    chosen = select(hosts or [], all_, f"mirror {directory}")
    sources = tuple(select(packages_from, False, "mirror")) if packages_from else ()
    options = Options(sources, not no_python, verify, prune, overlay())
    report = collect(project_root(), directory.absolute(), chosen, options, _progress())
    if json_:
        emit_json(report.to_json())
    else:
        _print(report)
    raise typer.Exit(int(ExitCode.FINDING if report.missing else ExitCode.OK))


def _print(report: Report) -> None:
    from llamarig.cli.context import err, out
    from llamarig.compare.text import counted, printable

    for path in report.damaged:
        out().print(f"damaged or gone: {path}", markup=False)
    for path in report.pruned:
        out().print(f"removed: {path}", markup=False)
    count = f"{counted(len(report.added), 'file')} fetched" if report.added else "nothing to fetch"
    size = f"{counted(report.files, 'file')}, {report.size / (1 << 20):,.1f} MiB"
    out().print(f"{report.directory}: {count}; {size}", markup=False)
    out().print(f"sha256 of its SHA256SUMS, to compare at the site: {report.sums}", markup=False)
    for name in report.lacking:
        err().print(
            f"no source of the host that chose packages offers {printable(name)}: where a host has that kernel, remove "
            "the kernel before a driver is installed",
            markup=False,
        )
    for system in report.missing:
        err().print(
            f"packages of {system} are not collected: name a host of it that reaches an archive with --packages-from",
            markup=False,
        )
