"""Output that cannot be written, names that steer a terminal, Ctrl-C, and documents for a wrong command line."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text

from llamarig.cli import start
from llamarig.cli.console import SafeConsole, plain
from tests.support import gguf_bytes as raw

ROOT = Path(__file__).resolve().parents[3]
ODD = "a\x1b[31mred\u202eb"


def rig(*words: str, shell: str = "", cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """The command, its output where ``shell`` sends it."""
    command = [sys.executable, "-m", "llamarig.cli.start", *words]
    if shell:
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, check=False)


@pytest.mark.parametrize("words", [("plan", "--all"), ("plan", "--all", "--json"), ("--help",), ("check", "--json")])
@pytest.mark.parametrize("shell", [">/dev/full", ">&-"])
def test_output_that_cannot_be_written_is_said_and_ends_with_3(words: tuple[str, ...], shell: str) -> None:
    done = rig(*words, shell=shell)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "output" in done.stderr


def test_a_name_that_no_file_can_have_is_told() -> None:
    for words in (("check",), ("render", "--all", "--out"), ("model", "header"), ("-C",)):
        name = "a" * 300 + ".yml"
        done = rig(*words, name, *(["check"] if words == ("-C",) else []))
        assert done.returncode in {2, 3}, words
        assert "Traceback" not in done.stderr
        assert name in done.stderr.replace("\n", "")


def test_without_standard_error_the_exit_code_still_says_it() -> None:
    assert rig("plan", "nobody", shell="2>&-").returncode == 2


def test_nothing_steers_the_terminal(tmp_path: Path) -> None:
    (tmp_path / f"{ODD}.gguf").write_text("x")
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory" / f"{ODD}.yml").write_text("host: [")
    for words in (
        ("model", "header", f"{ODD}.gguf"),
        ("model", "header", f"{ODD}/none.gguf"),
        ("check",),
        ("plan", "--all"),
        ("-C", ODD, "check"),
        ("-C", ODD, "plan", "--all"),
        ("doctor", "--bundle", ODD),
        ("render", "--all", "--out", ODD),
    ):
        done = rig(*words, cwd=tmp_path)
        said = done.stdout + done.stderr
        assert not set("\x1b\u202e") & set(said), words
        assert done.returncode != 1, (words, said)


def test_a_line_break_in_a_name_begins_no_message(tmp_path: Path) -> None:
    done = rig("model", "header", "x\nerror: all is well", cwd=tmp_path)
    assert "\nerror: all is well" not in done.stderr
    assert "x\\nerror" in done.stderr


def test_a_console_escapes_strings_and_texts() -> None:
    stream = io.StringIO()
    console = SafeConsole(file=stream, width=80)
    console.print(f"[bold]{ODD.replace('[', chr(92) + '[')}[/]", "é 漢", soft_wrap=True)
    console.print(Text(ODD))
    assert not set("\x1b\u202e") & set(stream.getvalue())
    assert "a\\x1b[31mred\\u202eb é 漢" in stream.getvalue()
    assert "a\N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER}b" in stream.getvalue()
    assert plain("two\nlines\twide") == "two\nlines\twide"


@pytest.mark.parametrize(
    "words",
    [
        ("model", "memory", "X", "--context", "0", "--json"),
        ("plan", "--bogus", "--json"),
        ("model", "memory", "--json"),
        ("advise", "--years", "x", "--json"),
    ],
)
def test_a_wrong_command_line_has_a_document_too(words: tuple[str, ...]) -> None:
    done = rig(*words)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["what"] != ""
    assert rig(*words[:-1]).stdout == ""


def test_ctrl_c_ends_with_130_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import os, signal, sys; from llamarig.cli import start\n"
        "class Now:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Now()); sys.argv = ['llamarig', 'check']; start.main()"
    )
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "")

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("llamarig.cli.main.main", interrupted)
    with pytest.raises(SystemExit) as ended:
        start.main()
    assert ended.value.code == start.INTERRUPTED


@pytest.mark.parametrize("kind", ["eagle3", "dflash", "draft-model"])
def test_memory_with_a_drafter_that_nobody_names_is_refused(kind: str) -> None:
    done = rig("model", "memory", "X", "--context", "4096", "--spec-type", kind, "--n-max", "3")
    assert done.returncode == 2
    assert "needs a drafter" in done.stderr


def test_an_error_of_a_header_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(raw.Composed().add("general.architecture", raw.STRING, "llama").bytes())
    done = rig("model", "memory", "odd.gguf", "--context", "4096", cwd=tmp_path)
    assert done.returncode == 2
    assert "error: odd.gguf: " in done.stderr


@pytest.mark.parametrize("word", ["inf", "nan"])
def test_advice_wants_numbers_that_there_are(word: str) -> None:
    done = rig("advise", "--gpu", "rtx-4090", "--model", "qwen3.8-27b", "--ram-gb-s", word)
    assert done.returncode == 2
    assert "ram-gb-s" in done.stderr
