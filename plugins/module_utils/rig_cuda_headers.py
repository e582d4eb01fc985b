"""Mend the CUDA headers for a C library that declares cospi, sinpi, cospif and sinpif itself, as glibc 2.41 does.

It declares the four with ``noexcept (true)``, the headers of toolkits up to 12.9 declare them without, and no source
that includes both compiles. Only the four declarations in crt/math_functions.h clash: those of the same names in
crt/math_functions.hpp are definitions of the header's own for sources that nvcc does not see, and 13.0, whose headers
need no mending, changes nothing about these where nvcc compiles. Seen with the headers of 12.9.86.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from ansible.module_utils.rig_disk import write_whole
from ansible.module_utils.rig_unpack import RefusedError

HEADER = "include/crt/math_functions.h"
FUNCTIONS = {"cospi": "double", "cospif": "float", "sinpi": "double", "sinpif": "float"}
SPECIFICATION = " noexcept (true)"


def _declaration(name: str, kind: str) -> re.Pattern[str]:
    return re.compile(
        rf"^(extern __DEVICE_FUNCTIONS_DECL__ __device_builtin__ {kind} +{name}\({kind} x\))([^;\n]*);", re.MULTILINE
    )


def mended(text: str) -> str:
    """The header's text with the four declarations as the C library has them; the same text when they are already.

    Raises :class:`RefusedError` when one of them is not there exactly once, or says something else: then it is
    another header than the one this was made for.
    """
    for name, kind in FUNCTIONS.items():
        pattern = _declaration(name, kind)
        found = pattern.findall(text)
        if len(found) != 1:
            raise RefusedError(f"{HEADER} declares {name} {len(found)} times in the known form, expected is once")
        _, behind = found[0]
        if behind == SPECIFICATION:
            continue
        if behind.strip():
            raise RefusedError(f"{HEADER} declares {name} with `{behind.strip()[:80]}`, expected is nothing there")
        text = pattern.sub(rf"\g<1>{SPECIFICATION};", text)
    return text


def mend(prefix: Path) -> dict[str, str]:
    """Mend the header below ``prefix``; returns its ``path`` there, and its sha256 ``before`` and ``after``."""
    path = prefix / HEADER
    before = path.read_bytes()
    after = mended(before.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if after != before:
        write_whole(path, after)
    return {"path": HEADER, "before": hashlib.sha256(before).hexdigest(), "after": hashlib.sha256(after).hexdigest()}
