"""What lock must refuse, each with the message that the user gets; nothing of it reaches a file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from llamarig.converge.locking.result import Locked
from llamarig.errors import ExitCode, RigError
from tests.support.standins.forge import Forge
from tests.support.standins.hub import FakeHub, Repository, sha256
from tests.support.standins.index import FakeIndex
from tests.support.standins.project import ENGINE, lock_project, model_bytes, spec, write_project

MAIN = "a" * 40
DATA = model_bytes("smol")
HUB = "models:\n  smol: {repo: acme/m, revision: unlocked, file: m.gguf, sha256: unlocked, size: unlocked}\n"
LOCAL = f"models:\n  smol: {{controller-path: m.gguf, sha256: {sha256(DATA)}, size: {len(DATA)}, header: none}}\n"


def locked(hub: FakeHub, root: Path, models: str = HUB, *, private: bool = False) -> Locked:
    hub.repositories.setdefault("acme/m", Repository({MAIN: {"m.gguf": DATA}}, MAIN, private))
    write_project(root, spec(models))
    return lock_project(root)


def only(found: Locked) -> RigError:
    (problem,) = found.problems
    assert not found.pending
    return problem


def test_an_unknown_repository(hub: FakeHub, tmp_path: Path) -> None:
    problem = only(locked(hub, tmp_path, HUB.replace("acme/m", "acme/typo")))
    assert "no such repository" in problem.what
    assert "hf auth login" in problem.fix


def test_a_private_repository_without_login(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "none"))
    monkeypatch.setattr("llamarig.converge.locking.hub.get_token", lambda: None)
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    assert "not for you" in only(locked(hub, tmp_path, private=True)).what


def test_a_file_that_the_repository_lacks(hub: FakeHub, tmp_path: Path) -> None:
    assert "no file other.gguf" in only(locked(hub, tmp_path, HUB.replace("m.gguf", "other.gguf"))).what


def test_a_revision_that_is_gone(hub: FakeHub, tmp_path: Path) -> None:
    problem = only(locked(hub, tmp_path, HUB.replace("revision: unlocked", f"revision: {'c' * 40}")))
    assert "no such revision" in problem.what


def test_a_rate_limit_says_how_long_to_wait(hub: FakeHub, tmp_path: Path) -> None:
    hub.limited = True
    problem = only(locked(hub, tmp_path))
    assert "429" in problem.why
    assert "30 s" in problem.fix
    assert problem.code == ExitCode.HOST_FAILED


@pytest.mark.parametrize(
    ("header", "value"), [("X_Linked_Etag", f'"{"d" * 64}"'), ("X_Linked_Size", "5"), ("X_Repo_Commit", "e" * 40)]
)
def test_a_hub_that_contradicts_its_listing(hub: FakeHub, tmp_path: Path, header: str, value: str) -> None:
    hub.lie = {header: value}
    assert "contradicts itself" in only(locked(hub, tmp_path)).what


def test_a_pinned_hash_that_is_not_there(hub: FakeHub, tmp_path: Path) -> None:
    problem = only(locked(hub, tmp_path, HUB.replace("sha256: unlocked", f"sha256: {'0' * 64}")))
    assert "the sha256 there is not the one that the spec pins" in problem.what


def test_a_file_that_is_no_model(hub: FakeHub, tmp_path: Path) -> None:
    hub.repositories["acme/m"] = Repository({MAIN: {"m.gguf": b"<!DOCTYPE html><html>" * 10}}, MAIN)
    write_project(tmp_path, spec(HUB))
    assert "m.gguf" in only(lock_project(tmp_path)).where


def test_storage_that_gives_no_ranges(hub: FakeHub, tmp_path: Path) -> None:
    hub.ranges = False
    assert "no parts of files" in only(locked(hub, tmp_path)).what


def test_a_file_that_changes_while_its_header_is_read(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llamarig.converge.locking.remote.FIRST", 1 << 16)
    hub.repositories["acme/m"] = Repository({MAIN: {"m.gguf": model_bytes("x" * 200_000)}}, MAIN)
    hub.swap_after = 1
    write_project(tmp_path, spec(HUB))
    assert "changed while it was read" in only(lock_project(tmp_path)).what


def test_an_unreachable_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    write_project(tmp_path, spec(HUB))
    assert "cannot be reached" in only(lock_project(tmp_path)).what


def test_offline_asks_nobody(hub: FakeHub, tmp_path: Path) -> None:
    write_project(tmp_path, spec(HUB))
    problem = only(lock_project(tmp_path, offline=True))
    assert "needs the network" in problem.what
    assert problem.where.endswith("inventory/box.yml: models.smol")


def test_an_index_that_promises_another_content(index: FakeIndex, tmp_path: Path) -> None:
    index.files = {"engine_tree-2.1.tar.gz": b"a tree"}
    index.lie = True
    (tmp_path / "m.gguf").write_bytes(DATA)
    source = "{sdist: engine-tree==2.1, sha256: unlocked}"
    engine = f"engine: {{commit: 4df29be4f, build-number: 1, backend: cpu, source: {source}}}\n"
    write_project(tmp_path, spec(LOCAL, engine))
    assert "promises another content" in only(lock_project(tmp_path)).what


def test_one_problem_keeps_no_other_value_open(hub: FakeHub, tmp_path: Path) -> None:
    hub.repositories["acme/m"] = Repository({MAIN: {"m.gguf": DATA}}, MAIN)
    other = HUB.replace("models:\n", "").replace("smol", "gone").replace("acme/m", "acme/typo")
    path = write_project(tmp_path, spec(HUB + other))
    found = lock_project(tmp_path)
    assert len(found.problems) == 1
    found.write()
    assert sha256(DATA) in path.read_text()
    assert path.read_text().count("unlocked") == 3


def patched(forge: Forge, root: Path, more: str = "", head: str = "unlocked", sha: str = "unlocked") -> Locked:
    (root / "m.gguf").write_bytes(DATA)
    patches = f"  patches: [{{pr: 7, head: {head}, sha256: {sha}{more}}}]\n"
    write_project(root, spec(LOCAL, ENGINE + patches))
    return lock_project(root, forge.url)


@pytest.mark.parametrize(
    "files",
    [
        {"CMakeLists_dot_txt": "project(y)\n"},
        {"cmake__x_dot_cmake": "x\n"},
        {"scripts__gen_dot_py": "x\n"},
        {"ggml__src__CMakeLists_dot_txt": "x\n"},
        {"_dot_github__workflows__x_dot_yml": "x\n"},
    ],
)
def test_a_change_of_the_build_that_nobody_acknowledged(forge: Forge, tmp_path: Path, files: dict[str, str]) -> None:
    forge.pull(7, **files)
    problem = only(patched(forge, tmp_path))
    assert "changes how the build runs" in problem.what
    assert "build-system: acknowledged" in problem.fix


def test_a_link_is_refused_even_when_acknowledged(forge: Forge, tmp_path: Path) -> None:
    forge.git("checkout", "-q", "--detach", "main")
    (forge.work / "src" / "link").symlink_to("/etc/passwd")
    head = forge.commit("link")
    forge.git("update-ref", "refs/pull/7/head", head)
    forge.git("checkout", "-q", "main")
    problem = only(patched(forge, tmp_path, ", build-system: acknowledged"))
    assert "reaches beyond the sources" in problem.what
    assert "mode 120000" in problem.why


def test_no_such_pull_request(forge: Forge, tmp_path: Path) -> None:
    assert "no pull request 7" in only(patched(forge, tmp_path)).what


def test_a_pull_request_that_is_merged_already(forge: Forge, tmp_path: Path) -> None:
    head = forge.pull(7, src__a_dot_cpp="merged\n")
    forge.git("merge", "-q", "--ff-only", head)
    assert "part of the default branch" in only(patched(forge, tmp_path)).what


def test_a_pinned_head_that_was_rewritten_away(forge: Forge, tmp_path: Path) -> None:
    gone = forge.pull(7, src__a_dot_cpp="first\n")
    forge.pull(7, src__a_dot_cpp="rewritten\n")
    found = patched(forge, tmp_path, head=gone)
    problem = only(found)
    assert "no longer holds the commit" in problem.what
    assert any("moved" in note for note in found.hosts[0].notes)


def test_a_pinned_patch_with_another_content(forge: Forge, tmp_path: Path) -> None:
    head = forge.pull(7, src__a_dot_cpp="first\n")
    assert "not the one that the spec pins" in only(patched(forge, tmp_path, head=head, sha="0" * 64)).what


def test_hosts_that_disagree_about_a_shared_value(hub: FakeHub, tmp_path: Path) -> None:
    """The branch moves between two hosts that share the value in a fleet file."""
    from llamarig.converge.locking import lock as locking
    from llamarig.converge.locking.result import HostWork
    from llamarig.spec.load import load_project

    shared = "".join(f"  {line}\n" for line in HUB.splitlines())
    path = write_project(tmp_path, spec(""), f"schema-version: 1\ndefaults:\n{shared}")
    (loaded,) = load_project(tmp_path).valid(None)
    assert loaded.spec is not None
    result = Locked()
    for revision in ("a" * 40, "b" * 40):
        work = HostWork("box", path, loaded.spec, {("models", "smol", "revision"): revision})
        result.hosts.append(work)
        work.attempt((), partial(locking._enter, work, tmp_path, result))
    (problem,) = result.problems
    assert "different values" in problem.what
