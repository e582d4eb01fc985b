"""Every term of a server's memory as planned against the lines of a real server, for a small model of each family.

    python benchmarks/small_servers.py [--engine PROGRAM] [--model NAME …] [--rounds N] [--seed N] [--port N]

PROGRAM is a llama-server of the reference engine on this machine. Without it a test host is provisioned, and its own
server is used. The models are published ones, shrunk to a few MB (``tests.support.models.small``).

Two comparisons for each model. With settings drawn from a printed seed, the server's buffer lines: weights, KV and
state have to be equal to the last digit; compute and logits together must not be more than planned, and at most 3 %
less. Then a server that has made a whole pass: its resident memory must not be more than planned.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from llamarig.gguf import Header, read_shards  # noqa: E402 - found below the checkout
from llamarig.memory import Settings, estimate, read_shape  # noqa: E402 - found below the checkout
from llamarig.memory.draft_outputs import draft_output_bytes  # noqa: E402 - found below the checkout
from llamarig.memory.engines import of_build  # noqa: E402 - found below the checkout
from llamarig.memory.logits import logit_bytes  # noqa: E402 - found below the checkout
from llamarig.memory.units import KV_TYPES, MIB  # noqa: E402 - found below the checkout
from tests.support.models.small import SMALL, write_small  # noqa: E402 - found below the checkout

BUFFER = re.compile(r"(\w+) +(model|KV|RS|compute|output) buffer size = +([0-9.]+) MiB")
ERA = replace(of_build(10_454).era, draft_sampling=False)
"""Of the reference engine, which PROGRAM and the test host's server are built from, as it is until a drafter gets its
samplers: the servers whose lines are read end before that."""
PASS = 128
"""Tokens of the pass that a living server makes."""
NO_PROJECTOR = "/dev/null"
"""Loading a projector comes last: with one that is none, the server makes all contexts and then ends by itself."""
WHOLE = ("f16", "bf16", "f32")
TERMS = {
    "weights": ("weights", "draft-weights"),
    "cache": ("kv-cache", "draft-kv-cache", "recurrent-state"),
    "compute": ("compute", "draft-compute"),
}
LINES = {"model": "weights", "KV": "cache", "RS": "cache", "compute": "compute", "output": "compute"}
ROUNDING_MIB = 0.005
TOLERANCE = 0.03

RESIDENT = """
import json, subprocess, sys, time, urllib.error, urllib.request
words, tokens = json.loads(sys.argv[1]), int(sys.argv[2])
server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
url = "http://127.0.0.1:" + words[words.index("--port") + 1]
try:
    for _ in range(600):
        try:
            urllib.request.urlopen(url + "/health", timeout=5)
            break
        except OSError:
            time.sleep(0.1)
    body = json.dumps({"prompt": [5] * tokens, "n_predict": 1, "cache_prompt": False}).encode()
    asked = urllib.request.Request(url + "/completion", body, {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(asked, timeout=300).read()
    except urllib.error.HTTPError as answer:
        # Random weights may answer with what is no text.
        assert answer.code == 500, answer
    for line in open(f"/proc/{server.pid}/status"):
        if line.startswith("VmHWM:"):
            print("resident", int(line.split()[1]) / 1024)
finally:
    server.kill()
    server.wait()
"""
"""Runs where the server is: starts it, lets it read ``tokens`` tokens, prints the most MiB that it held."""

Run = Callable[[list[str]], str]


@dataclass(frozen=True)
class Place:
    """Where servers are started."""

    run: Run
    server: str
    models: dict[str, tuple[Header, str]]
    """By name, the header and the file's path there."""


def draw(rng: random.Random, header: Header) -> Settings:
    """Any settings that the engine takes for this model."""
    shape = read_shape(header)
    flash = rng.random() < 0.7
    k = rng.choice(KV_TYPES)
    v = rng.choice(KV_TYPES if flash else WHOLE)
    latent = any(layer.k_width and not layer.v_width for layer in shape.layers)
    mtp = bool(shape.mtp_layers) and shape.architecture == "qwen35" and rng.random() < 0.7
    return Settings(
        context=rng.randint(1024, 16_000),
        backend="cpu",
        mapped=False,
        era=ERA,
        parallel=rng.randint(1, 4),
        kv_unified=rng.random() < 0.5,
        batch=512,
        ubatch=rng.choice([64, 128, 256, 512]),
        cache_k=v if latent else k,
        cache_v=v,
        flash_attention=flash,
        speculation="draft-mtp" if mtp else None,
        n_max=rng.randint(1, 8) if mtp else 0,
    )


def arguments(settings: Settings, path: str, port: int) -> list[str]:
    """The command line for these settings, less the program."""
    words = ["--model", path, "--host", "127.0.0.1", "--port", str(port), "--device", "none", "--fit", "off"]
    words += ["--no-warmup", "--offline", "--no-ui", "--log-verbosity", "4", "--load-mode", "none"]
    words += ["--ctx-checkpoints", "0", "--cache-ram", "0"]
    words += ["--ctx-size", str(settings.context), "--parallel", str(settings.parallel)]
    words += ["--kv-unified" if settings.kv_unified else "--no-kv-unified"]
    words += ["--batch-size", str(settings.batch), "--ubatch-size", str(settings.ubatch)]
    words += ["--flash-attn", "on" if settings.flash_attention else "off"]
    words += ["--cache-type-k", settings.cache_k, "--cache-type-v", settings.cache_v]
    if settings.speculation:
        words += ["--spec-type", settings.speculation, "--spec-draft-n-max", str(settings.n_max)]
    return words


@dataclass
class Tally:
    """What the comparisons of one model came to."""

    name: str
    equal: int = 0
    settings: int = 0
    above: float = 0.0
    """The greatest part by which planned compute is above the server's."""
    below: float = 0.0
    """And below."""
    resident: float = 0.0
    planned: float = 0.0

    @property
    def met(self) -> bool:
        return (
            0 < self.equal == self.settings
            and self.above <= TOLERANCE
            and not self.below
            and 0 < self.resident <= self.planned
        )


def printed(text: str) -> tuple[dict[str, float], int]:
    """MiB by term, and the number of lines they were on."""
    found: dict[str, float] = dict.fromkeys(TERMS, 0.0)
    lines = BUFFER.findall(text)
    for _, kind, size in lines:
        found[LINES[kind]] += float(size)
    return found, len(lines)


def grown(header: Header, settings: Settings) -> float:
    """MiB that rows of output still grow by after the start, with the first batch and the first draft."""
    shape = read_shape(header)
    logits = logit_bytes(shape, settings) - logit_bytes(shape, settings, settings.parallel)
    slots = logit_bytes(shape, settings, settings.parallel) if settings.mtp else 0
    return (logits + draft_output_bytes(shape, settings) - slots) / MIB


def compare(tally: Tally, place: Place, settings: Settings, port: int, *, verbose: bool) -> None:
    """One set of settings."""
    header, path = place.models[tally.name]
    planned = estimate(header, settings).host
    text = place.run([place.server, *arguments(settings, path, port), "--mmproj", NO_PROJECTOR])
    seen, lines = printed(text)
    tally.settings += 1
    if not lines or not seen["compute"]:
        print(f"the server ended with: {text[-600:]}", file=sys.stderr)
        return
    ours = {term: sum(planned.get(part, 0.0) for part in parts) for term, parts in TERMS.items()}
    ours["compute"] -= grown(header, settings)
    margin = lines * ROUNDING_MIB
    equal = all(abs(ours[term] - seen[term]) <= margin for term in ("weights", "cache"))
    tally.equal += equal
    apart = ours["compute"] - seen["compute"]
    tally.above = max(tally.above, (apart - margin) / seen["compute"])
    tally.below = max(tally.below, (-apart - margin) / seen["compute"])
    if verbose or not equal or apart < -margin or apart > TOLERANCE * seen["compute"] + margin:
        figures = ", ".join(f"{term} {ours[term]:.2f} of {seen[term]:.2f}" for term in TERMS)
        print(f"{tally.name}: {figures}; {settings}", file=sys.stderr)


def hold(tally: Tally, place: Place, port: int) -> None:
    """A server that has made a whole pass, and the most that it held."""
    header, path = place.models[tally.name]
    settings = Settings(context=16_384, backend="cpu", mapped=False, era=ERA, parallel=1, batch=2048, ubatch=PASS)
    words = [place.server, *arguments(settings, path, port)]
    text = place.run([sys.executable, "-c", RESIDENT, json.dumps(words), str(PASS)])
    found = re.search(r"resident ([0-9.]+)", text)
    if found:
        tally.resident = float(found[1])
    else:
        print(f"{tally.name}: the server did not answer: {text[-300:]}", file=sys.stderr)
    tally.planned = estimate(header, settings).host_mib


def local(words: list[str]) -> str:
    """Run a command here and return what it printed."""
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=400, check=False)
    return done.stdout + done.stderr


@contextmanager
def here(program: str, names: list[str]) -> Iterator[Place]:
    """A server on this machine."""
    with tempfile.TemporaryDirectory() as scratch:
        files = {name: write_small(name, Path(scratch) / f"{name}.gguf") for name in names}
        models = {name: (read_shards(path), str(path)) for name, path in files.items()}
        yield Place(local, str(Path(program).resolve()), models)


@contextmanager
def on_test_host(names: list[str]) -> Iterator[Place]:
    """The server of a provisioned test host, with the models beside it."""
    sys.path.insert(0, str(ROOT / "tests" / "hosts"))
    from lab import Lab  # noqa: PLC0415 - a server of one's own needs no test host
    from lab.project import Project  # noqa: PLC0415 - a server of one's own needs no test host

    with Lab("memory") as lab, tempfile.TemporaryDirectory() as scratch:
        host = lab.host("memory", fresh=True)
        project = Project(Path(scratch) / "project")
        project.describe(host)
        project.rig("apply", host.name, "--yes", "--json").ok()
        models = {}
        for name in names:
            file = write_small(name, Path(scratch) / f"{name}.gguf")
            there = f"/var/tmp/{name}.gguf"
            host.write(there, file.read_bytes())
            models[name] = (read_shards(file), there)

        def run(words: list[str]) -> str:
            program = "python3" if words[0] == sys.executable else words[0]
            return host.exec([program, *words[1:]], check=False).output

        yield Place(run, "/opt/llamarig/current/bin/llama-server", models)


def main() -> int:
    """Compare all models and print the table and two rows; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", metavar="PROGRAM", help="a llama-server here; a test host's when not given")
    parser.add_argument("--model", action="append", default=[], choices=SMALL, metavar="NAME")
    parser.add_argument("--rounds", type=int, default=4, help="settings for each model")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--port", type=int, default=18_781, help="a free port where the server runs")
    parser.add_argument("--verbose", action="store_true", help="print every comparison")
    options = parser.parse_args()
    names = options.model or list(SMALL)
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    rng = random.Random(seed)
    print(f"seed {seed}")
    print(f"{'model':26} {'equal':>9} {'compute':>16} {'resident':>9} {'planned':>8}")
    tallies = []
    with here(options.engine, names) if options.engine else on_test_host(names) as place:
        for name in names:
            tally = Tally(name)
            for _ in range(options.rounds):
                settings = draw(rng, place.models[name][0])
                compare(tally, place, settings, options.port, verbose=options.verbose)
            hold(tally, place, options.port)
            tallies.append(tally)
            print(
                f"{name:26} {tally.equal:4} of {tally.settings:2} {tally.above:+7.2%} {-tally.below:+7.2%} "
                f"{tally.resident:9.1f} {tally.planned:8.1f}",
                flush=True,
            )
    met = sum(tally.met for tally in tallies)
    worst = max(tally.above for tally in tallies)
    low = max(tally.below for tally in tallies)
    verdict = "met" if met == len(tallies) > 0 else "MISSED"
    print(
        f"memory terms over a server's lines  {met} of {len(tallies)} models, compute {worst:+.2%} {-low:+.2%}  "
        f"all, within 3 %, never below  {verdict}"
    )
    return 0 if verdict == "met" else 1


if __name__ == "__main__":
    sys.exit(main())
