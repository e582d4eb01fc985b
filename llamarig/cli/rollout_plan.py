"""``llamarig rollout plan``: what a rollout would do to whom and when; hosts are looked at, nothing is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from llamarig.cli.policy_option import Canary

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rich.console import Console

    from llamarig.errors import RigError
    from llamarig.fleet.plan import FleetPlan, HostPlan, Observation, Verdict
    from llamarig.fleet.policy import Use
    from llamarig.render.wanted import Wanted
    from llamarig.spec.load import LoadedHost

LABEL = "Only hosts with this label, as room=studio; may be given several times."
_TONES: dict[Verdict, tuple[str, str]] = {
    "change": ("bold", "is changed"),
    "nothing-to-do": ("green", "nothing to do"),
    "in-use": ("yellow", "deferred"),
    "unreachable": ("yellow", "unreachable"),
    "refused": ("bold red", "refused"),
}


def plan(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts, by the `host:` of their specs.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    label: Annotated[list[str] | None, typer.Option("--label", help=LABEL)] = None,
    canary: Canary = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Look at all hosts and say what a rollout would do, in which waves; nothing is touched."""
    import gc

    from llamarig.cli.choose import choose, labelled
    from llamarig.cli.context import emit_json, project_root
    from llamarig.fleet.plan import plan_rollout
    from llamarig.fleet.policy import policy_of

    # Nothing here makes cycles, and looking for some is a sixth of a fleet's plan.
    gc.disable()
    chosen = choose(hosts or [], all_ or bool(label and not hosts), "rollout plan")
    if label:
        chosen = labelled(chosen, label, named=bool(hosts))
    policy = policy_of([loaded for loaded in chosen if loaded.spec is not None])
    if canary is not None:
        policy = policy.model_copy(update={"canary": canary})
    root = project_root()
    observed = _look(root, chosen)
    made = plan_rollout(root, chosen, observed, policy)
    changing = [loaded for loaded in chosen if made.hosts[loaded.host].verdict == "change"]
    if use := _use(root, changing):
        made = made.with_use(use)
    if json_:
        emit_json(made.to_json())
    else:
        _print(made)
    raise typer.Exit(_code(made))


def _look(root: Path, hosts: list[LoadedHost]) -> dict[str, Observation]:
    """What each host is, or why it does not say so; one whose spec cannot be planned is not looked at."""
    from llamarig.converge.observe import observe_hosts
    from llamarig.converge.wanted import wanted_for
    from llamarig.errors import RigError

    wanted: dict[str, Wanted] = {}
    found: dict[str, Observation] = {}
    for loaded in hosts:
        try:
            wanted[loaded.host] = wanted_for(root, loaded)
        except RigError as error:
            found[loaded.host] = error
    ready = [loaded for loaded in hosts if loaded.host in wanted]
    if ready:
        found |= observe_hosts(root, ready, wanted)
    return found


def _use(root: Path, hosts: list[LoadedHost]) -> dict[str, Use | None]:
    """Which of the hosts that would be changed are in use; nobody waits for anything here."""
    from llamarig.cli.context import overlay
    from llamarig.converge.apply import Options
    from llamarig.fleet.in_use import UseGate
    from llamarig.fleet.policy import Use

    if not hosts:
        return {}
    asked = UseGate(root, Options(), overlay=overlay()).verdicts([loaded.host for loaded in hosts], wait=False)
    return {host: use if isinstance(use, Use) or use is None else Use(_asking(use)) for host, use in asked.items()}


def _asking(error: RigError) -> str:
    return f"nobody knows whether it is in use: {error.what}"


def _print(made: FleetPlan) -> None:
    from rich.markup import escape

    from llamarig.cli.context import out
    from llamarig.cli.host_error import complain
    from llamarig.cli.rows import print_rows

    for wave in made.waves:
        out().print(f"[bold]{escape(wave.name)}[/]")
        print_rows([_row(made.hosts[name]) for name in wave.hosts], indent=2)
    for release, names in made.builds.items():
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")  # noqa: PLR2004 - those named
        out().print(f"release [bold]{escape(release)}[/] is built once, for {escape(shown)}", soft_wrap=True)
    for host in made.hosts.values():
        for error in host.refusals:
            complain(host.host, error)
    warn(made.warnings, out())
    counts = [f"{count} {words}" for verdict, (_, words) in _TONES.items() if (count := made.count(verdict))]
    out().print(f"{_in_waves(made)}: {', '.join(counts)}")


def warn(warnings: Iterable[tuple[str, str]], console: Console) -> None:
    """Say what the policy says to no effect, each with its fix."""
    from rich.markup import escape

    from llamarig.compare.text import printable

    for message, fix in warnings:
        console.print(f"[yellow]warning[/] {escape(printable(message, 300))}", soft_wrap=True)
        console.print(f"[dim]fix:[/]    {escape(printable(fix, 300))}", soft_wrap=True)


def _in_waves(made: FleetPlan) -> str:
    """``12 hosts, a canary and 3 waves``."""
    from llamarig.compare.text import counted
    from llamarig.fleet.policy.waves import CANARY

    first = [wave for wave in made.waves if wave.name == CANARY]
    later = len(made.waves) - len(first)
    parts = [*(["a canary"] if first else []), *([counted(later, "wave")] if later else [])]
    return f"{counted(len(made.hosts), 'host')}, {' and '.join(parts)}"


def _row(host: HostPlan) -> list[str]:
    from rich.markup import escape

    from llamarig.compare.text import printable

    colour, words = _TONES[host.verdict]
    said = printable(host.reason, 300)
    if host.restarts:
        said += f"; restarts {', '.join(host.restarts)}"
    if host.reboot:
        said += f"; needs a reboot ({printable(host.reboot, 120)}), and `maintenance.reboot` is `{host.reboot_policy}`"
    return [escape(host.host), f"[{colour}]{words}[/]", escape(said)]


def _code(made: FleetPlan) -> int:
    """As ``diff``: 1 when something is to be done, 2 where a spec must not be applied, 3 where a host is silent."""
    from llamarig.errors import ExitCode

    codes: dict[str, Any] = {
        "change": ExitCode.FINDING,
        "in-use": ExitCode.FINDING,
        "refused": ExitCode.BAD_INPUT,
        "unreachable": ExitCode.HOST_FAILED,
    }
    return max((int(codes.get(host.verdict, ExitCode.OK)) for host in made.hosts.values()), default=0)
