"""The download that a host does itself: whole, resumed, restarted when the content changed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible.module_utils import rig_download

from tests.support.artifacts.serving import Served, serving

CONTENT = random.Random(7).randbytes(3 << 20)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(rig_download.time, "sleep", lambda _: None)
    with serving(Served(files={"/m.gguf": CONTENT})) as server:
        yield server


def _run(served: Served, target: Path, size: int = len(CONTENT), path: str = "/m.gguf") -> int:
    return rig_download.main(["fetch.py", served.base + path, str(target), str(size)])


def test_a_file_is_fetched_with_progress(served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(served, tmp_path / "part") == 0
    assert (tmp_path / "part").read_bytes() == CONTENT
    assert capsys.readouterr().out.rstrip().endswith(f"[{len(CONTENT)}/{len(CONTENT)}]")


def test_a_cut_download_goes_on_where_it_stopped(served: Served, tmp_path: Path) -> None:
    served.cut_after = [1 << 20, 1 << 20]
    assert _run(served, tmp_path / "part") == 0
    assert (tmp_path / "part").read_bytes() == CONTENT
    assert [header for _, header in served.requests] == ["", f"bytes={1 << 20}-", f"bytes={2 << 20}-"]


def test_a_later_run_goes_on_too(served: Served, tmp_path: Path) -> None:
    served.cut_after = [1 << 20] + [0] * 20
    assert _run(served, tmp_path / "part") == 1
    assert (tmp_path / "part").stat().st_size == 1 << 20
    served.cut_after = []
    assert _run(served, tmp_path / "part") == 0
    assert (tmp_path / "part").read_bytes() == CONTENT
    assert served.requests[-1][1] == f"bytes={1 << 20}-"


def test_changed_content_starts_anew(served: Served, tmp_path: Path) -> None:
    served.cut_after = [1 << 20] + [0] * 20
    _run(served, tmp_path / "part")
    served.cut_after, served.etag = [], '"two"'
    served.files["/m.gguf"] = CONTENT[::-1]
    assert _run(served, tmp_path / "part") == 0
    assert (tmp_path / "part").read_bytes() == CONTENT[::-1]


def test_a_server_without_ranges_or_etag_works(served: Served, tmp_path: Path) -> None:
    served.ranges, served.etag, served.cut_after = False, None, [1 << 20]
    assert _run(served, tmp_path / "part") == 0
    assert (tmp_path / "part").read_bytes() == CONTENT


def test_redirects_are_followed(served: Served, tmp_path: Path) -> None:
    served.redirect["/resolve"] = served.base + "/m.gguf"
    served.cut_after = [1 << 20]
    assert _run(served, tmp_path / "part", path="/resolve") == 0
    assert (tmp_path / "part").read_bytes() == CONTENT
