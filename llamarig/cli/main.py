"""The ``llamarig`` command: finds the verb, turns problems into messages and exit codes."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from llamarig import __version__
from llamarig.cli.output import OutputError, give_up, name_streams
from llamarig.cli.start import INTERRUPTED
from llamarig.errors import ExitCode, RigError, RigErrors

VERBS: dict[str, str] = {
    "init": "Look at a machine, read-only, and write a spec for it.",
    "check": "Read all specs and report every error with file, line and a fix.",
    "lock": "Resolve what must be pinned; the only command that looks things up on the internet.",
    "plan": "Compute memory, arguments and findings before anything is touched.",
    "advise": "Say which quant of a model suits a card, and with what window.",
    "diff": "Show what apply would do, and why.",
    "render": "Write the files that would land on a host.",
    "apply": "Make a host what its spec says, and prove it.",
    "verify": "Prove the running services against the spec.",
    "status": "Show what runs, since when, and from which release.",
    "drift": "Show what differs from the spec.",
    "rebuild": "Say what changed, redo what follows, and reboot where that is needed and allowed.",
    "mirror": "Collect what hosts need into a directory, for a site without internet access.",
    "rollback": "Switch a host back to its former release.",
    "rollout": "Bring a fleet to its specs in waves, stop on the first bad sign, and go back.",
    "doctor": "Say what is wrong with a machine, a saved bundle or a pasted error, and what to do.",
    "model": "Look into a GGUF file.",
}
"""Every verb that is built, with its line of help; each lives in ``llamarig/cli/<verb>.py``."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FIRST = {"-C": "--project", "--project": "--project", "--overlay": "--overlay"}
"""Options of the whole command, by every way to write them."""
UNBUILT = ("logs", "bench", "tune", "gc", "remove", "keys")
"""Verbs that the design names and this version does not have."""


_wrong: list[str] = []
"""What typer told of a command line that it refused, for the document of ``--json``."""


class _Verbs(TyperGroup):
    """Imports a verb's module only when that verb is used."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _noting():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _noting():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - click's signature
        if cmd_name not in VERBS:
            raise _unknown(cmd_name)
        module = importlib.import_module(f"llamarig.cli.{cmd_name}")
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        target = getattr(module, "app", None)
        if target is not None:
            group = typer.main.get_group(target)
            group.name, group.help = cmd_name, VERBS[cmd_name]
            return group
        single.command(name=cmd_name, help=VERBS[cmd_name])(getattr(module, cmd_name))
        return typer.main.get_command(single)


@contextmanager
def _noting() -> Iterator[None]:
    """Note what the command line's parser refuses; it prints that itself."""
    try:
        yield
    except Exception as error:
        told = getattr(error, "format_message", None)  # the parser's errors have it, and no class that typer shows
        if told is not None:
            _wrong.append(str(told()))
        raise


def _unknown(verb: str) -> RigError:
    """A verb that there is not: to be built, or mistyped."""
    import difflib

    where = "llamarig --help lists what there is"
    if verb in UNBUILT:
        return RigError(what=f"the verb {verb} is not built yet in this version", fix=where)
    near = difflib.get_close_matches(verb, VERBS, n=3, cutoff=0.5)
    fix = f"did you mean {' or '.join(near)}?" if near else where
    return RigError(what=f"there is no verb {verb!r}", fix=fix)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"llamarig {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=_Verbs,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A host spec in, a proven inference box out.",
)


@app.callback()
def _root(
    context: typer.Context,
    project: Annotated[Path, typer.Option("-C", "--project", help="The project's directory.")] = Path(),
    overlay: Annotated[
        Path | None, typer.Option("--overlay", help="Lay the values of this file on the spec of the host it names.")
    ] = None,
    _show: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    from contextlib import ExitStack

    from llamarig.cli.context import set_end, set_overlay, set_project

    set_end(context.with_resource(ExitStack()))
    set_project(project)
    set_overlay(overlay)


def _whole_first(argv: list[str]) -> list[str]:
    """Allow ``-C DIR`` and ``--overlay FILE`` after the verb as well: they belong to the whole command, each once."""
    given: dict[str, list[str]] = {}
    rest, words = [], iter(argv)
    for word in words:
        name, equals, inline = word.partition("=")
        if word in _FIRST and (value := next(words, None)) is not None:
            given.setdefault(_FIRST[word], []).append(value)
        elif equals and name.startswith("--") and name in _FIRST:
            given.setdefault(_FIRST[name], []).append(inline)
        else:
            rest.append(word)
    for name, values in given.items():
        if len(values) > 1:
            short = "-C" if name == "--project" else name
            raise RigError(what=f"{short} is given more than once", why=", ".join(values), fix="give it once")
    return [*(word for name, values in given.items() for word in (name, values[0])), *rest]


def _complain(error: RigError) -> None:
    from rich.markup import escape

    from llamarig.cli.context import err

    # A name of a file may hold a line break, and a message of its own behind it.
    where = "{}: ".format(escape(error.where).replace("\n", "\\n")) if error.where else ""
    err().print(f"[bold red]error:[/] {where}{escape(error.what)}", soft_wrap=True)
    if error.why:
        err().print(f"  why: {escape(error.why)}", soft_wrap=True)
    if error.fix:
        err().print(f"  fix: {escape(error.fix)}", soft_wrap=True)


def _refused(errors: list[RigError], argv: list[str]) -> None:
    """The errors in words; as a document too where the user asked for one."""
    for each in errors:
        _complain(each)
    _document(errors, argv)


def _document(errors: list[RigError], argv: list[str]) -> None:
    from llamarig.cli.context import emit_json, printed

    if "--json" in argv and not printed():
        shown = [{"what": each.what, "where": each.where, "why": each.why, "fix": each.fix} for each in errors]
        emit_json({"error": shown[0], "errors": shown})


def _run(argv: list[str]) -> int:
    """The exit code of a command, its output written."""
    _wrong.clear()
    try:
        try:
            app(args=_whole_first(argv), prog_name="llamarig")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
            if _wrong and code == ExitCode.BAD_INPUT:
                _document([RigError(what=_wrong[-1], fix="llamarig --help, or --help behind the verb")], argv)
            return code
        except RigError as error:
            _refused([error], argv)
            return int(error.code)
        except RigErrors as errors:
            _refused(errors.errors, argv)
            return int(errors.code)
        return 0
    finally:
        sys.stdout.flush()


def main() -> None:
    """End the process with the documented exit code."""
    name_streams()
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    if sys.stdout is None:
        sys.stderr.write("error: standard output is closed\n  fix: write it to a file, or to /dev/null\n")
        sys.exit(int(ExitCode.HOST_FAILED))
    try:
        sys.exit(_run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:
        _system_error(error)
        sys.exit(int(ExitCode.HOST_FAILED))


def _system_error(error: OSError) -> None:
    """Say what the system refused: to write the output, to use a file, or what names nothing."""
    what = "the system refuses what llamarig needs" if error.filename is None else "a file cannot be used"
    if isinstance(error, OutputError):
        give_up(error)
        if error.errno == errno.EPIPE or error.descriptor == sys.stderr.fileno():
            return
        what = "the output cannot be written"
    fix = "make room there, and run the same command again" if error.errno in _FULL else ""
    told = RigError(what, str(error.filename or ""), error.strerror or str(error), fix)
    try:
        _refused([told], [] if isinstance(error, OutputError) else sys.argv[1:])
        sys.stdout.flush()
    except OutputError as silent:
        give_up(silent)


if __name__ == "__main__":
    main()
