"""``llamarig verify``: prove the running services against the spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from llamarig.cli.ask import AskBecomePass

if TYPE_CHECKING:
    from llamarig.prove import Check
    from llamarig.prove.hosts import Proof


def verify(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts to prove.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Hash releases and models again.")] = False,
    memory: Annotated[
        bool, typer.Option("--memory", help="Hold the planned memory against the processes, and store it for plans.")
    ] = False,
    ask_become_pass: AskBecomePass = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Exit 1 when a check fails, 3 when a host cannot be asked."""
    from llamarig.cli.ask import asked_password
    from llamarig.cli.choose import choose
    from llamarig.cli.context import project_root
    from llamarig.prove.hosts import prove_hosts

    chosen = choose(hosts or [], all_, "verify")
    with asked_password(ask_become_pass) as password:
        proofs = prove_hosts(project_root(), chosen, deep=deep, memory=memory, become_password_file=password)
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
    from llamarig.cli.host_error import error_json
    from llamarig.errors import RigError

    documents = [
        {"host": host, "checks": [], "error": error_json(proof)}
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

    from llamarig.cli.context import out
    from llamarig.cli.host_error import complain
    from llamarig.cli.rows import print_rows
    from llamarig.errors import RigError

    if isinstance(proof, RigError):
        complain(host, proof)
        return
    out().print(f"{escape(host)}: {_verdict(proof)}")
    if _never_applied(proof):
        out().print(f"  never applied: run `llamarig apply {escape(host)}`", soft_wrap=True)
        return
    marks = ("[bold red]FAIL[/]", "[yellow]not checked[/]", "[green]ok[/]")
    print_rows([[marks[_rank(each)], escape(each.name), escape(_detail(each))] for each in sorted(proof, key=_rank)])


def _detail(check: Check) -> str:
    """What the line says beside its mark; the mark of a blocked check says already that it was not made."""
    return f"because {check.blocked_by} failed" if check.blocked_by else check.detail


def _verdict(proof: list[Check]) -> str:
    blocked = sum(_rank(check) == 1 for check in proof)
    failed = sum(_rank(check) == 0 for check in proof)
    if not blocked + failed:
        return f"[green]all {len(proof)} checks hold[/]"
    skipped = f", [yellow]{blocked} not checked[/]" if blocked else ""
    return f"[bold red]{failed} of {len(proof)} checks failed[/]{skipped}"


def _never_applied(proof: list[Check]) -> bool:
    """Whether nothing holds and there is no release at all: then each check would say the same."""
    from llamarig.prove.host import NO_RELEASE

    return any(each.detail == NO_RELEASE for each in proof) and not any(each.ok for each in proof)
