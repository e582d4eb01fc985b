"""A real toolkit on Debian 13: wheels of 13.0, machine code for two generations of cards, no card needed.

The wheels come through this machine's own pip configuration and stay on the shelf by content. What NVIDIA gives as
archives and runfiles is not here; stand-ins of their form are in tests/unit/toolkit.
"""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab import Host, Lab, archives
from lab.project import ROOT, Project
from lab.report import actions_of

from llamarig.converge.store import origins
from llamarig.converge.store.shelf import Shelf, silent
from scripts.gpu_check.files import WHEELS
from tests.support.toolkit.reference import PREFIX, cuda_spec, play

OLD_HEADERS = ("nvidia-cuda-nvcc-cu12==12.9.86", "5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0")
OBJECTS = [
    f"ggml/src/ggml-cuda/CMakeFiles/ggml-cuda.dir/{name}.cu.o"
    for name in (
        "template-instances/fattn-mma-f16-instance-ncols1_8-ncols2_8",
        "template-instances/fattn-tile-instance-dkq128-dv128",
        "template-instances/fattn-vec-instance-q4_0-q4_0",
        "gated_delta_net",
        "template-instances/mmq-instance-nvfp4",
    )
]
"""One of each kind of kernel that the reference spec runs: MMA, tile and vector attention, Gated DeltaNet, NVFP4."""
PROBE = "#include <cuda_runtime.h>\n#include <cmath>\n__global__ void one(float * x) { *x = 1.0f; }\n"


def partial(project: Project, host: Host, objects: list[str]) -> str:
    """Run partial.yml on the host; what it printed."""
    return play(project, host, Path(__file__).with_name("partial.yml"), partial_objects=objects)


@pytest.fixture(scope="module")
def builder(lab: Lab, project: Project) -> Iterator[Host]:
    """A bare machine on which the toolkit was installed and the five sources were built, as the roles do it."""
    host = lab.host("cuda", fresh=True)
    project.describe(host, cuda_spec())
    partial(project, host, OBJECTS)
    archives.take_back(host)
    yield host
    lab.discard("cuda")
    (project.inventory / "cuda.yml").unlink(missing_ok=True)


def toolkit_actions(project: Project, host: Host) -> list[dict[str, Any]]:
    """What an apply would do to the toolkit."""
    ran = project.rig("apply", host.name, "--check", "--json")
    return [action for action in actions_of(ran.data) if action["kind"] == "toolkit"]


def nvcc(host: Host, prefix: str, words: str) -> str:
    """Compile :data:`PROBE` with a toolkit; its words and its exit status."""
    host.write("/root/probe.cu", PROBE.encode())
    return host.exec(
        f"{prefix}/bin/nvcc -ccbin g++-14 {words} -o /root/probe.o /root/probe.cu 2>&1; echo status=$?"
    ).output


def test_five_sources_of_the_reference_commit_hold_code_for_both_generations(builder: Host) -> None:
    """The play itself has read their machine code (rig_images); here is that they are there at all."""
    found = builder.ssh("find /var/lib/llamarig/build -name '*.cu.o'").split()
    assert sorted(path.rpartition("/")[2] for path in found) == sorted(name.rpartition("/")[2] for name in OBJECTS)


def test_the_toolkit_is_whole_private_and_roots_alone(builder: Host, project: Project) -> None:
    assert toolkit_actions(project, builder) == []
    assert builder.ssh("command -v nvcc || true").strip() == ""
    assert builder.ssh("ldconfig -p | grep -c -e cudart -e cublas || true").strip() == "0"
    assert builder.ssh(f"find {PREFIX} ! -user root -o -perm /6022 ! -type l").split() == []
    manifest = json.loads(builder.ssh(f"cat {PREFIX}/manifest.json"))
    assert manifest["nvcc"].endswith("V13.0.88")
    assert {part["name"]: part["sha256"] for part in manifest["parts"]} == WHEELS
    assert manifest["header-fix"] is None


def test_a_changed_tool_is_seen_and_replaced(builder: Host, project: Project) -> None:
    builder.ssh(f"printf x >>{PREFIX}/bin/bin2c")
    [action] = toolkit_actions(project, builder)
    assert action["reason"] == "bin/bin2c was changed"
    partial(project, builder, [])
    assert toolkit_actions(project, builder) == []


def test_the_headers_of_12_9_fail_on_this_libc_and_pass_when_mended(builder: Host) -> None:
    """The front end of 13.0 with the two headers of 12.9.86 in place of its own, on glibc 2.41."""
    requirement, sha256 = OLD_HEADERS
    shelf = Shelf.default()
    wheel = shelf.get(sha256) or origins.distribution(shelf, requirement, "wheel", sha256, silent)
    builder.ssh(f"rm -rf /opt/mixed && mkdir /opt/mixed && cp -al {PREFIX}/. /opt/mixed/")
    builder.ssh("rm /opt/mixed/include/crt/math_functions.*")
    with zipfile.ZipFile(wheel) as archive:
        for name in ("math_functions.h", "math_functions.hpp"):
            builder.write(f"/opt/mixed/include/crt/{name}", archive.read(f"nvidia/cuda_nvcc/include/crt/{name}"))
    before = nvcc(builder, "/opt/mixed", "-arch=sm_89 -c")
    assert "4 errors detected" in before
    for function in ("cospi", "cospif", "sinpi", "sinpif"):
        assert f'exception specification is incompatible with that of previous function "{function}"' in before
    mended = mend(builder, "/opt/mixed")
    assert mended["before"] != mended["after"]
    assert nvcc(builder, "/opt/mixed", "-arch=sm_89 -c").strip() == "status=0"
    assert mend(builder, "/opt/mixed") == mended | {"before": mended["after"]}
    builder.ssh("rm -rf /opt/mixed")


def mend(host: Host, prefix: str) -> dict[str, str]:
    """Mend the headers with the code that the role runs on a host."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("rig_cuda_headers", "rig_disk", "rig_tar_headers", "rig_unpack"):
            archive.add(ROOT / f"plugins/module_utils/{name}.py", f"root/mend/ansible/module_utils/{name}.py")
    assert host.container.put_archive("/", buffer.getvalue())
    script = (
        "import json, pathlib; from ansible.module_utils.rig_cuda_headers import mend;"
        f"print(json.dumps(mend(pathlib.Path('{prefix}'))))"
    )
    said: dict[str, str] = json.loads(host.ssh(f'cd /root/mend && python3 -c "{script}"'))
    return said
