"""Python distributions are found where pip is configured to look (pages composed after PEP 503 and PEP 691)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from llamarig.converge.store import download, index
from llamarig.converge.store.pip_config import PipConfig, parse_config_list, parse_default_index, pip_config
from llamarig.errors import RigError
from tests.support.artifacts.serving import Served, serving

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
PAGE = """<!DOCTYPE html><html><body>
<a href="../../files/Small_Engine-1.0.tar.gz#sha256=aa">Small_Engine-1.0.tar.gz</a>
<a href="/files/small_engine-1.0-py3-none-any.whl">w</a>
<a href="/files/small_engine-1.0-cp311-cp311-linux_x86_64.whl">w</a>
<a href="/files/small_engine-1.1.tar.gz">newer</a>
<a href="/files/other-1.0.tar.gz">other</a>
</body></html>"""


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(Served()) as server:
        yield server


def _find(config: PipConfig, requirement: str, kind: index.Kind) -> index.Distribution:
    with download.client() as http:
        return index.find(http, config, requirement, kind)


def test_an_html_page_is_read(served: Served) -> None:
    served.files["/simple/small-engine/"] = PAGE.encode()
    served.types["/simple/small-engine/"] = "text/html"
    found = _find(PipConfig((served.base + "/simple",)), "Small.Engine==1.0", "sdist")
    assert found == index.Distribution("Small_Engine-1.0.tar.gz", served.base + "/files/Small_Engine-1.0.tar.gz", "aa")


def test_a_wheel_for_every_machine_is_preferred(served: Served) -> None:
    served.files["/simple/small-engine/"] = PAGE.encode()
    found = _find(PipConfig((served.base + "/simple",)), "small-engine==1.0", "wheel")
    assert found.filename == "small_engine-1.0-py3-none-any.whl"


def test_a_json_page_is_read(served: Served) -> None:
    files = [{"filename": "small_engine-1.0.tar.gz", "url": "../../f/x.tar.gz", "hashes": {"sha256": "bb"}}]
    served.files["/simple/small-engine/"] = json.dumps({"files": files}).encode()
    served.types["/simple/small-engine/"] = JSON_TYPE
    found = _find(PipConfig((served.base + "/simple",)), "small-engine==1.0", "sdist")
    assert found == index.Distribution("small_engine-1.0.tar.gz", served.base + "/f/x.tar.gz", "bb")


def test_indexes_are_asked_in_order_and_files_count_too(served: Served, tmp_path: Path) -> None:
    page = tmp_path / "simple/small-engine"
    page.mkdir(parents=True)
    (page / "index.html").write_text('<a href="small_engine-1.0.tar.gz">x</a>')
    config = PipConfig((served.base + "/none", (tmp_path / "simple").as_uri()))
    assert _find(config, "small-engine==1.0", "sdist").url == (page / "small_engine-1.0.tar.gz").as_uri()
    assert served.requests == [("/none/small-engine/", "")]


def test_find_links_come_first(tmp_path: Path) -> None:
    (tmp_path / "small_engine-1.0.tar.gz").touch()
    found = _find(PipConfig((), (str(tmp_path),)), "small-engine==1.0", "sdist")
    assert found.url == (tmp_path / "small_engine-1.0.tar.gz").as_uri()


def test_a_distribution_that_nobody_has_is_refused_with_every_answer(served: Served) -> None:
    served.files["/simple/small-engine/"] = PAGE.encode()
    config = PipConfig((served.base.replace("//", "//user:hush@") + "/simple", served.base + "/none"))
    with pytest.raises(RigError) as refused:
        _find(config, "small-engine==2.0", "sdist")
    assert "no sdist of 2.0" in refused.value.why
    assert "no such project" in refused.value.why
    assert "hush" not in str(refused.value)


def test_a_broken_page_does_not_end_the_search(served: Served, tmp_path: Path) -> None:
    served.files["/simple/small-engine/"] = b"{broken"
    served.types["/simple/small-engine/"] = JSON_TYPE
    page = tmp_path / "small-engine"
    page.mkdir()
    (page / "index.html").write_text('<a href="small_engine-1.0.tar.gz">x</a>')
    config = PipConfig((served.base + "/simple", tmp_path.as_uri()))
    assert _find(config, "small-engine==1.0", "sdist").url.startswith("file:")


def test_pips_own_configuration_is_read() -> None:
    text = "\n".join(
        [
            ":env:.cert='/env.pem'",
            "global.cert='/global.pem'",
            "global.extra-index-url='\\nhttps://a.example/simple\\nhttps://b.example/simple'",
            "install.index-url='https://c.example/simple'",
            "wheel.index-url='https://not.example/simple'",
        ]
    )
    options = parse_config_list(text)
    assert options["cert"] == "/env.pem"
    assert options["extra-index-url"].split() == ["https://a.example/simple", "https://b.example/simple"]
    assert options["index-url"] == "https://c.example/simple"


def test_pips_default_is_taken_from_its_help() -> None:
    help_text = "  -i, --index-url <url>  Base URL of the index (default https://index.example/simple). This\n  --pre"
    assert parse_default_index(help_text) == "https://index.example/simple"
    assert parse_default_index("no such option") is None


def test_this_machines_pip_can_be_asked() -> None:
    config = pip_config()
    assert config.indexes
    assert all("://" in entry for entry in config.indexes)
