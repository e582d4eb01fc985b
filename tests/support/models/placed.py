"""Models placed on two devices as the engine's fit tool places them, and as the plan does.

    python -m tests.support.models.placed --tool llama-fit-params --server ggml-rpc-server [--rounds N] [--seed N]

writes ``tests/fixtures/placed/b10454.json``. The engine's RPC backend makes two devices of a CPU: the loader and the
caches treat them as cards. Compute buffers are left out, since such a device neither works in a pipeline nor computes
with weights that lie in RAM.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llamarig.gguf import Header
from llamarig.memory import Settings, estimate
from tests.support import models

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "placed" / "b10454.json"
NAMES = (
    "llama-3.1-8b", "qwen3-32b", "qwen3moe-30b-a3b", "qwen35-9b", "qwen35moe-35b-a3b", "gemma3-27b", "gpt-oss-20b",
    "qwen2.5-0.5b", "lfm2-8b-a1b",
)  # fmt: skip
SPLITS = ((1.0, 1.0), (3.0, 1.0), (0.55, 0.45), (1.0, 3.0))
OVERRIDES: tuple[tuple[tuple[str, int | None], ...], ...] = (
    (),
    (("ffn_down", None),),
    ((r"blk\.[0-3]\.", None), ("attn", 1)),
    ((r"blk\.(1|2)\.attn", 1), ("ffn_up", 0), ("ffn", None)),
    (("token_embd", 1),),
)
_ROW = re.compile(r"^(RPC0|RPC1|Host) +(\d+) +(\d+) +\d+ *$", re.MULTILINE)

Columns = dict[str, tuple[float, float]]
"""MiB of weights, and of caches and state, by ``RPC0``, ``RPC1`` and ``Host``."""


@dataclass(frozen=True)
class Placed:
    """One server over two devices."""

    context: int
    parallel: int
    cache: str
    gpu_layers: int
    tensor_split: tuple[float, float]
    cpu_experts: int
    overrides: tuple[tuple[str, int | None], ...]

    @property
    def settings(self) -> Settings:
        """The same for llamarig's model; the tool never maps the file."""
        return Settings(
            context=self.context,
            parallel=self.parallel,
            cache_k=self.cache,
            cache_v=self.cache,
            gpu_layers=self.gpu_layers,
            cards=2,
            tensor_split=self.tensor_split,
            cpu_experts=self.cpu_experts,
            overrides=self.overrides,
            mapped=False,
        )

    def arguments(self, path: str, ports: tuple[int, int]) -> list[str]:
        """The tool's command line. Repacked weights would be left out of its Host row, so none are."""
        servers = [f"127.0.0.1:{port}" for port in ports]
        words: list[Any] = ["-m", path, "--rpc", ",".join(servers), "-c", self.context, "-np", self.parallel]
        words += ["-ctk", self.cache, "-ctv", self.cache, "-fa", "on", "-ngl", self.gpu_layers]
        words += ["-ts", ",".join(f"{share:g}" for share in self.tensor_split), "-fitp", "on", "--no-repack"]
        if self.overrides:
            buffers = {None: "CPU"} | {number: f"RPC0[{server}]" for number, server in enumerate(servers)}
            words += ["-ot", ",".join(f"{pattern}={buffers[place]}" for pattern, place in self.overrides)]
        if self.cpu_experts:
            words += ["-ncmoe", self.cpu_experts]
        return [str(word) for word in words]


def draw(rng: random.Random, layers: int) -> Placed:
    """Any placement of a model with so many layers."""
    return Placed(
        context=rng.choice([512, 4096, 8192, 20_000]),
        parallel=rng.choice([1, 1, 2, 4]),
        cache=rng.choice(["f16", "f16", "q8_0"]),
        gpu_layers=rng.choice([999, 999, layers + 1, layers, layers // 2, 1, 0]),
        tensor_split=rng.choice(SPLITS),
        cpu_experts=rng.choice([0, 0, 1, 5, layers // 2, 999]),
        overrides=rng.choice(OVERRIDES),
    )


def parse(output: str) -> Columns:
    """The tool's rows, whole MiB, rounded down."""
    return {name: (float(weights), float(context)) for name, weights, context in _ROW.findall(output)}


def planned(header: Header, placed: Placed) -> Columns:
    """llamarig's figures for the same server."""
    found = estimate(header, placed.settings)
    places = {f"RPC{number}": terms for number, terms in enumerate(found.devices)} | {"Host": found.host}
    return {
        name: (terms.get("weights", 0.0), terms.get("kv-cache", 0.0) + terms.get("recurrent-state", 0.0))
        for name, terms in places.items()
    }


def load(path: Path = FIXTURE) -> list[tuple[str, Placed, Columns]]:
    """Model, placement and what the tool printed."""
    return [
        (
            entry["model"],
            Placed(
                **entry["placed"]
                | {
                    "tensor_split": tuple(entry["placed"]["tensor_split"]),
                    "overrides": tuple((pattern, place) for pattern, place in entry["placed"]["overrides"]),
                }
            ),
            {name: (columns[0], columns[1]) for name, columns in entry["mib"].items()},
        )
        for entry in json.loads(path.read_text())["cases"]
    ]


@contextmanager
def _servers(program: str) -> Iterator[tuple[int, int]]:
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(int(free.getsockname()[1]))
    started = [subprocess.Popen([program, "-p", str(port)], stdout=subprocess.DEVNULL) for port in ports]
    try:
        time.sleep(1)
        yield ports[0], ports[1]
    finally:
        for server in started:
            server.terminate()
            server.wait(10)


def main() -> None:
    """Record the fixture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=20261130)
    options = parser.parse_args()
    lines = []
    with _servers(options.server) as ports, tempfile.TemporaryDirectory() as scratch:
        for name in NAMES:
            rng = random.Random(f"{options.seed} {name}")
            path = models.write(name, Path(scratch) / f"{name}.gguf")
            layers = models.header(name).integer(".block_count")
            for _ in range(options.rounds):
                placed = draw(rng, layers)
                command = [options.tool, *placed.arguments(str(path), ports)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                found = parse(done.stdout)
                if not found:
                    raise SystemExit(f"{name}, {placed}: the tool printed no rows\n{done.stderr[-2000:]}")
                lines.append(json.dumps({"model": name, "placed": vars(placed), "mib": found}))
            path.unlink()
    origin = f"recorded by tests.support.models.placed from llama-fit-params of build 10454, seed {options.seed}"
    FIXTURE.write_text(f'{{\n "origin": {json.dumps(origin)},\n "cases": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n")


if __name__ == "__main__":
    main()
