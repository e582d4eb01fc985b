"""``llamarig verify``: prove the running services against the spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from llamarig.prove import Check
    from llamarig.prove.hosts import Proof


def verify(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts to prove.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Hash releases and models again.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Exit 1 when a check fails, 3 when a host cannot be asked."""
    from llamarig.cli.context import project_root, select
    from llamarig.prove.hosts import prove_hosts

    proofs = prove_hosts(project_root(), select(hosts or [], all_), deep=deep)
    if json_:
        _print_json(proofs)
    else:
        for host, proof in proofs.items():
            _print(host, proof)
    raise typer.Exit(_status(proofs))


def _status(proofs: dict[str, Proof]) -> int:
    from llamarig.errors import ExitCode, RigError

    codes = [ExitCode.OK]
    for proof in proofs.values():
        if isinstance(proof, RigError):
            codes.append(proof.code)
        elif not all(check.ok for check in proof):
            codes.append(ExitCode.FINDING)
    return int(max(codes))


def _print_json(proofs: dict[str, Proof]) -> None:
    from llamarig.cli.context import emit_json
    from llamarig.errors import RigError

    documents = [
        {"host": host, "checks": [], "error": {"what": proof.what, "why": proof.why, "fix": proof.fix}}
        if isinstance(proof, RigError)
        else {"host": host, "checks": [check.to_json() for check in proof]}
        for host, proof in proofs.items()
    ]
    emit_json(documents[0] if len(documents) == 1 else {"hosts": documents})


def _rank(check: Check) -> int:
    """Red first, then what it blocks, then green."""
    return 2 if check.ok else 1 if check.blocked_by else 0


def _print(host: str, proof: Proof) -> None:
    from rich.markup import escape
    from rich.table import Table

    from llamarig.cli.context import err, out
    from llamarig.cli.looked import print_table
    from llamarig.errors import RigError

    if isinstance(proof, RigError):
        err().print(f"[bold red]error:[/] {escape(str(proof))}", soft_wrap=True)
        return
    red = sum(not check.ok for check in proof)
    words = f"[bold red]{red} of {len(proof)} checks failed[/]" if red else f"[green]all {len(proof)} checks hold[/]"
    table = Table(box=None, pad_edge=False, show_header=False)
    for check in sorted(proof, key=_rank):
        mark = ("[bold red]FAIL[/]", "[yellow]blocked[/]", "[green]ok[/]")[_rank(check)]
        table.add_row(mark, escape(check.name), escape(check.detail))
    out().print(f"{escape(host)}: {words}")
    print_table(table)
