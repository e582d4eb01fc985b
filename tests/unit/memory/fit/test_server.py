"""The memory model against what a real server printed, without the server.

The figures were recorded by ``benchmarks/memory_vs_lines.py --record``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import models
from tests.support.models import server

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "server"
TREE = "v0.1"
RECORDED = server.load(FIXTURES / f"{TREE}.json")


def test_servers_with_drafts_and_unified_caches_are_among_them() -> None:
    drawn = [case.drawn for cases in RECORDED.values() for case in cases]
    assert any(item.n_max for item in drawn)
    assert any(item.unified and item.fit.parallel > 1 for item in drawn)
    assert len(RECORDED) >= 20


@pytest.mark.parametrize("name", RECORDED)
def test_the_plan_has_what_the_server_printed(name: str) -> None:
    header = models.header(name)
    different = [
        f"{case.drawn}: planned {planned}, printed {case.printed}"
        for case in RECORDED[name]
        if not server.compare(planned := server.planned(header, case.drawn, TREE), case.printed).within
    ]
    assert not different


PRINTED = server.Buffers(10.0, 5.0, 100.0, 4.0)


@pytest.mark.parametrize(
    ("planned", "verdict"),
    [
        (PRINTED, (True, True, True)),
        (PRINTED._replace(outputs=8.0), (True, True, True)),
        (PRINTED._replace(compute=102.9), (True, True, False)),
        (PRINTED._replace(compute=103.1), (True, False, False)),
        (PRINTED._replace(compute=99.9), (True, False, False)),
        (PRINTED._replace(outputs=3.9), (True, False, False)),
        (PRINTED._replace(caches=10.1), (False, False, False)),
        (PRINTED._replace(state=4.9), (False, False, False)),
    ],
)
def test_a_figure_that_is_off_is_seen(planned: server.Buffers, verdict: tuple[bool, bool, bool]) -> None:
    assert tuple(server.compare(planned, PRINTED)) == verdict


def test_lines_of_all_contexts_are_summed_up() -> None:
    output = (
        "llama_context:        CPU  output buffer size =     4.00 MiB\n"
        "llama_kv_cache:        CPU KV buffer size =    17.00 MiB\n"
        "llama_kv_cache:        CPU KV buffer size =    26.30 MiB\n"
        "llama_memory_recurrent:        CPU RS buffer size =    49.27 MiB\n"
        "sched_reserve:        CPU compute buffer size =    31.29 MiB\n"
    )
    assert server.parse(output) == pytest.approx((43.3, 49.27, 31.29, 4.0))
    with pytest.raises(ValueError, match="printed no compute buffer"):
        server.parse("error: failed to load\n")


def test_cases_are_written_as_they_are_read(tmp_path: Path) -> None:
    cases = {name: list(entries) for name, entries in list(RECORDED.items())[:2]}
    server.save(tmp_path / "there" / "tree.json", "composed here", cases)
    assert server.load(tmp_path / "there" / "tree.json") == cases
