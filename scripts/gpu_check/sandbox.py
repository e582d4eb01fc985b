"""Which directives of the hardened unit a card's driver gets on with: all at once, and else which one is to blame."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence

from llamarig.render import power
from llamarig.render.sandbox import UNPROVEN_ON_GPU
from scripts.gpu_check import judge
from scripts.gpu_check.report import Verdict

SECONDS = 60

Try = Callable[[Sequence[str]], str]
"""Starts a server with the given directives left out; why it does not serve, or an empty text."""


def blame(first: str, attempt: Try, asked: bool) -> Iterator[Verdict]:
    """A verdict for each directive; ``first`` is why the whole unit did not serve, empty when it did.

    With nothing to blame one start answers for all. Else each is left out by itself: those without which it serves
    are named. Where it does not serve without any of them either, the sandbox is not what is wrong.
    """
    if not asked:
        for directive in UNPROVEN_ON_GPU:
            yield judge.skipped(f"sandbox/{directive}", "only under systemd as root, with a card")
        return
    if not first:
        for directive in UNPROVEN_ON_GPU:
            yield judge.verdict(f"sandbox/{directive}", True, "the server serves from the card with it")
        return
    if why := attempt(UNPROVEN_ON_GPU):
        for directive in UNPROVEN_ON_GPU:
            yield judge.skipped(f"sandbox/{directive}", f"without all of them it does not serve either: {why[-300:]}")
        return
    for directive in UNPROVEN_ON_GPU:
        without = attempt((directive,))
        words = f"with it: {first[-300:]}" if not without else "it does not serve without this one alone either"
        yield judge.verdict(f"sandbox/{directive}", bool(without), words)


def power_command(unit: Sequence[tuple[str, str]] = power.SANDBOX) -> list[str]:
    """nvidia-smi reading the limits in the sandbox of the unit that sets them; nothing is set."""
    given = [f"--property={key}={value}" for key, value in unit]
    smi = shutil.which("nvidia-smi") or power.SMI
    return ["systemd-run", "--wait", "--pipe", "--quiet", "--collect", *given, smi, "-q", "-d", "POWER"]


def power_reads(asked: bool) -> Verdict:
    """Whether nvidia-smi works in that sandbox."""
    question = "power/nvidia-smi-in-its-sandbox"
    if not asked:
        return judge.skipped(question, "only under systemd as root, with a card")
    done = subprocess.run(
        power_command(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    ok = done.returncode == 0 and "Power" in done.stdout
    return judge.verdict(question, ok, "it reads the limits" if ok else (done.stderr + done.stdout).strip()[-300:])
