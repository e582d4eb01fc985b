"""``llamarig render``: the files that would land on a host, without touching it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from llamarig.errors import RigError
    from llamarig.render.wanted import Wanted
    from llamarig.spec.load import LoadedHost


def render(
    out_dir: Annotated[Path, typer.Option("--out", help="A new or empty directory, or one that render made before.")],
    hosts: Annotated[list[str] | None, typer.Argument(help="Names of hosts.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project, each in DIR/<host>.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write the files that would land on a host, and a manifest of their hashes."""
    from llamarig.cli.choose import choose
    from llamarig.cli.context import emit_json, out
    from llamarig.cli.host_error import complain, error_json
    from llamarig.errors import ExitCode, RigError

    chosen = choose(hosts or [], all_, f"render --out {out_dir}")
    several = all_ or len(chosen) > 1
    rendered = {each.host: _rendered(each, out_dir / each.host if several else out_dir) for each in chosen}
    if len(rendered) == 1:
        for each in rendered.values():
            if isinstance(each, RigError):
                raise each
    if json_:
        emit_json(
            {
                "hosts": [
                    {"host": host, "error": error_json(each)} if isinstance(each, RigError) else each
                    for host, each in rendered.items()
                ]
            }
        )
    code = ExitCode.OK
    for host, each in rendered.items():
        if isinstance(each, RigError):
            complain(host, each)
            code = max(code, each.code)
        elif not json_:
            out().print(f"{host}: release {each['release']}, written to {each['out']}", markup=False)
            for path in each["files"]:
                out().print(f"  {path}", markup=False)
    raise typer.Exit(int(code))


def _rendered(loaded: LoadedHost, place: Path) -> dict[str, Any] | RigError:
    """What was written of a host into ``place``, or why nothing was."""
    from llamarig.cli.context import project_root
    from llamarig.converge.wanted import wanted_for
    from llamarig.errors import RigError
    from llamarig.render.tree import write_tree

    try:
        wanted = wanted_for(project_root(), loaded)
        _say_without_list(loaded, wanted)
        made = write_tree(wanted, place)
    except RigError as error:
        return error
    return {"host": wanted.host, "out": str(place), "release": made["release"], "files": list(made["files"])}


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
