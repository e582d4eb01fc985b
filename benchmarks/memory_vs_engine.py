"""KV and recurrent memory as computed against the engine's own lines when it loads a model.

    python benchmarks/memory_vs_engine.py --engine COMMAND --model LOCAL[=THERE] [--model …]

COMMAND runs llama-server wherever the models lie, for example ``ssh box /opt/llamarig/current/bin/llama-server``;
its output is read. Without arguments a test host is provisioned, with the demo's model, and a tiny
hybrid with an MTP head is put beside it. Each run draws new settings from a printed seed; every
cache line of every context must be equal to the last digit that the engine prints.
"""

from __future__ import annotations

import argparse
import random
import re
import secrets
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from llamarig.gguf import Header, load_sidecar, read_shards
from llamarig.memory import Settings, read_shape
from llamarig.memory.draft_kv import draft_kv_bytes
from llamarig.memory.kv import kv_bytes
from llamarig.memory.recurrent import recurrent_bytes
from llamarig.memory.shape import Layer, Shape
from llamarig.memory.units import KV_TYPES, MIB, row_bytes
from llamarig.memory.window import Window, cut

ROOT = Path(__file__).resolve().parents[1]
KV_LINE = re.compile(
    r"llama_kv_cache: size = +([0-9.]+) MiB \( *(\d+) cells, +(\d+) layers, +(\d+)/(\d+) seqs\), "
    r"K \((\w+)\): +([0-9.]+) MiB, V \((\w+)\): +([0-9.]+) MiB"
)
STATE_LINE = re.compile(
    r"llama_memory_recurrent: size = +([0-9.]+) MiB \( *(\d+) cells, +(\d+) layers, +(\d+) seqs +(\d+) rs_seq\), "
    r"R \(f32\): +([0-9.]+) MiB, S \(f32\): +([0-9.]+) MiB"
)
NO_PROJECTOR = "/dev/null"
"""Loading a projector comes last: with one that is none, the engine makes all contexts and then ends by itself."""

Line = tuple[str, ...]
Run = Callable[[list[str]], str]
"""Runs llama-server with these arguments and returns what it printed."""


@dataclass(frozen=True)
class Subject:
    """A model: its header here, and its path where the engine runs."""

    name: str
    header: Header
    path: str


def draw(rng: random.Random, shape: Shape) -> Settings:
    """Any settings that the engine takes for this model."""
    mtp = bool(shape.mtp_layers) and rng.random() < 0.8
    return Settings(
        context=rng.randint(1024, 24_000),
        backend="cpu",
        parallel=rng.randint(1, 6),
        kv_unified=rng.random() < 0.5,
        batch=512,
        ubatch=rng.choice([64, 128, 256, 512]),
        cache_k=rng.choice(KV_TYPES),
        cache_v=rng.choice(KV_TYPES),
        speculation="draft-mtp" if mtp else None,
        n_max=rng.randint(1, 8) if mtp else 0,
        draft_k=rng.choice(KV_TYPES),
        draft_v=rng.choice(KV_TYPES),
    )


def arguments(settings: Settings, path: str, port: int) -> list[str]:
    """The command line for these settings."""
    words = ["--model", path, "--mmproj", NO_PROJECTOR, "--host", "127.0.0.1", "--port", str(port)]
    words += ["--device", "none", "--fit", "off", "--no-warmup", "--offline", "--no-ui", "--log-verbosity", "4"]
    words += ["--ctx-size", str(settings.context), "--parallel", str(settings.parallel)]
    words += ["--kv-unified" if settings.kv_unified else "--no-kv-unified"]
    words += ["--batch-size", str(settings.batch), "--ubatch-size", str(settings.ubatch), "--flash-attn", "on"]
    words += ["--cache-type-k", settings.cache_k, "--cache-type-v", settings.cache_v]
    if settings.speculation:
        words += ["--spec-type", settings.speculation, "--spec-draft-n-max", str(settings.n_max)]
        words += ["--spec-draft-type-k", settings.draft_k, "--spec-draft-type-v", settings.draft_v]
    return words


def shown(size: int) -> str:
    """Bytes as the engine prints them."""
    return f"{size / MIB:.2f}"


def cache_line(layers: list[Layer], kinds: tuple[str, str], window: Window, slots: int, total: int) -> Line:
    """The line of one KV cache; ``total`` is what the model computes, and K and V must sum up to it."""
    cells = window.cells * window.streams
    k = cells * sum(row_bytes(kinds[0], layer.k_width) for layer in layers)
    v = cells * sum(row_bytes(kinds[1], layer.v_width) for layer in layers)
    assert k + v == total, (k, v, total)
    seqs = (str(slots), str(window.streams))
    return (shown(total), str(window.cells), str(len(layers)), *seqs, kinds[0], shown(k), kinds[1], shown(v))


def cache_lines(shape: Shape, settings: Settings) -> Iterator[Line]:
    """The target's line, then the draft's."""
    window = cut(settings)
    kept = [layer for layer in shape.trunk if layer.k_width]
    kinds = (settings.cache_k, settings.cache_v)
    yield cache_line(kept, kinds, window, settings.parallel, kv_bytes(shape, settings, window).host)
    if settings.mtp:
        kinds = (settings.draft_k, settings.draft_v)
        total = draft_kv_bytes(shape, settings, window).host
        yield cache_line(list(shape.mtp_layers), kinds, window, settings.parallel, total)


