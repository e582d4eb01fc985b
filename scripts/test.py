"""Runs the test tiers one after the other and ends with a line for each."""

from __future__ import annotations

import argparse
import fnmatch
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from lab.packages import LabError, ensure_commands

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {"git": "git", "openssl": "openssl", "shellcheck": "shellcheck", "systemd-analyze": "systemd"}
"""What the tests themselves start here, and the Debian package of each."""


@dataclass(frozen=True)
class Tier:
    """Some of the tests: what pytest is given, and what makes them run."""

    name: str
    arguments: tuple[str, ...]
    always: bool = False
    triggers: tuple[str, ...] = ()
    """Patterns of paths whose change runs the tier without its flag."""
    alone: bool = False
    """Only its own flag runs it, not ``--all``."""


ON_ALL_CORES = ("--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile")
"""For tests that share nothing but their own file's fixtures."""

TIERS = (
    Tier("lint", ("tests/lint",), always=True),
    Tier("unit", ("tests/unit", "tests/golden", "tests/negative", *ON_ALL_CORES), always=True),
    Tier(
        "hosts",
        (
            "tests/hosts",
            "--ignore=tests/hosts/faults",
            "--ignore=tests/hosts/cuda",
            "--ignore=tests/hosts/cuda_full",
            "--ignore=tests/hosts/debian12",
            "--ignore=tests/hosts/dkms",
            "--ignore=tests/hosts/driver",
            "--ignore=tests/hosts/reference",
            "--ignore=tests/hosts/machine",
            "--ignore=tests/hosts/mirror",
            "--ignore=tests/hosts/places",
            "--lab",
        ),
        always=True,
    ),
    Tier(
        "faults",
        ("tests/hosts/faults", "tests/hosts/places", "--lab"),
        triggers=(
            "roles/*",
            "plugins/*",
            "llamarig/converge/*",
            "llamarig/compare/*",
            "tests/hosts/faults/*",
            "tests/hosts/places/*",
        ),
    ),
    Tier(
        "driver",
        ("tests/hosts/driver", "tests/hosts/debian12", "tests/hosts/dkms", "tests/hosts/machine", "--lab"),
        triggers=(
            "roles/nvidia_driver/*",
            "roles/reboot/*",
            "plugins/modules/rig_boot.py",
            "plugins/*/rig_driver*.py",
            "plugins/*/rig_nvidia.py",
            "tests/hosts/driver/*",
            "tests/hosts/debian12/*",
            "tests/hosts/dkms/*",
            "tests/hosts/machine/*",
        ),
    ),
    Tier(
        "cuda",
        ("tests/hosts/cuda", "--lab"),
        triggers=(
            "roles/cuda_toolkit/*",
            "roles/llama_cpp/*",
            "plugins/*/rig_toolkit.py",
            "plugins/module_utils/rig_cuda_*",
            "plugins/module_utils/rig_fatbin.py",
            "llamarig/converge/toolkit.py",
            "llamarig/render/build.py",
            "llamarig/render/toolkit.py",
            "tests/hosts/cuda/*",
        ),
    ),
    Tier("cuda-full", ("tests/hosts/cuda_full", "--lab"), alone=True),
    Tier(
        "reference",
        ("tests/hosts/reference", "--lab"),
        triggers=(
            "inventory/dual-gpu-256k.yml",
            "tests/overlays/*",
            "tests/hosts/reference/*",
            "llamarig/spec/overlay.py",
            "scripts/gpu_check/*",
        ),
    ),
    # Most tests of tests/hosts/fleet run in the tier hosts too, with three machines and one kill.
    Tier(
        "fleet",
        ("tests/hosts/fleet", "tests/hosts/mirror", "--lab", "--full-fleet"),
        triggers=("llamarig/converge/mirror/*", "tests/hosts/mirror/*", "tests/support/mirror/*"),
    ),
)


@dataclass(frozen=True)
class Result:
    """How a tier ended: pytest's status and its own last line."""

    tier: str
    code: int
    line: str
    seconds: float


def changed_paths() -> list[str]:
    """Paths that differ from the remote's default branch; empty when there is no remote to compare with."""
    base = _git("merge-base", "HEAD", "refs/remotes/origin/HEAD")
    if not base:
        return []
    return _git("diff", "--name-only", base).splitlines()


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def chosen(options: argparse.Namespace, changed: list[str]) -> list[Tier]:
    """The tiers that run: those that always do, those asked for, and those whose inputs changed."""
    if options.only:
        return [tier for tier in TIERS if tier.name in options.only]
    picked = []
    for tier in TIERS:
        asked = (options.all and not tier.alone) or getattr(options, tier.name.replace("-", "_"), False)
        touched = any(fnmatch.fnmatch(path, pattern) for path in changed for pattern in tier.triggers)
        if tier.always or asked or touched:
            picked.append(tier)
    return picked


def run_tier(tier: Tier) -> Result:
    """Run one tier, its output passed on as it comes."""
    sys.stdout.write(f"\n=== {tier.name}\n")
    sys.stdout.flush()
    start = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "--color=no", "--durations=8", *existing(tier.arguments)]
    said = bytearray()
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    ) as process:
        # Passed on as it comes, not by lines: a host test may take minutes for its one dot.
        while process.stdout is not None and (chunk := process.stdout.read(4096)):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            said += chunk
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    return Result(tier.name, process.returncode, lines[-1] if lines else "", time.monotonic() - start)


def existing(arguments: tuple[str, ...]) -> list[str]:
    """The arguments without directories that hold no test yet."""
    return [each for each in arguments if each.startswith("-") or any((ROOT / each).rglob("test_*.py"))]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/test",
        description="Lint, unit and golden tests, the demo host, five faults and a fleet of three; more when asked, "
        "or when what a tier covers differs from the remote's default branch.",
    )
    parser.add_argument(
        "--faults", action="store_true", help="every fault, the QEMU machine, another commit, builds elsewhere"
    )
    parser.add_argument(
        "--cuda", action="store_true", help="a real toolkit, and five sources of the engine built with it"
    )
    parser.add_argument(
        "--cuda-full", action="store_true", help="the whole engine built with it, over an hour on two cores"
    )
    parser.add_argument(
        "--driver", action="store_true", help="drivers by real apt and DKMS, on Debian 12 too; reboots under QEMU"
    )
    parser.add_argument(
        "--reference", action="store_true", help="the reference spec with its overlay, up to the missing card"
    )
    parser.add_argument(
        "--fleet", action="store_true", help="a fleet of eight machines, its controller killed 20 times; offline sites"
    )
    parser.add_argument("--all", action="store_true", help="everything but --cuda-full")
    parser.add_argument("--only", action="append", choices=[tier.name for tier in TIERS], help="this tier alone")
    return parser.parse_args()


def main() -> int:
    """Install what is missing, run the tiers, print a line for each; 1 when one failed."""
    options = parse()
    try:
        ensure_commands(COMMANDS)
    except LabError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    results = [run_tier(tier) for tier in chosen(options, changed_paths())]
    sys.stdout.write("\n=== all tiers\n")
    for result in results:
        word = "ok    " if result.code == 0 else "FAILED"
        sys.stdout.write(f"{word} {result.tier:8} {result.seconds:6.0f} s  {result.line}\n")
    return 0 if results and all(result.code == 0 for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
