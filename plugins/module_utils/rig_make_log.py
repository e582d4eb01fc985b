"""Why dkms could not build a module: the compiler's own words out of its log."""

from __future__ import annotations

import re
from pathlib import Path

from ansible.module_utils.rig_files import UnusualFileError, read_small

_ERROR = re.compile(r"\berror:|\bError \d+|\*\*\*|fatal error|undefined reference|No rule to make", re.IGNORECASE)
_LARGEST = 64 << 20
MOST_LINES = 12


def error_lines(text: str, most: int = MOST_LINES) -> list[str]:
    """The lines that name an error, the compiler's before those of make, each once."""
    found = list(dict.fromkeys(line.strip() for line in text.splitlines() if _ERROR.search(line)))
    compiler = [line for line in found if "error:" in line.lower()]
    rest = [line for line in found if line not in compiler]
    return (compiler + rest)[:most]


def logs(module: str, kernel: str, root: str = "/var/lib/dkms") -> list[Path]:
    """Where dkms 3 leaves the log of a build of ``name/version``: a failed one in ``build``, others by kernel."""
    base = Path(root, module)
    return [base / "build" / "make.log", *sorted(base.glob(f"{kernel}/*/log/make.log"))]


def why_not_built(module: str, kernel: str, root: str = "/var/lib/dkms") -> list[str]:
    """The error lines of the last build of a module for a kernel; none when it left no log."""
    for path in logs(module, kernel, root):
        try:
            text = read_small(str(path), _LARGEST).decode("utf-8", "replace")
        except UnusualFileError:
            continue
        # The log in `build` is that of the last kernel for which the module was tried; its head says which.
        if f"for kernel {kernel} " in text[:4096] or "for kernel " not in text[:4096]:
            return error_lines(text)
    return []
