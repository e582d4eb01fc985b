"""Files are looked at without being trusted; a hash is believed only while the stat tuple holds."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import part

files = part("rig_files")


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def entry(path: Path, sha256: str) -> dict[str, Any]:
    return {"sha256": sha256, "stat": files.stat_tuple(path.lstat())}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"A" * 3_000_000)
    return path


def test_a_hash_is_that_of_the_content(model: Path) -> None:
    seen = files.Hasher().describe(str(model))
    assert seen["sha256"] == sha(b"A" * 3_000_000)
    assert seen["hashed"] is True
    assert seen["size"] == 3_000_000
    assert seen["stat"] == files.stat_tuple(model.stat())


def test_a_recorded_hash_is_believed_while_the_tuple_holds_and_no_byte_is_read(model: Path) -> None:
    seen = files.Hasher({str(model): entry(model, "f" * 64)}).describe(str(model))
    assert (seen["sha256"], seen["hashed"]) == ("f" * 64, False)


def test_deep_believes_nothing(model: Path) -> None:
    seen = files.Hasher({str(model): entry(model, "f" * 64)}, deep=True).describe(str(model))
    assert (seen["sha256"], seen["hashed"]) == (sha(b"A" * 3_000_000), True)


def test_content_replaced_in_place_with_its_size_and_mtime_restored_is_hashed_again(model: Path) -> None:
    recorded = {str(model): entry(model, sha(b"A" * 3_000_000))}
    before = model.stat()
    time.sleep(0.02)
    with model.open("r+b") as file:
        file.write(b"B")
    os.utime(model, ns=(before.st_atime_ns, before.st_mtime_ns))
    seen = files.Hasher(recorded).describe(str(model))
    assert model.stat().st_mtime_ns == before.st_mtime_ns
    assert (seen["hashed"], seen["sha256"]) == (True, sha(b"B" + b"A" * 2_999_999))


def test_another_file_of_the_same_size_and_mtime_under_the_name_is_hashed_again(model: Path) -> None:
    recorded = {str(model): entry(model, sha(b"A" * 3_000_000))}
    other = model.with_name("other")
    other.write_bytes(b"C" * 3_000_000)
    os.utime(other, ns=(model.stat().st_atime_ns, model.stat().st_mtime_ns))
    other.replace(model)
    assert files.Hasher(recorded).describe(str(model))["sha256"] == sha(b"C" * 3_000_000)


def test_one_run_hashes_a_content_once_however_it_is_reached(model: Path) -> None:
    hasher = files.Hasher()
    assert hasher.known(model.stat()) is None
    hasher.describe(str(model))
    link = model.with_name("hard")
    os.link(model, link)
    assert hasher.known(link.stat()) is None, "another link count is another ctime, so it is not believed"
    hasher.describe(str(link))
    assert hasher.known(model.stat())[0] == sha(b"A" * 3_000_000)


@pytest.mark.parametrize(
    "recorded",
    [
        None,
        [],
        "x",
        {"a": None},
        {"a": {"stat": [1, 2, 3], "sha256": "x"}},
        {"a": {"stat": "12345", "sha256": "x"}},
        {"a": {"stat": [1, 2, 3, 4, "5"], "sha256": "x"}},
        {"a": {"stat": [1, 2, 3, 4, 5], "sha256": 7}},
        {"a": {"stat": [True, 2, 3, 4, 5], "sha256": "x"}},
    ],
)
def test_a_malformed_record_is_not_believed(recorded: Any, model: Path) -> None:
    assert files.Hasher(recorded).describe(str(model))["hashed"] is True


def test_a_link_is_named_and_never_followed(model: Path) -> None:
    link = model.with_name("link")
    link.symlink_to(model)
    seen = files.Hasher().describe(str(link))
    assert (seen["type"], seen["target"]) == ("link", str(model))
    assert "sha256" not in seen
    with pytest.raises(files.UnusualFileError, match="cannot be opened"):
        files.read_small(str(link))


def test_a_fifo_in_a_files_place_does_not_block(tmp_path: Path) -> None:
    fifo = tmp_path / "record.json"
    os.mkfifo(fifo)
    assert files.Hasher().describe(str(fifo))["type"] == "fifo"
    with pytest.raises(files.UnusualFileError, match="is a fifo, not a file"):
        files.read_small(str(fifo))


def test_a_directory_and_a_device_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(files.UnusualFileError, match="is a dir, not a file"):
        files.read_small(str(tmp_path))
    with pytest.raises(files.UnusualFileError, match="is a device, not a file"):
        files.read_small("/dev/zero")


def test_a_huge_file_in_a_small_ones_place_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    huge = tmp_path / "unit.service"
    with huge.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(files.UnusualFileError, match="is larger than"):
        files.read_small(str(huge))


def test_what_is_not_there_is_absent(tmp_path: Path) -> None:
    assert files.Hasher().describe(str(tmp_path / "no")) == {"type": "absent"}
    (tmp_path / "plain").write_text("x")
    assert files.Hasher().describe(str(tmp_path / "plain" / "below")) == {"type": "absent"}


@pytest.mark.parametrize(
    "name", ["a\nb", "\x1b[31mred", "ünï", b"\xff\xfe".decode("utf-8", "surrogateescape"), "-rf", "n" * 255]
)
def test_hostile_names_are_names(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"x")
    assert files.Hasher().describe(str(path))["sha256"] == sha(b"x")


def test_a_name_that_cannot_be_one_is_unreadable() -> None:
    assert files.Hasher().describe("/tmp/a\0b")["type"] == "unreadable"
    assert files.Hasher().describe("/" + "n" * 300)["type"] == "unreadable"


def test_json_that_is_none_is_unusual(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("<html>", "[" * 100_000, "\xff", ""):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(files.UnusualFileError, match="is no JSON"):
            files.read_json(str(path))


def test_the_digest_covers_everything_but_itself() -> None:
    record = {"b": 1, "a": "é"}
    digest = files.canonical_digest(record)
    assert digest == files.canonical_digest({"a": "é", "b": 1, "digest": "whatever"})
    assert digest != files.canonical_digest({"a": "é", "b": 2})
    assert digest == sha(b'{"a":"\\u00e9","b":1}')
