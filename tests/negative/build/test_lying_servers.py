"""Servers that lie, cut and refuse, towards the host's download and the controller's alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible.module_utils import rig_download

from llamarig.converge.store import download
from llamarig.converge.store.shelf import silent
from llamarig.errors import RigError
from tests.support.artifacts.serving import Served, serving

CONTENT = bytes(range(256)) * 1024
Fetch = Callable[[str, Path, int], str]


def _host(url: str, target: Path, size: int) -> str:
    with pytest.raises(rig_download.GivenUpError) as given_up:
        rig_download.download(url, target, size)
    return str(given_up.value)


def _controller(url: str, target: Path, size: int) -> str:
    with download.client() as http, pytest.raises(RigError) as error:
        download.fetch(http, download.Wish(url, "m", size), target, silent)
    return str(error.value)


@pytest.fixture(params=[_host, _controller], ids=["host", "controller"])
def refusal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fetch:
    monkeypatch.setattr(rig_download.time, "sleep", lambda _: None)
    fetch: Fetch = request.param
    return fetch


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(Served(files={"/m": CONTENT})) as server:
        yield server


def test_another_size_is_refused_at_once(refusal: Fetch, served: Served, tmp_path: Path) -> None:
    said = refusal(served.base + "/m", tmp_path / "part", len(CONTENT) + 1)
    assert str(len(CONTENT)) in said
    assert str(len(CONTENT) + 1) in said
    assert len(served.requests) == 1


def test_more_than_was_pinned_is_never_written(refusal: Fetch, served: Served, tmp_path: Path) -> None:
    served.no_length = True
    refusal(served.base + "/m", tmp_path / "part", 1000)
    assert not (tmp_path / "part").exists() or (tmp_path / "part").stat().st_size <= 1000


def test_a_length_that_is_not_true_ends_in_words(refusal: Fetch, served: Served, tmp_path: Path) -> None:
    served.claim = len(CONTENT) + 5
    served.ranges = False
    said = refusal(served.base + "/m", tmp_path / "part", len(CONTENT) + 5)
    assert "early" in said or "incomplete" in said.lower() or "peer closed" in said


def test_a_download_that_is_always_cut_keeps_what_came(refusal: Fetch, served: Served, tmp_path: Path) -> None:
    served.cut_after = [1000] + [0] * 50
    refusal(served.base + "/m", tmp_path / "part", len(CONTENT))
    assert (tmp_path / "part").read_bytes() == CONTENT[:1000]


def test_a_missing_file_is_not_asked_for_again(refusal: Fetch, served: Served, tmp_path: Path) -> None:
    assert "404" in refusal(served.base + "/none", tmp_path / "part", 1)
    assert len(served.requests) == 1


def test_a_secret_in_the_address_is_not_told(refusal: Fetch, served: Served, tmp_path: Path) -> None:
    url = served.base.replace("http://", "http://user:hush@") + "/none?token=hush"
    assert "hush" not in refusal(url, tmp_path / "part", 1)


def test_only_http_is_fetched_by_a_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rig_download.main(["fetch.py", "file:///etc/passwd", str(tmp_path / "part"), "1"]) == 1
    assert "only http and https" in capsys.readouterr().out


def test_https_is_not_left_for_http() -> None:
    class Asked:
        full_url = "https://models.example/m"

    with pytest.raises(rig_download.GivenUpError, match="without encryption"):
        rig_download._NoDowngrade().redirect_request(Asked(), None, 302, "", {}, "http://models.example/m")
