"""Model hashing as the host does it, over ``openssl dgst -sha256``: both read the same file from the page cache.

The best wall time of alternating rounds counts, since other work on the machine only adds
to it: of openssl its whole process, of ours the hashing alone, since on a host it is a part
of a module that runs anyway.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BAR = 1.1
ROUNDS = 7
SIZE_MIB = int(os.environ.get("HASH_SPEED_MIB", "1024"))
HASHER = """
import sys, time
from pathlib import Path
import ansible.module_utils
ansible.module_utils.__path__.append(sys.argv[1])
from ansible.module_utils.rig_files import Hasher
started = time.monotonic()
print(Hasher().describe(sys.argv[2])["sha256"])
print(time.monotonic() - started)
"""


def write(path: Path) -> None:
    """A file of random bytes, wholly in the page cache afterwards."""
    block = os.urandom(1 << 20)
    with path.open("wb") as file:
        for number in range(SIZE_MIB):
            file.write(number.to_bytes(8, "big") + block[8:])


def openssl(path: Path) -> tuple[str, float]:
    """Hash and seconds of a whole ``openssl dgst`` process."""
    started = time.monotonic()
    done = subprocess.run(["openssl", "dgst", "-sha256", "-r", path], capture_output=True, text=True, check=True)
    return done.stdout.split()[0], time.monotonic() - started


def ours(path: Path) -> tuple[str, float]:
    """Hash and seconds of the module's hashing, in a process of its own, without Python's start."""
    command = [sys.executable, "-c", HASHER, str(ROOT / "plugins/module_utils"), str(path)]
    sha256, seconds = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return sha256, float(seconds)


def measure(path: Path) -> tuple[float, float]:
    """Best seconds of openssl and of ours; the hashes must agree."""
    theirs, mine = [], []
    openssl(path)
    for _ in range(ROUNDS):
        expected, seconds = openssl(path)
        theirs.append(seconds)
        found, seconds = ours(path)
        mine.append(seconds)
        assert found == expected
    return min(theirs), min(mine)


def main() -> int:
    """Print one row; 1 when the bar is missed, 2 when openssl is not there."""
    if shutil.which("openssl") is None:
        print("hash_speed: openssl is not installed", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.gguf"
        write(path)
        theirs, mine = measure(path)
    ratio = mine / theirs
    print(
        "  ".join(
            (
                "model hashing over openssl dgst -sha256",
                f"{ratio:.2f}x ({SIZE_MIB / mine:,.0f} against {SIZE_MIB / theirs:,.0f} MiB/s)",
                f"at most {BAR}x",
                "met" if ratio <= BAR else "MISSED",
            )
        )
    )
    return int(ratio > BAR)


if __name__ == "__main__":
    sys.exit(main())
