"""A real toolkit on Debian 13: wheels of 13.0, machine code for two generations of cards, no card needed.

The wheels come through this machine's own pip configuration and stay on the shelf by content. What NVIDIA gives as
archives and runfiles is not here; stand-ins of their form are in tests/unit/toolkit.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab import Host, Lab, archives
from lab.project import ROOT, Project, demo_spec
from lab.report import actions_of

from llamarig.converge.store import origins
from llamarig.converge.store.shelf import Shelf, silent

VERSION = "13.0.88"
PREFIX = f"/opt/llamarig/cuda/{VERSION}"
WHEELS = {
    "nvidia-cuda-nvcc==13.0.88": "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
    "nvidia-nvvm==13.0.88": "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0",
    "nvidia-cuda-crt==13.0.88": "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
    "nvidia-cuda-runtime==13.0.96": "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
    "nvidia-cuda-cccl==13.0.85": "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649",
    "nvidia-cublas==13.1.0.3": "ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171",
}
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


def cuda_spec() -> dict[str, Any]:
    """The demo's spec for a host with a Blackwell and an Ada card, which nobody asks for here."""
    spec = demo_spec()
    spec["gpus"] = {
        "blackwell": {"model": "rtx-pro-4000-blackwell-sff", "bus-id": "01:00.0"},
        "ada": {"model": "rtx-2000-ada", "bus-id": "02:00.0"},
    }
    spec["cuda"] = {"source": "wheels", "version": VERSION, "wheels": dict(WHEELS)}
    spec["engine"] |= {"backend": "cuda", "architectures": ["120a-real", "89-real"]}
    for service in spec["services"].values():
        service["gpu"] = "blackwell"
    return spec


def play(project: Project, host: Host, objects: list[str]) -> str:
    """Run partial.yml on the host; what it printed."""
    command = ["ansible-playbook", "-i", str(project.inventory), "--limit", host.name]
    command += ["-e", json.dumps({"partial_objects": objects}), str(Path(__file__).with_name("partial.yml"))]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=dict(project.environment(), ANSIBLE_NOCOLOR="1", LC_ALL=os.environ.get("LC_ALL", "C.UTF-8")),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


@pytest.fixture(scope="module")
def builder(lab: Lab, project: Project) -> Iterator[Host]:
    """A bare machine on which the toolkit was installed and the five sources were built, as the roles do it."""
    host = lab.host("cuda", fresh=True)
    project.describe(host, cuda_spec())
    play(project, host, OBJECTS)
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
    play(project, builder, [])
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
        for name in ("rig_cuda_headers", "rig_disk", "rig_unpack"):
            archive.add(ROOT / f"plugins/module_utils/{name}.py", f"root/mend/ansible/module_utils/{name}.py")
    assert host.container.put_archive("/", buffer.getvalue())
    script = (
        "import json, pathlib; from ansible.module_utils.rig_cuda_headers import mend;"
        f"print(json.dumps(mend(pathlib.Path('{prefix}'))))"
    )
    said: dict[str, str] = json.loads(host.ssh(f'cd /root/mend && python3 -c "{script}"'))
    return said
