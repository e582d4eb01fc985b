"""``scripts/gpu-check`` on a fresh machine without a card and without internet access: everything but the card.

The engine is the demo's, built on such a machine; Python packages are brought along as wheels, models as files.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Host, Lab, archives
from lab.packages import cache_dir
from lab.project import ROOT, Project

from llamarig.converge.store.shelf import Shelf
from scripts.gpu_check import project
from scripts.gpu_check.report import Report

PARTS = ("llamarig", "plugins", "templates", "roles", "playbooks", "inventory", "headers", "scripts", "tests/support")
LOCK = ROOT / "requirements.lock"
NAME = "rehearsal"


def wheels() -> Path:
    """Every Python package of the lock for the host's Python, kept by the lock's hash."""
    key = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    kept = cache_dir() / "lab" / f"wheels-3.13-{key}"
    if not (kept / "complete").is_file():
        command = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--require-hashes", "--dest", str(kept)]
        command += ["--only-binary", ":all:", "--python-version", "3.13", "-r", str(LOCK)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        (kept / "complete").touch()
    return kept


def bring(host: Host) -> None:
    """The checkout without .git, the wheels and the model."""
    buffer = io.BytesIO()
    smol = project.reference()["models"]["smol"]
    held = Shelf.default().get(smol["sha256"])
    assert held is not None, "the demo host's apply has fetched it"
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for part in (*PARTS, "requirements.lock", "ansible.cfg", "pyproject.toml"):
            archive.add(ROOT / part, f"root/checkout/{part}", filter=_plain)
        archive.add(wheels(), "root/wheels")
        archive.add(held, "root/files/any-name.gguf")
    assert host.container.put_archive("/", buffer.getvalue())


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in info.name else info


@pytest.fixture(scope="module")
def rehearsed(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = lab.host(NAME, fresh=True)
    made = Project(tmp_path_factory.mktemp("rehearsal"))
    made.describe(host)
    made.rig("apply", NAME, "--yes").ok()
    host.exec("apt-get -q update && apt-get -qy install --no-install-recommends python3-venv")
    archives.take_back(host)
    bring(host)
    # From here on nothing is fetched: the machine has no way out.
    host.exec("ip route del default")
    yield host
    lab.discard(NAME)


def gpu_check(host: Host, *words: str) -> tuple[int, str]:
    """The command as root types it; its status and standard output."""
    typed = f"cd /root/checkout && scripts/gpu-check {' '.join(words)} 2>/root/told; echo status=$?"
    said = host.ssh(typed, seconds=600)
    report, _, status = said.rpartition("status=")
    return int(status), report


def test_without_a_card_it_says_what_to_do(rehearsed: Host) -> None:
    status, report = gpu_check(rehearsed)
    assert (status, report) == (2, "")
    assert "--backend cpu" in rehearsed.ssh("cat /root/told")


def test_everything_but_the_card_comes_true_under_the_rendered_units(rehearsed: Host) -> None:
    users = rehearsed.ssh("cat /etc/passwd")
    status, said = gpu_check(
        rehearsed, "--wheels /root/wheels --files /root/files --backend cpu --engine /opt/llamarig/current"
    )
    told = rehearsed.ssh("cat /root/told")
    assert said, told
    report = Report.model_validate(json.loads(said))
    no = [verdict for verdict in report.verdicts if verdict.answer == "no"]
    assert (status, no) == (0, []), told
    assert report.machine.systemd
    answers = {verdict.question: verdict.answer for verdict in report.verdicts}
    for service in (project.SMOL, project.MTP):
        assert report.services[service].sandboxed
        assert answers[f"{service}/serves"] == "yes"
        assert answers[f"{service}/asks-for-a-key"] == "yes"
        assert answers[f"{service}/memory-kv-cache"] == "yes"
    assert answers[f"{project.MTP}/drafts-are-accepted"] == "yes"
    assert answers["build/machine-code"] == "not-asked"
    assert rehearsed.ssh("cat /etc/passwd") == users
    assert rehearsed.ssh("ls /run/systemd/system | grep -c gpu-check || true").strip() == "0"


def test_an_engine_that_cannot_serve_is_a_no(rehearsed: Host) -> None:
    rehearsed.ssh("mkdir -p /srv/broken/bin && cp /bin/false /srv/broken/bin/llama-server")
    status, said = gpu_check(rehearsed, "--wheels /root/wheels --backend cpu --engine /srv/broken")
    assert status == 1, rehearsed.ssh("cat /root/told")
    report = Report.model_validate(json.loads(said))
    answers = {verdict.question: verdict.answer for verdict in report.verdicts}
    assert answers[f"{project.SMOL}/serves"] == "no"
