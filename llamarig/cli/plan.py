"""``llamarig plan``: memory, arguments and findings before anything is touched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llamarig.cli.context import emit_json, out, project_root
from llamarig.cli.host_error import complain, error_json
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.plan import Plan
    from llamarig.spec.host import HostSpec

    Planned = tuple[str, HostSpec | None, Plan | RigError]


def plan(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts to plan.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Plan every host of the project.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    argv: Annotated[bool, typer.Option("--argv", help="Show every service's arguments and environment.")] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write the plan as a page into this file; of several hosts into this directory."),
    ] = None,
    solve: Annotated[
        str | None, typer.Option("--solve", help="Find the largest context, quant, n-max, slots or ubatch that fits.")
    ] = None,
    service: Annotated[str | None, typer.Option("--service", help="The service that --solve is for.")] = None,
) -> None:
    """Compute memory, arguments and findings before anything is touched."""
    import gc

    # Nothing here makes cycles, and looking for some is a sixth of a fleet's plan.
    gc.disable()
    root = project_root()
    if html is not None and solve is not None:
        raise RigError(what="--html and --solve are two things", fix="run the command once with each")
    if solve is not None or service is not None:
        from llamarig.cli.choose import choose
        from llamarig.cli.solve import show_solutions, solutions

        show_solutions(solutions(choose(hosts or [], all_, "plan"), root, solve, service), json_)
    found = _planned(root, hosts or [], all_)
    if html is not None:
        _write_pages(found, html, quiet=json_)
    if json_:
        reports = [_document(host, each) for host, _, each in found]
        emit_json(reports[0] if len(reports) == 1 else {"hosts": reports})
    elif html is None:
        _print([each for _, _, each in found if not isinstance(each, RigError)], argv=argv)
    for host, _, each in found:
        if isinstance(each, RigError):
            complain(host, each)
    raise typer.Exit(int(max(_code(each) for _, _, each in found)))


def _planned(root: Path, hosts: list[str], all_: bool) -> list[Planned]:
    """Every chosen host with its plan, or the error that stands in its place; raises the error of a single one."""
    from llamarig.cli.choose import choose
    from llamarig.plan import plan_each
    from llamarig.spec.problem import combined

    chosen = choose(hosts, all_, "plan")
    specs = [loaded.spec for loaded in chosen if loaded.spec is not None]
    plans = iter(plan_each(specs, root))
    found: list[Planned] = [
        (loaded.host, loaded.spec, next(plans) if loaded.spec is not None else combined(loaded.errors, loaded.path))
        for loaded in chosen
    ]
    if len(found) == 1 and isinstance(found[0][2], RigError):
        raise found[0][2]
    return found


def _code(each: Plan | RigError) -> ExitCode:
    if isinstance(each, RigError):
        return each.code
    return ExitCode.OK if each.fits and each.known else ExitCode.FINDING


def _document(host: str, each: Plan | RigError) -> dict[str, Any]:
    from llamarig.plan import plan_json

    return {"host": host, "error": error_json(each)} if isinstance(each, RigError) else plan_json(each)


def _print(plans: list[Plan], *, argv: bool) -> None:
    from llamarig.cli.plan_view.terminal import apart, show

    for number, each in enumerate(plans):
        if number:
            apart()
        show(each)
        if argv:
            _show_arguments(each)


def _write_pages(planned: list[Planned], target: Path, *, quiet: bool) -> None:
    """A page a host; says where each lies unless ``quiet``."""
    from functools import partial

    from rich.markup import escape

    from llamarig.catalog.known_files import table
    from llamarig.cli.plan_view.files import page_paths, write_page
    from llamarig.cli.plan_view.pages import page
    from llamarig.cli.plan_view.terminal import headline
    from llamarig.plan import gather_headers, plan_host
    from llamarig.plan.measured import read_measured

    root = project_root()
    paths = page_paths(target, [host for host, _, _ in planned])
    for (_, spec, found), path in zip(planned, paths, strict=True):
        if spec is None or isinstance(found, RigError):
            continue
        planner = partial(plan_host, measured=read_measured(root, spec.host))
        headers = gather_headers(spec, root, known=table(root))
        write_page(path, page(found, spec, headers, planner=planner))
        if not quiet:
            out().print(f"{headline(found)}: {escape(str(path))}", soft_wrap=True)


def _show_arguments(plan: Plan) -> None:
    """On a terminal a command is one line; elsewhere an option a line, as a shell takes it too."""
    import shlex

    from rich.markup import escape

    from llamarig.cli.plan_view.arguments import command_lines, unlearned_words

    for name, service in plan.services.items():
        out().print(f"[bold]{escape(name)}[/]")
        if words := unlearned_words(service.environment):
            out().print(escape(f"  # {words}"), soft_wrap=True)
        if not out().is_terminal:
            for line in command_lines(service.environment, service.argv):
                out().print(f"  {line}", markup=False, soft_wrap=True)
            continue
        for key, value in service.environment.items():
            out().print(escape(f"  {key}={shlex.quote(value)}"))
        out().print(escape(f"  {shlex.join(service.argv)}"), soft_wrap=True)
