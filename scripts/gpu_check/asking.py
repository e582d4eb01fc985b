"""One question to a running server, and what was seen of it while it answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from llamarig.render.wanted import WantedService
from scripts.gpu_check import smi

TOKENS = 48
QUESTION = "Say what you know."


@dataclass(slots=True)
class Seen:
    """Everything that one server showed. Sizes are MiB."""

    sandboxed: bool
    error: str = ""
    text: str = ""
    open_status: int = 0
    """Of a request without the key; 401 is right."""
    timings: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    ram_peak_mib: float | None = None
    driver_mib: float | None = None
    card_grew_mib: float | None = None
    pid: int = 0


def ask(service: WantedService, key: str, seen: Seen) -> None:
    """Ask without the key and with it."""
    url = f"http://{service.address}:{service.port}/v1/chat/completions"
    body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": TOKENS, "temperature": 0}
    try:
        seen.open_status = httpx.post(url, json=body, timeout=60).status_code
        reply = httpx.post(url, json=body, headers={"Authorization": f"Bearer {key}"}, timeout=120)
        reply.raise_for_status()
        answer = reply.json()
        seen.text = str(answer["choices"][0]["message"]["content"]).strip()
        timings = answer.get("timings")
        seen.timings = timings if isinstance(timings, dict) else {}
    except (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError) as error:
        seen.error = f"no answer: {error}"


def measure(seen: Seen, card: smi.Card | None, before_mib: float, query: smi.Ask = smi.nvidia_smi) -> None:
    """The memory of the process while it runs, by kernel and driver."""
    seen.ram_peak_mib = peak_mib(seen.pid)
    if card is None:
        return
    seen.card_grew_mib = max(smi.used_mib(card.uuid, query) - before_mib, 0.0)
    held = [app.mib for app in smi.apps(query) if app.pid == seen.pid and app.uuid == card.uuid]
    if held and None not in held:
        seen.driver_mib = sum(each for each in held if each is not None)


def peak_mib(pid: int, proc: Path = Path("/proc")) -> float | None:
    """VmHWM of a process."""
    try:
        status = (proc / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return None
    figures = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(figures[0]) / 1024 if figures else None


Serve = Callable[[WantedService], Seen]
