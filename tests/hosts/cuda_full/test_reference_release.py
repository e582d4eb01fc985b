"""The complete reference release: 4df29be4f with machine code for 120a and 89, built by the roles on Debian 13.

Without a compiler cache this takes over an hour on two cores, so it runs only when it is asked for. With
``LLAMARIG_EVIDENCE=1`` in the environment it writes what it saw into docs/evidence/cuda-full/.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lab import Host, Lab, archives
from lab.project import ROOT, Project

from llamarig.converge.store.releases import Held, Releases
from llamarig.render.build import release
from llamarig.spec.host import HostSpec
from tests.support.toolkit.reference import PREFIX, cuda_spec, play

RELEASES = "/opt/llamarig/releases"
LOG = "/root/build.log"
PARTIAL = ROOT / "tests/hosts/cuda/partial.yml"
WHOLE = Path(__file__).with_name("release.yml")
EVIDENCE = ROOT / "docs/evidence/cuda-full"
TOOLKITS_OWN = ["libcublas.so.13", "libcublasLt.so.13", "libcudart.so.13"]
CCACHE = "env CCACHE_DIR=/var/cache/llamarig/ccache ccache"
IMAGES = """
import sys
from ansible.module_utils.rig_fatbin import images
with open(sys.argv[1], "rb") as stream:
    for image in images(stream):
        print(("compute_" if image.ptx else "sm_") + image.architecture)
"""


@dataclass(frozen=True)
class Built:
    """The host that built, its release, and how the build went."""

    host: Host
    release: str
    provenance: dict[str, Any]
    steps: int
    """Jobs of ninja."""
    cuda: int
    """Those that compile a CUDA source."""
    seconds: float
    """From the first to the last line of the build's log."""
    hits: int
    misses: int

    @property
    def path(self) -> str:
        """The release's directory."""
        return f"{RELEASES}/{self.release}"


def keep_log(host: Host, over: threading.Event) -> None:
    """Keep the build's log under another name, since the role removes what only a build needs."""
    while not over.wait(2):
        host.exec(f"ln /var/lib/llamarig/build/*/job/log {LOG} 2>/dev/null || true")


def counted(host: Host) -> tuple[int, int]:
    """Hits and misses that the compiler cache has counted so far."""
    said = dict(line.split("\t") for line in host.ssh(f"{CCACHE} --print-stats").splitlines())
    hits = int(said["direct_cache_hit"]) + int(said["preprocessed_cache_hit"])
    return hits, int(said["cache_miss"])


@pytest.fixture(scope="module")
def built(lab: Lab, project: Project) -> Built:
    # What an earlier run left on the controller would be copied instead of built.
    Releases.default().forget(release(HostSpec.model_validate(cuda_spec()), ()).id)
    host = lab.host("full", fresh=True)
    project.describe(host, cuda_spec())
    over = threading.Event()
    keeper = threading.Thread(target=keep_log, args=(host, over))
    play(project, host, PARTIAL, partial_objects=[])
    before = counted(host)
    keeper.start()
    try:
        play(project, host, WHOLE)
    finally:
        over.set()
        keeper.join()
    archives.take_back(host)
    provenance = json.loads(host.ssh(f"cat {RELEASES}/*/provenance.json"))
    log = host.ssh(f"cat {LOG}")
    begin, end = host.ssh(f"stat -c '%W %Y' {LOG}").split()
    steps = max(int(total) for total in re.findall(r"^\[\d+/(\d+)\]", log, re.MULTILINE))
    cuda = len(re.findall(r"^\[\d+/\d+\] Building CUDA object", log, re.MULTILINE))
    hits, misses = (now - then for now, then in zip(counted(host), before, strict=True))
    return Built(host, provenance["release"], provenance, steps, cuda, float(end) - float(begin), hits, misses)


def images(built: Built) -> list[str]:
    """Every image of libggml-cuda, in the order of the library."""
    root = "/root/read"
    reader = (ROOT / "plugins/module_utils/rig_fatbin.py").read_bytes()
    built.host.write(f"{root}/ansible/module_utils/rig_fatbin.py", reader)
    built.host.write(f"{root}/images.py", IMAGES.encode())
    return built.host.ssh(f"cd {root} && PYTHONPATH={root} python3 images.py {built.path}/lib/libggml-cuda.so").split()


def test_every_source_has_machine_code_for_both_cards_and_nothing_else(built: Built) -> None:
    found = Counter(images(built))
    assert set(found) == {"sm_120a", "sm_89"}
    assert built.cuda >= 141
    assert found["sm_120a"] == found["sm_89"] >= built.cuda - 10


