"""``check`` and ``plan`` of 1,000 hosts, as a user runs them: two commands, their start included.

The hosts differ in UUID, port and context; 40 are broken, each in its own file and line. A
plan reads the header sidecar of its model for every host anew: nothing is kept from one
host to the next.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from llamarig.gguf import write_sidecar
from tests.support import big_models

ROOT = Path(__file__).resolve().parents[1]
HOSTS = 1000
BROKEN = 40
BAR_S = 10.0
SHA256 = "ab" * 32
FAULTS = (
    ("    context:", "    contxt:"),
    ("    gpu: blackwell", "    gpu: blakwell"),
    ("    gpu: blackwell", "    gpu: 0"),
    ("kv-cache: {k: q4_0, v: q4_0}", "kv-cache: {k: q8_0, v: q4_0}"),
    ("architectures: [120a-real, 89-real]", "architectures: [89-real]"),
)
"""Text of the reference spec, and what stands in its place on a broken host."""


def write_project(root: Path, rng: random.Random) -> dict[str, int]:
    """A project of different hosts; host name -> line of the fault, for the broken ones."""
    inventory = root / "inventory"
    inventory.mkdir(parents=True)
    header = big_models.header_of(big_models.qwen35_27b())
    write_sidecar(header, SHA256, root / "headers")
    reference = (ROOT / "inventory/dual-gpu-256k.yml").read_text()
    locked = reference.replace("    sha256: unlocked\n", f"    sha256: {SHA256}\n", 1)
    faulty = set(rng.sample(range(HOSTS), BROKEN))
    lines = {}
    for number in range(HOSTS):
        name = f"host-{number:04}"
        text = locked.replace("host: dual-gpu-256k", f"host: {name}")
        text = text.replace("port: 8080", f"port: {2000 + number}")
        text = text.replace("context: 262144", f"context: {8192 + 256 * number}")
        for bus in ("01:00.0", "02:00.0"):
            card = uuid.UUID(int=rng.getrandbits(128), version=4)
            text = text.replace(f'bus-id: "{bus}"', f'bus-id: "{bus}", uuid: GPU-{card}')
        if number in faulty:
            before, after = FAULTS[number % len(FAULTS)]
            lines[name] = text[: text.index(before)].count("\n") + 1
            text = text.replace(before, after, 1)
        (inventory / f"{name}.yml").write_text(text)
    return lines


def llamarig(root: Path, *arguments: str) -> tuple[int, Any, float]:
    """Exit code, JSON and seconds of one command."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "llamarig.cli.main", "-C", str(root), *arguments, "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout), time.monotonic() - started


def unreported(report: Any, lines: dict[str, int]) -> list[str]:
    """Broken hosts that are not reported with their line, and sound ones that are."""
    wrong = []
    for entry in report["hosts"]:
        reported = {error["line"] for error in entry["errors"]}
        wanted = lines.get(entry["host"])
        if (wanted is None and reported) or (wanted is not None and wanted not in reported):
            wrong.append(entry["host"])
    return wrong


def main() -> int:
    """Print the figures; 1 when the bar is missed or a host is judged wrongly."""
    seed = random.SystemRandom().randrange(1 << 32)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        lines = write_project(root, random.Random(seed))
        code, report, check_s = llamarig(root, "check")
        wrong = unreported(report, lines)
        sound = [entry["host"] for entry in report["hosts"] if entry["valid"]]
        _, plans, plan_s = llamarig(root, "plan", *sound)
    planned = {plan["host"] for plan in plans["hosts"] if plan["devices"][0]["components"].get("kv-cache")}
    right = code == 2 and not wrong and len(report["hosts"]) == HOSTS and planned == set(sound)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"seed {seed}; check {check_s:.2f} s, plan of {len(planned)} hosts {plan_s:.2f} s; "
        f"of the CPU {used.ru_utime + used.ru_stime:.2f} s, load {os.getloadavg()[0]:.1f}"
    )
    if wrong:
        print(f"judged wrongly: {', '.join(wrong[:5])}")
    total = check_s + plan_s
    verdict = "met" if right and total <= BAR_S else "MISSED"
    found = f"{len(lines) - len(set(wrong) & set(lines))} of {len(lines)} faults"
    print(f"check + plan of {HOSTS:,} hosts  {total:.2f} s, {found}  at most {BAR_S:.0f} s, all  {verdict}")
    return 0 if verdict == "met" else 1


if __name__ == "__main__":
    sys.exit(main())
