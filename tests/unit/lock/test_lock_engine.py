"""The engine's commit and its patches are locked against a real git over smart HTTP."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.standins.forge import Forge
from tests.support.standins.hub import sha256
from tests.support.standins.project import lock_project, model_bytes, spec, write_project


def engine(
    patches: str, source: str = "{archive: e.tar.gz, sha256: " + "a" * 64 + "}", commit: str = "4df29be4f"
) -> str:
    return f"engine:\n  commit: {commit}\n  build-number: 1\n  backend: cpu\n  source: {source}\n  patches:\n{patches}"


def project(root: Path, patches: str) -> Path:
    data = model_bytes("m")
    (root / "m.gguf").write_bytes(data)
    models = f"models:\n  smol: {{controller-path: m.gguf, sha256: {sha256(data)}, size: {len(data)}, header: none}}\n"
    return write_project(root, spec(models, engine(patches)))


def test_a_pull_request_is_pinned_by_head_and_content(forge: Forge, tmp_path: Path) -> None:
    head = forge.pull(7, src__a_dot_cpp="one\n2\nthree\nfour\n")
    path = project(tmp_path, "    - {pr: 7, head: unlocked, sha256: unlocked}  # faster\n")
    found = lock_project(tmp_path, forge.url)
    assert found.problems == []
    found.write()
    patch = tmp_path / "patches" / f"pr-7-{head[:12]}.patch"
    assert f"- {{pr: 7, head: {head}, sha256: {sha256(patch.read_bytes())}}}  # faster\n" in path.read_text()
    assert found.hosts[0].notes == [
        f"pull request 7 at {head[:12]} changes\n src/a.cpp | +2 -1\n 1 files, 2 lines added, 1 removed"
    ]
    tree = tmp_path / "tree" / "src"
    tree.mkdir(parents=True)
    (tree / "a.cpp").write_text("one\ntwo\nthree\n")
    subprocess.run(["git", "apply", str(patch)], cwd=tree.parent, check=True)
    assert (tree / "a.cpp").read_text() == "one\n2\nthree\nfour\n"
    assert not lock_project(tmp_path, forge.url).pending


def test_the_patch_is_the_same_after_the_default_branch_moved(forge: Forge, tmp_path: Path) -> None:
    forge.pull(7, src__a_dot_cpp="one\n2\nthree\n")
    project(tmp_path, "    - {pr: 7, head: unlocked, sha256: unlocked}\n")
    first = lock_project(tmp_path, forge.url)
    forge.commit("go on", src__b_dot_cpp="b\n")
    second = lock_project(tmp_path, forge.url)
    assert first.new_files == second.new_files
    assert next(iter(first.new_files.values())).count(b"diff --git") == 1


def test_a_moved_head_is_told_and_not_followed(forge: Forge, tmp_path: Path) -> None:
    head = forge.pull(7, src__a_dot_cpp="one\n2\nthree\n")
    path = project(tmp_path, "    - {pr: 7, head: unlocked, sha256: unlocked}\n")
    lock_project(tmp_path, forge.url).write()
    locked = path.read_text()
    forge.git("checkout", "-q", "--detach", head)
    newer = forge.commit("more", src__a_dot_cpp="one\n2\n3\n")
    forge.git("update-ref", "refs/pull/7/head", newer)
    forge.git("checkout", "-q", "main")
    (tmp_path / "patches" / f"pr-7-{head[:12]}.patch").unlink()
    found = lock_project(tmp_path, forge.url)
    assert found.problems == []
    assert f"pull request 7 moved: {head[:12]} -> {newer[:12]}; the spec keeps {head[:12]}" in found.hosts[0].notes
    found.write()
    assert path.read_text() == locked
    assert (tmp_path / "patches" / f"pr-7-{head[:12]}.patch").is_file()


def test_a_patch_of_the_project_gets_its_hash(tmp_path: Path) -> None:
    text = "--- a/src/a.cpp\n+++ b/src/a.cpp\n@@ -1 +1 @@\n-one\n+1\n"
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches" / "own.patch").write_text(text)
    path = project(tmp_path, "    - {file: patches/own.patch, sha256: unlocked}\n")
    found = lock_project(tmp_path, offline=True)
    assert found.problems == []
    found.write()
    assert f"{{file: patches/own.patch, sha256: {sha256(text.encode())}}}" in path.read_text()


def test_an_acknowledged_change_of_the_build_is_locked_and_shown(forge: Forge, tmp_path: Path) -> None:
    forge.pull(8, CMakeLists_dot_txt="project(y)\n")
    project(tmp_path, "    - {pr: 8, head: unlocked, sha256: unlocked, build-system: acknowledged}\n")
    found = lock_project(tmp_path, forge.url)
    assert found.problems == []
    assert "CMakeLists.txt | +1 -1" in found.hosts[0].notes[0]


def test_two_hosts_share_one_lookup(forge: Forge, tmp_path: Path) -> None:
    forge.pull(7, src__a_dot_cpp="one\n2\nthree\n")
    path = project(tmp_path, "    - {pr: 7, head: unlocked, sha256: unlocked}\n")
    path.with_name("crate.yml").write_text(path.read_text().replace("host: box", "host: crate"))
    found = lock_project(tmp_path, forge.url)
    assert found.problems == []
    assert len(found.new_files) == 1
    assert len(found.files) == 2
