"""``llamarig render``: the files that would land on a host, without touching it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
