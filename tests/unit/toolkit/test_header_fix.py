"""The four declarations that clash with glibc 2.41: mended, once, and nothing else."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.support.observe.load import part
from tests.support.toolkit.parts import header

headers = part("rig_cuda_headers")
Refused = part("rig_unpack").RefusedError


def test_exactly_the_four_declarations_change() -> None:
    before, after = header(), headers.mended(header())
    changed = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line.startswith("+ ")]
    assert len(changed) == 4
    assert all(line.endswith("x) noexcept (true);") for line in changed)
    assert {line.split("(")[0].split()[-1] for line in changed} == set(headers.FUNCTIONS)


def test_a_mended_header_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / headers.HEADER
    path.parent.mkdir(parents=True)
    path.write_text(header())
    first = headers.mend(tmp_path)
    stamp = path.stat().st_mtime_ns
    second = headers.mend(tmp_path)
    assert first["before"] != first["after"] == second["before"] == second["after"]
    assert path.stat().st_mtime_ns == stamp


def test_a_header_mended_by_half_is_mended_whole() -> None:
    half = header().replace("sinpi(double x);", "sinpi(double x) noexcept (true);")
    assert headers.mended(half) == headers.mended(header())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "declares cospi 0 times"),
        (header() + header(), "declares cospi 2 times"),
        (header(" __NV_IEC_60559_FUNCS_EXCEPTION_SPECIFIER"), "declares cospi with `__NV_IEC_60559"),
        (header().replace("float                  cospif", "double cospif"), "declares cospif 0 times"),
    ],
)
def test_another_header_is_refused(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        headers.mended(text)
