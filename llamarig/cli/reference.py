"""Writes ``docs/reference/commands.md`` from the commands themselves: ``python -m llamarig.cli.reference``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from llamarig.cli.main import VERBS, app
from llamarig.cli.start import INTERRUPTED
from llamarig.errors import ExitCode
from llamarig.paths import data_root

FILE = data_root() / "docs" / "reference" / "commands.md"
"""Where the page lies in a checkout."""

EXITS: dict[str, str] = {
    "init": "1 the machine runs neither Debian nor Ubuntu; 2 a file is there already; 3 it cannot be reached",
    "check": "2 a spec has an error (warnings do not count)",
    "lock": "1 `--check` found something to write; 2 a value cannot be looked up as the spec has it; 3 a server failed",
    "plan": "1 a host does not fit, or no value that `--solve` looks for; 2 a spec has an error",
    "advise": "1 the cards are no host for the model; 2 a card or model that is not known",
    "diff": "1 there is something to do; 2 a spec has an error; 3 a host cannot be looked at",
    "render": "2 a spec has an error, or the directory holds anything that `render` did not write",
    "apply": "1 the plan does not fit; 2 refused before anything was touched; 3 a host failed or was rolled back",
    "verify": "1 a check failed; 2 a spec has an error; 3 a host cannot be asked",
    "status": "0 also when nothing runs; 2 a spec has an error; 3 a host cannot be looked at",
    "drift": "1 something differs; 2 a spec has an error; 3 a host cannot be looked at",
    "rebuild": "1 a reboot is needed and was not made, or the plan does not fit; 2 refused before anything was touched"
    "; 3 a host failed, did not come back, or came back with something that does not agree",
    "mirror": "1 packages of a system have never been collected; 2 a spec has an error, or a pinned content is another"
    "; 3 something could not be fetched, or a host not asked",
    "rollback": "2 refused before anything was touched; 3 a host failed, or has no former state",
    "rollout": "1 hosts were left for later, or `plan` found something to do; 2 a host's spec is refused, or everything"
    " was before anything was touched"
    "; 3 a host failed or was rolled back, the rollout stopped, or `plan` found a host silent",
    "doctor": "1 an error or a warning was found, or a text is not known; 2 it is not said what to examine, or it "
    "cannot be read; 3 a host cannot be asked",
    "model": "2 the file is no whole GGUF file, or an option is wrong",
}
"""What each verb's exit status says beyond 0; a test holds the names against the verbs."""

_PLACEHOLDERS = {int: "N", Path: "PATH"}

_MEANINGS = {
    ExitCode.OK: "done, nothing to complain about",
    ExitCode.FINDING: "a finding: it does not fit, something differs, a check failed",
    ExitCode.BAD_INPUT: "the input is wrong; nothing was touched",
    ExitCode.HOST_FAILED: "a host failed or was rolled back, or a file or the output could not be written or read",
}

_HEAD = """\
# Commands

Written from the commands by `python -m llamarig.cli.reference`; do not edit it here.

`llamarig [-C DIR] [--overlay FILE] VERB …`: `-C` names the project's directory, here when it is not given; `--overlay`
lays [the values of a file](../how-to/overlays.md) on the spec of the host that it names. Both may stand behind the
verb as well. A host is named by the `host:` of its spec. Verbs that take hosts want at least one, or `--all`
(`check` looks at everything when none is named). With `--json` standard output holds one JSON document, whose keys
are in [json.md](json.md); progress and problems go to standard error. `--help` after any verb shows its options.

## Exit codes

| code | meaning |
|---|---|
"""


def text() -> str:
    """The whole page."""
    parts = [_HEAD, *(f"| {int(code)} | {meaning} |\n" for code, meaning in _MEANINGS.items())]
    parts.append(f"| {INTERRUPTED} | Ctrl-C ended the command; what `apply` had begun goes on at its next run |\n")
    parts.append("\nSeveral hosts with different outcomes end with the highest of their codes.\n")
    group = _command()
    for verb, line in VERBS.items():
        found = group.get_command(None, verb)
        parts.append(f"\n## `{verb}`\n\n{line}\n")
        below = getattr(found, "commands", None)
        if below is None:
            parts.append(_usage(verb, found))
        else:
            for name, command in below.items():
                parts.append(f"\n### `{verb} {name}`\n\n{_words(command)}\n{_usage(f'{verb} {name}', command)}")
        parts.append(f"\nExit codes beyond 0: {EXITS[verb]}.\n")
    return "".join(parts)


def _command() -> Any:
    import typer

    return typer.main.get_group(app)


def _words(command: Any) -> str:
    """A command's own help on one line, in Markdown's quotes."""
    return " ".join(str(command.help or "").split()).replace("``", "`")


def _usage(name: str, command: Any) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and param.name != "help"]
    shown = "".join(f" {_argument(param)}" for param in arguments)
    rows = "".join(f"| `{_argument(param)}` | {_cell(param.help)} |  |\n" for param in arguments) + "".join(
        f"| `{_flag(param)}` | {_cell(param.help)} | {_default(param)} |\n" for param in options
    )
    usage = f"\n```\nllamarig {name}{shown} [OPTIONS]\n```\n"
    return f"{usage}\n| argument or option | what it does | default |\n|---|---|---|\n{rows}"


def _argument(param: Any) -> str:
    name = str(param.name).upper() + ("…" if param.nargs == -1 else "")
    return name if param.required else f"[{name}]"


def _flag(param: Any) -> str:
    names = ", ".join(sorted(param.opts, key=len, reverse=True))
    kind = param.type_descriptor.annotation
    return names if kind is bool else f"{names} {_PLACEHOLDERS.get(kind, 'TEXT')}"


def _default(param: Any) -> str:
    if param.required:
        return "**required**"
    kind = param.type_descriptor.annotation
    return "" if param.default is None or kind is bool else f"`{param.default}`"


def _cell(words: Any) -> str:
    return str(words or "").replace("|", "\\|")


def main(file: Path = FILE) -> None:
    """Write the page."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
