"""The header of a 27B model with a 248,320-token vocabulary: our reader over the ``gguf`` package's.

The file is composed with the published dimensions of such a model and has its full size, the
weights being a hole; both read the same file, each in fresh processes. The median counts of
the reading alone, imports left out on both sides; memory is the peak of the whole process.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VOCABULARY = 248_320
MERGES = 247_587
RATIO_BAR = 50
MEMORY_BAR_MIB = 60
ROUNDS = 5
# Of this program alone: ru_maxrss would count the process that started it, too.
PEAK = """
def peak_mib():
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
"""
OURS = """
import sys, time
from pathlib import Path
from llamarig.gguf import read_header
started = time.perf_counter()
header = read_header(Path(sys.argv[1]))
seconds = time.perf_counter() - started
assert len(header.tensors) == int(sys.argv[2]) and header.vocabulary == int(sys.argv[3])
print(seconds, peak_mib())
"""
THEIRS = """
import sys, time
from gguf import GGUFReader
started = time.perf_counter()
reader = GGUFReader(sys.argv[1])
seconds = time.perf_counter() - started
assert len(reader.tensors) == int(sys.argv[2])
assert len(reader.fields["tokenizer.ggml.tokens"].data) == int(sys.argv[3])
print(seconds, peak_mib())
"""


def compose(path: Path) -> int:
    """Write the file and return how many tensors it has."""
    sys.path.insert(0, str(ROOT))
    from tests.support.big_models import qwen35_27b  # noqa: PLC0415 - found below the checkout only

    tokens = [f"token{number}" for number in range(VOCABULARY)]
    merges = [f"left{number} right{number}" for number in range(MERGES)]
    composed = qwen35_27b(vocabulary=tokens, merges=merges)
    composed.write_sparse(path)
    return len(composed.tensors)


def measure(code: str, path: Path, tensors: int) -> tuple[float, float]:
    """Seconds of reading and peak MiB of a fresh process."""
    command = [sys.executable, "-c", PEAK + code, str(path), str(tensors), str(VOCABULARY)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, mib = done.stdout.split()
    return float(seconds), float(mib)


def main() -> int:
    """Print two rows; 1 when a bar is missed."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "composed-27b.gguf"
        tensors = compose(path)
        ours = [measure(OURS, path, tensors) for _ in range(ROUNDS)]
        theirs = measure(THEIRS, path, tensors)
    seconds = statistics.median(each[0] for each in ours)
    peak = max(each[1] for each in ours)
    ratio = theirs[0] / seconds
    print(
        f"27B header over gguf.GGUFReader  1/{ratio:.0f} of the time ({seconds * 1000:.0f} ms, {theirs[0]:.1f} s)  "
        f"at most 1/{RATIO_BAR}  {'met' if ratio >= RATIO_BAR else 'MISSED'}"
    )
    print(
        f"27B header, peak of a fresh process  {peak:.0f} MiB (gguf.GGUFReader {theirs[1]:.0f} MiB)"
        f"  at most {MEMORY_BAR_MIB} MiB  {'met' if peak <= MEMORY_BAR_MIB else 'MISSED'}"
    )
    return int(ratio < RATIO_BAR or peak > MEMORY_BAR_MIB)


if __name__ == "__main__":
    sys.exit(main())