def test_it_carries_what_it_needs_and_looks_nowhere_else(built: Built) -> None:
    files = built.provenance["files"]
    assert [name for name in TOOLKITS_OWN if f"lib/{name}" not in files] == []
    assert [name for name in files if "libcuda.so" in name] == []
    paths = built.host.ssh(
        f"for f in {built.path}/bin/* {built.path}/lib/*; do readelf -d $f | grep -e RUNPATH -e RPATH; done"
    )
    assert set(re.findall(r"\[(.*)\]", paths)) == {"$ORIGIN/../lib", "$ORIGIN"}
    assert "RPATH)" not in paths.replace("RUNPATH", "")


def test_without_toolkit_and_compiler_only_the_drivers_library_is_missing(built: Built) -> None:
    built.host.ssh("mv /opt/llamarig/cuda /opt/llamarig/aside")
    try:
        listed = built.host.ssh(f"ldd {built.path}/bin/* {built.path}/lib/*.so")
    finally:
        built.host.ssh("mv /opt/llamarig/aside /opt/llamarig/cuda")
    assert set(re.findall(r"(\S+) => not found", listed)) == {"libcuda.so.1"}
    assert PREFIX not in listed


def test_a_second_look_builds_nothing(built: Built, project: Project) -> None:
    before = built.host.ssh(f"stat -c %Y {built.path}")
    said = play(project, built.host, WHOLE)
    assert "Take the host's lock" in said
    assert "Start the build" not in said
    assert built.host.ssh(f"stat -c %Y {built.path}") == before


@pytest.fixture(scope="module")
def held(built: Built, project: Project) -> tuple[Held, float]:
    """The release on the controller, and the seconds that packing and fetching took. It stays for others to copy."""
    store, began = Releases.default(), time.monotonic()
    play(project, built.host, ROOT / "playbooks/collect.yml")
    found = store.get(built.release)
    assert found is not None
    return found, time.monotonic() - began


@pytest.fixture(scope="module")
def copied(held: tuple[Held, float], lab: Lab, project: Project) -> tuple[Host, float]:
    """A bare second host with the same spec, and the seconds that having the release took there."""
    host, began = lab.host("copy", fresh=True), time.monotonic()
    project.describe(host, cuda_spec())
    play(project, host, WHOLE)
    return host, time.monotonic() - began


def test_a_second_host_copies_it_and_needs_neither_toolkit_nor_compiler(
    built: Built, copied: tuple[Host, float]
) -> None:
    host, _ = copied
    assert host.ssh(f"cat {built.path}/provenance.json") == built.host.ssh(f"cat {built.path}/provenance.json")
    assert host.ssh("for tool in cc g++ cmake ninja ccache nvcc; do command -v $tool; done; true") == ""
    assert host.ssh("ls /opt/llamarig").split() == ["libexec", "releases"]
    assert host.ssh("ls -A /var/lib/llamarig/build") == ""
    listed = host.ssh(f"ldd {built.path}/bin/llama-server")
    assert re.findall(r"(\S+) => not found", listed) == ["libcuda.so.1"]


def test_what_was_seen_is_written_down_when_asked(
    built: Built, held: tuple[Held, float], copied: tuple[Host, float]
) -> None:
    sizes = built.host.ssh(f"cd {built.path} && stat -c '%s %n' bin/* lib/* && du -sm /opt/llamarig/cuda | cut -f1")
    figures = {
        "release": built.release,
        "ninja-jobs": built.steps,
        "cuda-jobs": built.cuda,
        "seconds-of-the-build": round(built.seconds),
        "compiler-cache": {"hits": built.hits, "misses": built.misses},
        "packed-mib": round(held[0].size / (1 << 20)),
        "packed-sha256": held[0].sha256,
        "seconds-to-pack-and-fetch": round(held[1]),
        "seconds-to-a-copy-on-a-bare-second-host": round(copied[1]),
        "toolkit-mib": int(sizes.splitlines()[-1]),
    }
    assert built.steps > built.cuda > 0
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    if os.environ.get("LLAMARIG_EVIDENCE") != "1":
        return
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    (EVIDENCE / "build.json").write_text(json.dumps(figures, indent=1) + "\n")
    (EVIDENCE / "provenance.json").write_text(built.host.ssh(f"cat {built.path}/provenance.json") + "\n")
    (EVIDENCE / "images.txt").write_text("".join(f"{number} {name}\n" for number, name in enumerate(images(built), 1)))
    (EVIDENCE / "files.txt").write_text("\n".join(sizes.splitlines()[:-1]) + "\n")
