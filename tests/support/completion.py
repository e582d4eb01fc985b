"""A request that a server of the lab answers for as long as a test wants."""

from __future__ import annotations

import threading

import httpx
from lab import Host, faults
from lab.project import api_key

ENDLESS = 1900
"""Tokens; what one slot's window holds."""


class Completion:
    """A completion that goes on until its client hangs up, however fast the server is."""

    def __init__(self, host: Host, url: str) -> None:
        self._url, self._headers = url, {"Authorization": f"Bearer {api_key(host)}"}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        faults.wait_for("the server to work", self._is_answered, 60)

    def _read(self) -> None:
        asked = {"prompt": "Once upon a time", "n_predict": ENDLESS, "ignore_eos": True, "stream": True}
        with httpx.stream("POST", f"{self._url}/completion", headers=self._headers, json=asked, timeout=300) as answer:
            for _ in answer.iter_lines():
                if self._end.is_set():
                    return

    def _is_answered(self) -> bool:
        slots = httpx.get(f"{self._url}/slots", headers=self._headers, timeout=60).json()
        return any(slot["is_processing"] for slot in slots)

    def stop(self) -> None:
        """Hang up, and wait until the server has noticed."""
        self._end.set()
        self._thread.join()
        faults.wait_for("the server to be done", lambda: not self._is_answered(), 60)
