"""``llamarig render``: the files that would land on a host, without touching it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from llamarig.render.wanted import Wanted
    from llamarig.spec.load import LoadedHost


def render(
    out_dir: Annotated[Path, typer.Option("--out", help="A new or empty directory, or one that render made before.")],
    hosts: Annotated[list[str] | None, typer.Argument(help="Names of hosts.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project, each in DIR/<host>.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write the files that would land on a host, and a manifest of their hashes."""
    from llamarig.cli.context import emit_json, out, project_root, select
    from llamarig.converge.wanted import wanted_for
    from llamarig.render.tree import write_tree

    chosen = select(hosts or [], all_, f"render --out {out_dir}")
    rendered = [wanted_for(project_root(), loaded) for loaded in chosen]
    for loaded, wanted in zip(chosen, rendered, strict=True):
        _say_without_list(loaded, wanted)
    report = []
    for wanted in rendered:
        place = out_dir / wanted.host if all_ or len(chosen) > 1 else out_dir
        made = write_tree(wanted, place)
        report.append(
            {"host": wanted.host, "out": str(place), "release": made["release"], "files": list(made["files"])}
        )
    if json_:
        emit_json({"hosts": report})
        return
    for entry in report:
        out().print(f"{entry['host']}: release {entry['release']}, written to {entry['out']}", markup=False)
        for path in entry["files"]:
            out().print(f"  {path}", markup=False)


def _say_without_list(loaded: LoadedHost, wanted: Wanted) -> None:
    """Say which file is left out where the mirror of the spec is not there: its key is in no spec."""
    from rich.markup import escape

    from llamarig.cli.context import err, project_root
    from llamarig.converge.wanted import spec_of
    from llamarig.render.site import SOURCE, mirror_of, system_of

    spec = spec_of(loaded)
    mirror = mirror_of(spec, project_root())
    if mirror["url"] and SOURCE not in {file.path for file in wanted.files}:
        where = mirror["path"] or "mirror.path, which the spec does not give"
        why = f"there is no mirror with packages of {system_of(spec)} at {where}"
        err().print(f"[yellow]{escape(f'{loaded.host}: {SOURCE} is left out: {why}')}[/]", soft_wrap=True)
