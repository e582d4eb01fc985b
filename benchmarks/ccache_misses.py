"""What is compiled again: after a patch of one leaf CUDA source, after one of a common header, after a driver's change.

A real Debian 13 machine builds the CUDA library of the reference commit with the toolkit from wheels of 13.0, for
120a-real and 89-real: first as it is, which warms the compiler cache, then with a patch that adds one line to a leaf
source. Misses are those that ccache counts itself. Where the cache is cold the first build takes over an hour on two
cores; where it is warm, minutes. What a patch of common.cuh would compile again is counted in the dependencies that
the compiler wrote for ninja, and not compiled.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import sys
import tarfile
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from lab import Host, Lab, archives  # noqa: E402 - after the path
from lab.project import Project  # noqa: E402 - after the path

from llamarig.compare import compare  # noqa: E402 - after the path
from llamarig.converge import artifacts  # noqa: E402 - after the path
from llamarig.render import build, driver  # noqa: E402 - after the path
from llamarig.spec.host import HostSpec  # noqa: E402 - after the path
from tests.golden import cases  # noqa: E402 - found below the checkout only
from tests.support.compare.cases import observation, wanted_state  # noqa: E402 - found below the checkout only
from tests.support.toolkit.reference import cuda_spec, play  # noqa: E402 - found below the checkout only

LEAF = "ggml/src/ggml-cuda/gated_delta_net.cu"
COMMON = "ggml-cuda/common.cuh"
LINE = 'static_assert(sizeof(float) == 4, "a line that changes what is compiled and not what it does");\n'
BAR = 10.0
"""Percent of what a cold cache compiles."""
PLAYBOOK = ROOT / "tests/hosts/cuda/partial.yml"
TARGET = "bin/libggml-cuda.so"
CCACHE = "env CCACHE_DIR=/var/cache/llamarig/ccache ccache"
BUILDS = "/var/lib/llamarig/build"


@dataclass(frozen=True)
class Counted:
    """What ccache counted over one build."""

    hits: int
    misses: int

    @property
    def calls(self) -> int:
        """Compilations that the cache could answer; all of them in a cold one are misses."""
        return self.hits + self.misses


def counted(host: Host) -> Counted:
    """What the cache has counted so far."""
    said = dict(line.split("\t") for line in host.ssh(f"{CCACHE} --print-stats").splitlines())
    return Counted(int(said["direct_cache_hit"]) + int(said["preprocessed_cache_hit"]), int(said["cache_miss"]))


def built(project: Project, host: Host, spec: dict[str, Any]) -> Counted:
    """Build the library on the host as the role does, and what the cache counted meanwhile."""
    project.describe(host, spec)
    play(project, host, PLAYBOOK, partial_objects=[])
    before = counted(host)
    play(project, host, PLAYBOOK, partial_objects=[TARGET])
    after = counted(host)
    return Counted(after.hits - before.hits, after.misses - before.misses)


def leaf_patch(spec: dict[str, Any], project: Path) -> bytes:
    """A patch that adds a line to the end of :data:`LEAF`."""
    loaded = HostSpec.model_validate(spec)
    release = asdict(build.release(loaded, ()))
    archive = artifacts.source(release, project)
    with tarfile.open(archive.path) as tar:
        member = next(each for each in tar if each.name.endswith(f"/{LEAF}"))
        stream = tar.extractfile(member)
        assert stream is not None
        text = stream.read().decode()
    assert text.endswith("\n")
    lines = text.splitlines(keepends=True)
    return "".join(difflib.unified_diff(lines, [*lines, LINE], f"a/{LEAF}", f"b/{LEAF}")).encode()


def naming(host: Host, header: str) -> tuple[int, int]:
    """Objects of CUDA sources whose dependencies name the header, and all of them."""
    # The tree lies elsewhere than where ninja saw it, and ninja only reads its own log here.
    said = host.ssh(f"cd $(ls -d {BUILDS}/*/out | head -1) && ninja -t deps")
    named = total = 0
    for block in re.split(r"\n\n", said):
        if re.match(r"\S+\.cu\.o:", block):
            total += 1
            named += any(line.strip().endswith(header) for line in block.splitlines()[1:])
    return named, total


def after_a_driver() -> tuple[bool, int]:
    """Whether another driver leaves the release's id as it is, and how many actions build something for it."""
    spec = cases.spec_of("twin")
    assert spec.driver is not None
    other = spec.model_copy(update={"driver": spec.driver.model_copy(update={"version": "610.99.01"})})
    same = build.release(spec, ()).id == build.release(other, ()).id
    before = replace(wanted_state(), driver=driver.driver(spec, cases.HERE))
    after = replace(before, driver=driver.driver(other, cases.HERE))
    actions = [action.kind for action in compare(after, observation(before))]
    assert "driver" in actions
    return same, sum(kind in ("release", "toolkit") for kind in actions)


def measure() -> list[tuple[str, str, str, bool]]:
    """The rows that need a machine."""
    lab = Lab("bench-ccache")
    lab.clear()
    try:
        with tempfile.TemporaryDirectory() as name:
            project = Project(Path(name))
            host = lab.host("ccache", fresh=True)
            spec = cuda_spec()
            first = built(project, host, spec)
            archives.take_back(host)
            print(f"as it is: {first.calls} compilations, {first.misses} misses", flush=True)
            named, total = naming(host, COMMON)
            patch = leaf_patch(spec, project.directory)
            (project.directory / "patches").mkdir(exist_ok=True)
            (project.directory / "patches/leaf.patch").write_bytes(patch)
            spec["engine"]["patches"] = [{"file": "patches/leaf.patch", "sha256": hashlib.sha256(patch).hexdigest()}]
            second = built(project, host, spec)
            print(f"{LEAF} patched: {second.calls} compilations, {second.misses} misses", flush=True)
    finally:
        lab.remove()
    share = 100 * second.misses / first.calls
    told = f"{second.misses} of {first.calls}, {share:.1f} %"
    return [
        ("misses after a patch of a leaf .cu", told, f"at most {BAR:.0f} % of cold", 0 < share <= BAR),
        ("objects that name common.cuh (counted)", f"{named} of {total}", "shown", 0 < named <= total),
    ]


def main() -> int:
    """Measure and print a line each; 1 when a bar is missed."""
    same, jobs = after_a_driver()
    rows = [("compile jobs after a change of driver", str(jobs), "0", same and jobs == 0), *measure()]
    for name, figure, bar, met in rows:
        print(f"{name}  {figure}  {bar}  {'met' if met else 'MISSED'}")
    return 0 if all(met for *_, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
