"""What memory a service's process takes, and what the engine's own fit tool says it would.

Standard library only, used by ``rig_probe``.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_talk import TEXT

FIT_SECONDS = 120
FIT_BYTES = 64 << 10
_FIELDS = ("VmHWM", "VmRSS", "RssAnon", "RssFile", "RssShmem")


def process_kib(pid: int) -> dict[str, Any]:
    """The kernel's figures of one process in KiB; proc(5), ``status``."""
    found: dict[str, Any] = {}
    try:
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            words = value.split()
            if name in _FIELDS and words and words[0].isdigit():
                found[name] = int(words[0])
    except OSError as error:
        return {"error": str(error)[:TEXT]}
    return found


def fit(release: str, arguments: list[str], pid: int) -> dict[str, Any]:
    """What the release's llama-fit-params prints for ``arguments``, as the user that the service runs as.

    No card is shown to it, so it takes no memory from a service that fills one; it reads the model's header only.
    """
    program = f"{release}/bin/llama-fit-params"
    try:
        owner = Path(f"/proc/{pid}").stat()
        done = subprocess.run(  # noqa: S603 - the proven release's own program, never a shell
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=FIT_SECONDS,
            check=False,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": ""},
            user=owner.st_uid,
            group=owner.st_gid,
            extra_groups=[] if os.geteuid() == 0 else None,
        )
    except subprocess.TimeoutExpired:
        return {"lines": [], "error": f"llama-fit-params gave no answer within {FIT_SECONDS} s"}
    except OSError as error:
        return {"lines": [], "error": str(error)[:TEXT]}
    if done.returncode != 0:
        words = done.stderr[-FIT_BYTES:].decode("utf-8", "replace").strip()
        return {"lines": [], "error": f"llama-fit-params ended with {done.returncode}: {words[-TEXT:]}"}
    lines = done.stdout[:FIT_BYTES].decode("utf-8", "replace").splitlines()
    return {"lines": [line[:TEXT] for line in lines[:64]], "error": ""}
