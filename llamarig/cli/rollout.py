"""``llamarig rollout``: bring a fleet to its specs in waves, stop on the first bad sign, and go back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llamarig.cli.policy_option import Canary, Failures
from llamarig.cli.rollout_plan import LABEL, plan
from llamarig.errors import ExitCode, RigError, RigErrors

if TYPE_CHECKING:
    from llamarig.fleet.rollout.session import Session, Start
    from llamarig.fleet.rollout.state import State
    from llamarig.spec.load import LoadedHost

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

_Name = Annotated[str | None, typer.Argument(help="The rollout's id; the newest when it is left out.")]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before running services are restarted.")]
_Break = Annotated[bool, typer.Option("--break-lock", help="Take a host's lock from whoever holds it.")]
_Become = Annotated[bool, typer.Option("--ask-become-pass", "-K", help="Ask for sudo's password.")]
_Use = Annotated[bool, typer.Option("--ignore-use", help="Change hosts even while they are in use.")]
_Reboot = Annotated[
    bool, typer.Option("--reboot", help="Reboot hosts that need it and whose `maintenance.reboot` is `ask`.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print the state as JSON.")]


@app.command()
def start(
    hosts: Annotated[list[str] | None, typer.Argument(help="Hosts, by the `host:` of their specs.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every host of the project.")] = False,
    label: Annotated[list[str] | None, typer.Option("--label", help=LABEL)] = None,
    canary: Canary = None,
    failures: Failures = None,
    verify: Annotated[bool, typer.Option("--verify", help="Prove hosts with nothing to do as well.")] = False,
    accept_changed: Annotated[
        bool, typer.Option("--accept-changed", help="Take a spec as it is at its host's turn.")
    ] = False,
    reboot: _Reboot = False,
    yes: _Yes = False,
    ignore_use: _Use = False,
    break_lock: _Break = False,
    ask_become_pass: _Become = False,
    as_json: _Json = False,
) -> None:
    """Look at all hosts, change a canary, then the others in waves; each is proven."""
    from llamarig.cli.choose import choose, labelled
    from llamarig.cli.context import project_root
    from llamarig.cli.host_error import complain
    from llamarig.fleet.rollout import refuse, session
    from llamarig.fleet.rollout.lock import refuse_while_rolling

    loaded = choose(hosts or [], all_ or bool(label and not hosts), "rollout start")
    if label:
        loaded = labelled(loaded, label, named=bool(hosts))
    wish = _wish(loaded, canary, failures, {"verify": verify, "accept-changed": accept_changed, "reboot": reboot})
    refuse_while_rolling(project_root())
    refuse.refuse_unfinished(project_root())
    for host, error in wish.refused.items():
        complain(host, error)
    if not yes:
        from llamarig.compare.text import counted

        without = f", without {', '.join(wish.refused)}, refused above" if wish.refused else ""
        count = counted(len(wish.hosts) - len(wish.refused), "host")
        _ask(f"a rollout over {count}{without}; services that change are restarted{_reboots(loaded, asked=reboot)}")
    with _driving(break_lock, ask_become_pass, ignore_use=ignore_use) as given:
        told = session.start(given, wish)
    _end(told, as_json)


app.command()(plan)


@app.command()
def status(
    name: _Name = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page about it into this file.")] = None,
    as_json: _Json = False,
) -> None:
    """Say how far a rollout is."""
    from llamarig.cli.context import project_root
    from llamarig.fleet.rollout import places
    from llamarig.fleet.rollout.state import State

    told = State.read(places.find(project_root(), name))
    if html is not None:
        from llamarig.cli.plan_view.files import replaceable, write_page
        from llamarig.fleet.view import page

        replaceable(html, "rollout")
        write_page(html, page(told))
    _end(told, as_json)


@app.command()
def pause(name: _Name = None, as_json: _Json = False) -> None:
    """Stop after the hosts that are being changed now; `resume` goes on."""
    from llamarig.cli.context import project_root
    from llamarig.fleet.rollout import session

    told = session.pause(project_root(), name)
    _say_asked(told)
    _end(told, as_json)


@app.command()
def resume(
    name: _Name = None,
    reboot: _Reboot = False,
    yes: _Yes = False,
    ignore_use: _Use = False,
    break_lock: _Break = False,
    ask_become_pass: _Become = False,
    as_json: _Json = False,
) -> None:
    """Go on: after a pause, when it was cut off, or with hosts that were left for later."""
    from llamarig.cli.context import err
    from llamarig.cli.rollout_plan import warn
    from llamarig.fleet.rollout import refuse, session

    found = _may("resume", name)
    if reboot:
        warn(refuse.reboots_none(found), err())
    if not yes:
        _ask(f"the rollout {found.id} goes on; services that change are restarted{_reboots_of(found, asked=reboot)}")
    with _driving(break_lock, ask_become_pass, ignore_use=ignore_use) as given:
        told = session.resume(given, name, reboot=reboot)
    _end(told, as_json)


@app.command()
def abort(
    name: _Name = None,
    yes: _Yes = False,
    break_lock: _Break = False,
    ask_become_pass: _Become = False,
    as_json: _Json = False,
) -> None:
    """End it: hosts in the middle are brought to an end, no other is begun."""
    from llamarig.cli.context import project_root
    from llamarig.fleet.rollout import session

    told = session.ask_to_abort(project_root(), name)
    if told is None:
        found = _may("abort", name)
        if not yes:
            _ask(f"the rollout {found.id} ends; hosts in the middle are finished, services that change are restarted")
        with _driving(break_lock, ask_become_pass) as given:
            told = session.abort(given, name)
    else:
        _say_asked(told)
    _end(told, as_json)


@app.command()
def rollback(
    name: _Name = None,
    yes: _Yes = False,
    break_lock: _Break = False,
    ask_become_pass: _Become = False,
    as_json: _Json = False,
) -> None:
    """Take back what this rollout changed, the last first, each host to its own former release."""
    from llamarig.fleet.rollout import refuse, session

    found = _may("rollback", name)
    if not yes:
        _ask(refuse.to_take_back(found))
    with _driving(break_lock, ask_become_pass) as given:
        told = session.rollback(given, name)
    _end(told, as_json)


def _wish(loaded: list[LoadedHost], canary: int | None, failures: int | None, options: dict[str, bool]) -> Start:
    """The waves by the fleet's policy, with what the command line says instead.

    Raises :class:`RigErrors` for refused specs whose hosts have names that no journal keeps as they are.
    """
    from llamarig.cli.context import err
    from llamarig.cli.rollout_plan import warn
    from llamarig.fleet.policy import policy_of, waves
    from llamarig.fleet.rollout.journal import clean
    from llamarig.fleet.rollout.session import Start
    from llamarig.fleet.rollout.state import Wave
    from llamarig.spec.fleet_labels import uncarried_by
    from llamarig.spec.problem import combined

    given = {"canary": canary, "failures": failures}
    said = policy_of([each for each in loaded if each.spec is not None])
    policy = said.model_copy(update={key: value for key, value in given.items() if value is not None})
    warn(uncarried_by(loaded, policy), err())
    labels = {each.host: each.spec.labels if each.spec is not None else {} for each in loaded}
    refused = {each.host: combined(each.errors, each.path) for each in loaded if each.spec is None}
    if nameless := [error for host, error in refused.items() if clean(host) != host]:
        # The journal would know it by another name.
        raise RigErrors(nameless)
    found = [Wave(wave.name, list(wave.hosts)) for wave in waves(labels, policy)]
    return Start(found, policy.model_dump(mode="json", by_alias=True), options, refused)


def _reboots(loaded: list[LoadedHost], *, asked: bool) -> str:
    """What a question says of reboots, by what the specs allow and somebody asks; empty where none can come."""
    specs = [each.spec for each in loaded if each.spec is not None]
    managed = [spec.maintenance.reboot for spec in specs if spec.driver is not None and spec.engine.backend == "cuda"]
    if asked and any(said != "never" for said in managed):
        return ", and hosts that need it are rebooted"
    return ", and hosts with `maintenance.reboot: now` that need it are rebooted" if "now" in managed else ""


def _reboots_of(told: State, *, asked: bool) -> str:
    """The same of a rollout that is to be gone on with, by the specs as they are now."""
    from llamarig.cli.context import overlay, project_root
    from llamarig.fleet.rollout.state import OVER, ROLLING_BACK
    from llamarig.spec.load import load_project

    if told.status in (*OVER, ROLLING_BACK):
        return ""
    loaded = [each for each in load_project(project_root(), overlay()).hosts if each.host in told.hosts]
    return _reboots(loaded, asked=asked or bool(told.options.get("reboot")))


def _may(verb: str, name: str | None) -> State:
    """The rollout that the verb works on; what stands against it is told before anybody is asked."""
    from llamarig.cli.context import overlay, project_root
    from llamarig.fleet.rollout import refuse
    from llamarig.fleet.rollout.lock import refuse_while_rolling

    refuse_while_rolling(project_root())
    return refuse.may(project_root(), verb, name, overlay())


def _ask(what: str) -> None:
    from llamarig.cli.ask import ask_or_refuse

    ask_or_refuse(what)


@contextmanager
def _driving(break_lock: bool, ask_become_pass: bool, *, ignore_use: bool = False) -> Iterator[Session]:
    """A session with the live view; what a Ctrl-C leaves behind is said."""
    from llamarig.cli.apply import become_password
    from llamarig.cli.context import err, overlay, project_root
    from llamarig.cli.rollout_view import show_key
    from llamarig.converge.apply import Options
    from llamarig.converge.private import private_directory
    from llamarig.fleet.in_use import UseGate
    from llamarig.fleet.rollout.session import Session, no_gate
    from llamarig.fleet.view import RolloutView

    with private_directory() as private:
        password, laid = become_password(private) if ask_become_pass else None, overlay()
        options = Options(break_lock=break_lock, become_password_file=password)
        try:
            with RolloutView(err(), show_key) as view:
                gate = no_gate if ignore_use else UseGate(project_root(), options, view.event, laid)
                given = Session(project_root(), options, view.event, view.state, view.known, gate=gate, overlay=laid)
                yield given
        except KeyboardInterrupt:
            raise RigError(
                what="interrupted; hosts that were being changed may be half changed",
                fix="llamarig rollout resume looks at them first, and brings them to an end",
                code=ExitCode.HOST_FAILED,
            ) from None


def _say_asked(told: State) -> None:
    """What was asked of a rollout from aside, and what it will do: its state does not show that yet."""
    from llamarig.cli.context import project_root
    from llamarig.cli.rollout_view import say_asked
    from llamarig.fleet.rollout import control, places

    say_asked(told, control.asked(places.find(project_root(), told.id)))


def _end(told: State, as_json: bool) -> None:
    from llamarig.cli.context import emit_json, project_root
    from llamarig.cli.rollout_view import say
    from llamarig.fleet.rollout import control, places, session

    driver = session.driver(project_root(), told)
    asked = control.asked(places.find(project_root(), told.id)) if driver else ""
    if as_json:
        emit_json(told.to_json() | {"driver": driver, "asked": asked})
    else:
        say(told, driver, asked)
    raise typer.Exit(int(session.exit_code(told)))
