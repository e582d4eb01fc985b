"""The table of known files, asked for again at a stand-in of the hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from llamarig.catalog.known_files import PROJECT_FILE, table
from llamarig.converge.locking.hub import Hub
from llamarig.converge.locking.known import Refreshed, refresh
from llamarig.errors import RigError
from llamarig.spec.host import HostSpec
from tests.support.plan_specs import CPU, spec
from tests.support.standins.hub import FakeHub, Repository, sha256

ROOT = Path(__file__).resolve().parents[3]
MAIN = "a" * 40
UNSLOTH, GGML = "unsloth/Qwen3.8-27B-GGUF", "ggml-org/Qwen3.8-27B-GGUF"
FILES = {
    "README.md": b"words",
    "Qwen3.8-27B-Q4_K_M.gguf": b"four bits",
    "Qwen3.8-27B-UD-IQ2_XXS.gguf": b"two",
    "BF16/Qwen3.8-27B-BF16-00001-of-00002.gguf": b"a shard in a folder",
    "Qwen3.8-27B-BF16-00001-of-00002.gguf": b"a shard",
    "mmproj-F16.gguf": b"eyes and ears",
    "mtp-Qwen3.8-27B-Q4_0.gguf": b"a drafter",
    "Qwen3.8-27B-imatrix.gguf": b"no model",
}


def asked(root: Path, *specs: HostSpec) -> Refreshed:
    with httpx.Client() as http:
        return refresh(root, specs, Hub(http))


def publish(hub: FakeHub, repo: str, files: dict[str, bytes]) -> None:
    hub.repositories[repo] = Repository({MAIN: files}, MAIN, small={"README.md"})


def test_every_repository_of_the_table_is_asked_and_written_down(hub: FakeHub, tmp_path: Path) -> None:
    for repo in {each.repo for each in table().files}:
        publish(hub, repo, FILES if repo == UNSLOTH else {"x-Q8_0.gguf": repo.encode()})
    found = asked(tmp_path)
    assert found.problems == []
    assert set(found.asked) == {each.repo for each in table().files}
    assert found.pending
    found.write()
    ours = [each for each in table(tmp_path).files if each.repo == UNSLOTH and each.revision == MAIN]
    assert {each.file: (each.size, each.sha256, each.quant) for each in ours} == {
        "Qwen3.8-27B-Q4_K_M.gguf": (9, sha256(b"four bits"), "Q4_K_M"),
        "Qwen3.8-27B-UD-IQ2_XXS.gguf": (3, sha256(b"two"), "UD-IQ2_XXS"),
        "mmproj-F16.gguf": (13, sha256(b"eyes and ears"), None),
    }
    again = asked(tmp_path)
    assert not again.pending
    assert again.diff() == ""


def test_a_head_is_claimed_only_where_it_is_known(hub: FakeHub, tmp_path: Path) -> None:
    publish(hub, UNSLOTH, {"Qwen3.8-27B-Q9_K.gguf": b"new"})
    publish(hub, "bartowski/Qwen3.8-27B-GGUF", {"Qwen3.8-27B-Q9_K.gguf": b"other"})
    asked(tmp_path).write()
    heads = {each.repo: each.mtp for each in table(tmp_path).files if each.quant == "Q9_K"}
    assert heads == {UNSLOTH: False, "bartowski/Qwen3.8-27B-GGUF": True}


def test_repositories_of_the_specs_are_asked_too(hub: FakeHub, tmp_path: Path) -> None:
    publish(hub, "acme/Tiny-Model-GGUF", {"tiny-Q4_0.gguf": b"tiny", "tiny-Q8_0.gguf": b"bigger"})
    model = {"repo": "acme/Tiny-Model-GGUF", "revision": "unlocked", "file": "tiny-Q8_0.gguf", "sha256": "unlocked",
             "size": "unlocked"}  # fmt: skip
    found = asked(tmp_path, spec(CPU, models={"small": model}))
    assert "acme/Tiny-Model-GGUF" in found.asked
    found.write()
    assert [each.quant for each in table(tmp_path).of("tiny-model")] == ["Q4_0", "Q8_0"]


def test_a_repository_that_cannot_be_asked_keeps_what_was_known(hub: FakeHub, tmp_path: Path) -> None:
    publish(hub, GGML, {"Qwen3.8-27B-Q8_0.gguf": b"first"})
    first = asked(tmp_path)
    assert len(first.problems) == len({each.repo for each in table().files}) - 1
    first.write()
    del hub.repositories[GGML]
    second = asked(tmp_path)
    assert GGML not in second.asked
    assert not second.pending
    assert sha256(b"first") in {each.sha256 for each in table(tmp_path).files}


def test_a_listing_that_makes_no_sense_is_refused(hub: FakeHub, tmp_path: Path) -> None:
    publish(hub, GGML, {"Qwen3.8-27B-Q8_0.gguf": b"first"})
    hub.lie["sha256"] = "0123"
    [nonsense] = [each for each in asked(tmp_path).problems if GGML in each.where]
    assert "makes no sense" in nonsense.what
    with httpx.Client() as http, pytest.raises(RigError, match="makes no sense"):
        Hub(http).tree(GGML, MAIN)


def test_the_verb_shows_a_difference_and_writes_it(hub: FakeHub, tmp_path: Path) -> None:
    for repo in {each.repo for each in table().files}:
        publish(hub, repo, {"x-Q8_0.gguf": repo.encode()})

    def lock(*words: str) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ, PYTHONPATH=str(ROOT), HF_ENDPOINT=hub.address)
        command = [sys.executable, "-m", "llamarig.cli.main", "-C", str(tmp_path), "lock", "--known-files", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    shown = lock("--check")
    assert shown.returncode == 1, shown.stderr
    assert "+- repo" in shown.stdout.replace("  ", "")
    assert not (tmp_path / PROJECT_FILE).exists()
    assert lock().returncode == 0
    assert (tmp_path / PROJECT_FILE).is_file()
    done = json.loads(lock("--json").stdout)
    assert list(done) == ["asked", "diff", "errors", "written"]
    assert done["written"] is False
    offline = lock("--offline")
    assert offline.returncode == 2
    assert "offline" in offline.stderr

    demo = (ROOT / "inventory" / "demo.yml").read_text()
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory" / "demo.yml").write_text(demo)
    assert lock("--all").returncode == 0
    (tmp_path / "inventory" / "zoe.yml").write_text(demo.replace("host: demo", "hast: zoe"))
    bad = lock("--all", "--json")
    assert bad.returncode == 2
    assert json.loads(bad.stdout)["asked"] == done["asked"], "the others are asked for"
    assert "zoe.yml" in json.loads(bad.stdout)["errors"][0]["where"]
    assert "zoe.yml" in lock("--all").stderr