def state_lines(shape: Shape, settings: Settings) -> Iterator[Line]:
    """The line of the recurrent state, when there is one."""
    layers = sum(layer.recurrent for layer in shape.trunk)
    if layers:
        rows = settings.parallel * (1 + settings.snapshots) * layers * 4
        r, s = rows * shape.conv_elements, rows * shape.state_elements
        total = recurrent_bytes(shape, settings).host
        assert r + s == total, (r, s, total)
        slots = str(settings.parallel)
        yield (shown(total), slots, str(len(shape.trunk)), slots, str(settings.snapshots), shown(r), shown(s))


def differences(subject: Subject, run: Run, settings: Settings, port: int) -> Iterator[str]:
    """What the engine printed otherwise."""
    shape = read_shape(subject.header)
    text = run(arguments(settings, subject.path, port))
    printed = [match.groups() for match in KV_LINE.finditer(text)]
    for what, found, computed in (
        ("KV", printed, list(cache_lines(shape, settings))),
        ("state", [match.groups() for match in STATE_LINE.finditer(text)], list(state_lines(shape, settings))),
    ):
        if found != computed:
            yield f"{what}: the engine printed {found}, computed {computed}"
    if not printed:
        yield f"the engine ended with: {text[-600:]}"


def compare(subjects: list[Subject], run: Run, rounds: int, rng: random.Random, port: int) -> tuple[int, int]:
    """(equal, all) over all settings; each is printed."""
    equal = 0
    for subject in subjects:
        for _ in range(rounds):
            settings = draw(rng, read_shape(subject.header))
            problems = list(differences(subject, run, settings, port))
            equal += not problems
            slots = f"{settings.parallel} slots{' unified' if settings.kv_unified else ''}"
            draft = f"n_max {settings.n_max} in {settings.draft_k}/{settings.draft_v}" if settings.mtp else "no draft"
            verdict = "DIFFERENT" if problems else "equal"
            kinds = f"{settings.cache_k}/{settings.cache_v}"
            print(
                f"{verdict}: {subject.name}, {settings.context} tokens, {slots}, {kinds}, {draft}", *problems, sep="\n "
            )
    return equal, len(subjects) * rounds


def local_run(command: str) -> Run:
    """Runs the engine by a command of the user's."""

    def run(words: list[str]) -> str:
        done = subprocess.run(
            [*shlex.split(command), *words], capture_output=True, text=True, errors="replace", timeout=120, check=False
        )
        return done.stdout + done.stderr

    return run


@contextmanager
def test_host() -> Iterator[tuple[Run, list[Subject]]]:
    """A provisioned test host with the demo's model and the tiny hybrid."""
    from lab import Lab  # noqa: PLC0415 - a user's own engine needs no test host
    from lab.project import Project, demo_spec  # noqa: PLC0415 - a user's own engine needs no test host

    sys.path.insert(0, str(ROOT))
    from tests.support.tiny_models import write_qwen35  # noqa: PLC0415 - found below the checkout only

    with Lab("memory") as lab, tempfile.TemporaryDirectory() as scratch:
        host = lab.host("memory", fresh=True)
        project = Project(Path(scratch) / "project")
        project.describe(host)
        project.rig("apply", host.name, "--yes", "--json").ok()
        tiny = write_qwen35(Path(scratch) / "tiny-qwen35.gguf")
        host.write("/var/tmp/tiny-qwen35.gguf", tiny.read_bytes())
        smol = demo_spec()["models"]["smol"]
        link = f"/var/lib/llamarig/models/smol/{Path(smol['member']).name}"
        subjects = [
            Subject("SmolLM2", load_sidecar(ROOT / "headers" / f"{smol['sha256']}.json"), link),
            Subject("tiny qwen35", read_shards(tiny), "/var/tmp/tiny-qwen35.gguf"),
        ]
        server = "/opt/llamarig/current/bin/llama-server"
        yield lambda words: host.exec([server, *words], check=False).output, subjects


def main() -> int:
    """Compare and print one row; 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", help="command that runs llama-server; a test host when not given")
    parser.add_argument("--model", action="append", default=[], metavar="LOCAL[=THERE]")
    parser.add_argument("--rounds", type=int, default=5, help="settings for each model")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--port", type=int, default=18_779, help="a free port where the engine runs")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}")
    rng = random.Random(seed)
    if options.engine:
        pairs = [pair.partition("=") for pair in options.model]
        subjects = [Subject(Path(here).name, read_shards(Path(here)), there or here) for here, _, there in pairs]
        equal, total = compare(subjects, local_run(options.engine), options.rounds, rng, options.port)
    else:
        with test_host() as (run, subjects):
            equal, total = compare(subjects, run, options.rounds, rng, options.port)
    met = equal == total > 0
    print(f"KV and state over the engine's lines  {equal} of {total} settings equal  all  {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
