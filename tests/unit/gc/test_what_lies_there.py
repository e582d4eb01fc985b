"""Our trees are listed by the forms of what we put there; everything else is told, and no link is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.compare.cases import sha
from tests.support.gc_tree import FORMER, NOW, OLD, Tree, gc, wanted_document
from tests.support.observe.load import part

dirs = part("rig_gc_dirs")


def unknown(tree: Tree) -> dict[str, str]:
    return {os.path.relpath(each["path"], tree.base): each["what"] for each in tree.listed()["unknown"]}


def test_each_thing_is_listed_with_its_kind_and_weight(tree: Tree) -> None:
    tree.release(OLD)
    tree.model("old", link="smol")
    (tree.base / "opt/cuda/12.9.86/bin").mkdir(parents=True)
    (tree.base / f"opt/releases/.{OLD}.tmp").mkdir()
    (tree.base / f"var/build/{OLD}/src").mkdir(parents=True)
    (tree.base / "var/jobs/llamarig-fetch-0123456789abcdef").mkdir(parents=True)
    (tree.models / "incoming").mkdir()
    for name in (f"{sha('half')}.part", f"{sha('half')}.part.etag"):
        (tree.models / "incoming" / name).write_bytes(b"half")
    (tree.base / "cache/ccache/a").mkdir(parents=True)
    found = tree.things()
    assert {path: each["kind"] for path, each in found.items()} == {
        f"opt/releases/{NOW}": "release",
        f"opt/releases/{OLD}": "release",
        f"opt/releases/.{OLD}.tmp": "leftover",
        "opt/cuda/12.9.86": "toolkit",
        f"var/build/{OLD}": "build",
        "var/jobs/llamarig-fetch-0123456789abcdef": "job",
        f"var/models/sha256/{sha('old')}": "model",
        "var/models/smol/x.gguf": "link",
        f"var/models/incoming/{sha('half')}.part": "part",
        f"var/models/incoming/{sha('half')}.part.etag": "part",
        "cache/ccache": "build-cache",
    }
    assert found[f"opt/releases/{OLD}"]["bytes"] >= 100_000
    assert found["var/models/smol/x.gguf"]["target"] == str(tree.models / "sha256" / sha("old"))
    assert unknown(tree) == {}


def test_a_link_in_the_place_of_anything_is_told_and_not_followed(tree: Tree, tmp_path: Path) -> None:
    other = tmp_path / "etc"
    (other / "bin").mkdir(parents=True)
    tree.model("good", link="smol")
    (tree.models / "sha256" / sha("trap")).symlink_to(other)
    (tree.models / "trap").symlink_to(other)
    (tree.models / "smol/passwd").symlink_to(other / "passwd")
    (tree.base / f"opt/releases/{OLD}").symlink_to(other)
    assert set(tree.things()) == {f"opt/releases/{NOW}", f"var/models/sha256/{sha('good')}", "var/models/smol/x.gguf"}
    assert unknown(tree) == {
        f"opt/releases/{OLD}": f"a link to {other}",
        f"var/models/sha256/{sha('trap')}": f"a link to {other}",
        "var/models/trap": f"a link to {other}",
        "var/models/smol/passwd": f"a link to {other}/passwd",
    }


def test_a_tree_that_is_reached_through_a_link_is_not_looked_into(tree: Tree, tmp_path: Path) -> None:
    tree.model("good")
    tree.models.rename(tmp_path / "disk")
    tree.models.symlink_to(tmp_path / "disk")
    assert set(tree.things()) == {f"opt/releases/{NOW}"}
    assert unknown(tree)["var/models/sha256"] == "is not looked into: 'models' in it is a link"


def test_what_others_put_there_is_told(tree: Tree) -> None:
    tree.model("good", link="smol")
    for path in ("opt/backup", "var/notes", "var/models/mine", "opt/releases/..tmp"):
        (tree.base / path).mkdir(parents=True)
    for path in ("var/models/sha256/README", "var/models/mine/own.gguf", "var/models/todo.txt"):
        (tree.base / path).write_text("x")
    assert unknown(tree) == {
        "opt/backup": "a directory",
        "opt/releases/..tmp": "a directory",
        "var/notes": "a directory",
        "var/models/mine": "a directory without a link to a model",
        "var/models/sha256/README": "a file",
        "var/models/todo.txt": "a file",
    }


def test_a_file_with_a_name_elsewhere_gives_nothing_back(tree: Tree, tmp_path: Path) -> None:
    model = tree.model("shared")
    alone = tree.things()[f"var/models/sha256/{sha('shared')}"]["bytes"]
    (tmp_path / "mine.gguf").hardlink_to(model)
    assert alone > 0
    assert tree.things()[f"var/models/sha256/{sha('shared')}"]["bytes"] == 0


def test_names_inside_of_one_thing_are_counted_once(tree: Tree) -> None:
    before = tree.things()[f"opt/releases/{NOW}"]["bytes"]
    server = tree.base / f"opt/releases/{NOW}/bin/llama-server"
    (server.parent / "again").hardlink_to(server)
    assert tree.things()[f"opt/releases/{NOW}"]["bytes"] == before


def test_what_is_mounted_in_a_thing_keeps_it(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tree.release(OLD)
    monkeypatch.setattr(gc, "mount_points", lambda: [f"{path}/bin"])
    assert tree.things()[f"opt/releases/{OLD}"]["odd"] == "something is mounted in it"
    assert tree.things()[f"opt/releases/{NOW}"]["odd"] == ""


def test_packages_that_were_copied_may_go_and_a_mirror_may_not(tree: Tree) -> None:
    (tree.base / "var/mirror/debian").mkdir(parents=True)
    assert (tree.things()["var/mirror"]["kind"], tree.things()["var/mirror"]["odd"]) == ("packages", "")
    (tree.base / "var/mirror/manifest.json").write_text("{}")
    assert "a mirror of its own" in tree.things()["var/mirror"]["odd"]


def test_mount_points_are_read_with_their_blanks(tmp_path: Path) -> None:
    info = tmp_path / "mountinfo"
    info.write_text("22 1 0:20 / / rw shared:1 - ext4 /dev/a rw\n23 22 0:21 / /data/my\\040disk rw - xfs /dev/b rw\n")
    assert dirs.mount_points(str(info)) == ["/", "/data/my disk"]


def test_a_tree_that_nests_too_deep_stays(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree.base / f"var/build/{OLD}/a/b/c").mkdir(parents=True)
    monkeypatch.setattr(dirs, "DEEPEST", 1)
    assert "nest deeper" in tree.things()[f"var/build/{OLD}"]["odd"]


def test_what_the_host_names_is_read_from_its_documents(tree: Tree) -> None:
    tree.release(FORMER)
    kept, was = tree.model("kept", link="smol"), tree.model("was")
    document = wanted_document(FORMER, {str(was): [str(tree.models / "was/y.gguf")]})
    files = [
        {"path": str(tree.models / "smol/x.gguf"), "absent": False, "link": f"../sha256/{sha('kept')}"},
        {"path": str(tree.base / "var/wanted.json"), "absent": False, "content": gc.rig_gc_named.json.dumps(document)}
        | {"mode": 0o644, "owner": "root", "group": "root"},
    ]
    tree.write("former.json", {"release": FORMER, "files": files})
    tree.record(**{"former-release": FORMER}, files={str(kept): {}, "/opt/llamarig/cuda/1/manifest.json": {}})
    names = tree.listed()["names"]
    assert names["current"] == NOW
    assert names["record"]["releases"] == [NOW, FORMER]
    assert names["record"]["models"] == [str(kept)]
    assert names["record"]["toolkits"] == ["/opt/llamarig/cuda/1"]
    assert names["former"]["releases"] == [FORMER, FORMER]
    assert set(names["former"]["models"]) == {str(kept), str(was)}
    assert set(names["former"]["links"]) == {str(tree.models / "smol/x.gguf"), str(tree.models / "was/y.gguf")}
    assert names["held"] is None


def test_models_of_a_directory_that_only_the_former_state_knows_are_found(tree: Tree) -> None:
    elsewhere = tree.base / "before/sha256" / sha("was")
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(b"GGUF")
    tree.write("wanted.json", wanted_document(NOW, {str(elsewhere): []}))
    assert f"before/sha256/{sha('was')}" in tree.things()


@pytest.mark.parametrize("name", ["former.json", "proven.json", "wanted.json", "held.json"])
@pytest.mark.parametrize("content", ["[]", '{"release": 1}', '{"release": {"id": "x"}, "models": 7}'])
def test_a_document_that_cannot_be_read_is_told(tree: Tree, name: str, content: str) -> None:
    (tree.base / "var" / name).write_text(content)
    found = tree.listed()
    assert name in found["unreadable"]
    assert found["things"] == []


def test_a_current_link_that_leads_elsewhere_is_told(tree: Tree) -> None:
    (tree.base / "opt/current").unlink()
    (tree.base / "opt/current").symlink_to("/etc")
    assert "which is no release" in tree.listed()["unreadable"]
