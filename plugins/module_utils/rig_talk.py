"""Ask a server over HTTP within bounds, whatever it answers; standard library only, used by ``rig_probe``.

Every answer is bounded in time and size, and only what a proof needs of it is kept.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import signal
import socket
import ssl
import stat
from collections.abc import Callable, Iterator
from typing import Any

TEXT = 4096
"""Characters that any one string may have."""
BODY = 1 << 20
"""Bytes that are read of any one answer."""
KEY_FILE = 1 << 16
LONGEST_KEY = 1024
METRICS = 400
LISTS = 512
HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, never bound
"""Where a server that listens everywhere is asked."""

Connect = Callable[[float], http.client.HTTPConnection]


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """End the block with TimeoutError after ``seconds``: a socket's own timeout starts anew with every byte."""

    def late(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"no whole answer within {seconds:g} s")

    former = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def clip(value: Any, depth: int = 6) -> Any:
    """``value`` with its strings, lists and nesting bounded."""
    if isinstance(value, str):
        return value[:TEXT]
    if depth == 0:
        return None
    if isinstance(value, dict):
        return {str(key)[:TEXT]: clip(item, depth - 1) for key, item in list(value.items())[:LISTS]}
    if isinstance(value, list):
        return [clip(item, depth - 1) for item in value[:LISTS]]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)[:TEXT]


def connector(service: dict[str, Any]) -> Connect:
    """A function that makes a fresh connection to the service, given its timeout in seconds."""
    address, port = service["address"], service["port"]
    if not port:
        return lambda timeout: _UnixConnection(address, timeout)
    host = HERE.get(address, address)
    if not service["tls"]:
        return lambda timeout: http.client.HTTPConnection(host, port, timeout=timeout)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The owner of the socket, on this very machine, proves who answers; the certificate's name is the clients' affair.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return lambda timeout: http.client.HTTPSConnection(host, port, timeout=timeout, context=context)


def ask(connect: Connect, path: str, seconds: float, key: str = "", body: Any = None) -> dict[str, Any]:
    """One request: its status and JSON or text, or the error in its own words."""
    headers = {"Accept": "application/json", "Connection": "close"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    data = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        data = json.dumps(body).encode()
    connection = connect(seconds)
    try:
        with deadline(seconds):
            connection.request("POST" if data is not None else "GET", path, body=data, headers=headers)
            response = connection.getresponse()
            text = response.read(BODY + 1)
            status = response.status
    except (OSError, http.client.HTTPException) as error:
        return {"error": (str(error) or type(error).__name__)[:TEXT]}
    finally:
        connection.close()
    if len(text) > BODY:
        return {"status": status, "error": f"the answer is longer than {BODY} bytes"}
    if key:
        # A server may say the key back; it goes no further than here.
        text = text.replace(key.encode(), b"***")
    try:
        return {"status": status, "json": json.loads(text)}
    except (ValueError, RecursionError):
        return {"status": status, "text": text.decode("utf-8", "replace")[:TEXT]}


def first_key(path: str) -> tuple[str, str]:
    """The first key of a key file, or why there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return "", f"{path} is not a regular file"
            text = stream.read(KEY_FILE).decode("utf-8", "replace")
    except OSError as error:
        return "", f"{path}: {error.strerror}"
    keys = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not keys:
        return "", f"{path} holds no key"
    if len(keys[0]) > LONGEST_KEY or not keys[0].isascii() or not keys[0].isprintable():
        return "", f"{path}: its first key is not printable ASCII of at most {LONGEST_KEY} characters"
    return keys[0], ""


def _object(answer: dict[str, Any]) -> dict[str, Any]:
    return answer["json"] if isinstance(answer.get("json"), dict) else {}


def kept_props(answer: dict[str, Any]) -> dict[str, Any]:
    """What a proof needs of /props; a chat template may be longer than everything else together."""
    data = _object(answer)
    settings = data.get("default_generation_settings")
    keep = ("build_info", "total_slots", "model_path", "model_alias", "modalities")
    kept = {key: data[key] for key in keep if key in data}
    if isinstance(settings, dict):
        kept["n_ctx"] = settings.get("n_ctx")
    return {**answer, "json": kept} if "json" in answer else answer


def kept_slots(answer: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(answer.get("json"), list):
        return answer
    keep = ("id", "n_ctx", "speculative", "is_processing")
    slots = [{key: slot.get(key) for key in keep} for slot in answer["json"] if isinstance(slot, dict)]
    return {**answer, "json": slots}


def kept_models(answer: dict[str, Any]) -> dict[str, Any]:
    data = _object(answer).get("data")
    if not isinstance(data, list):
        return answer
    return {**answer, "json": {"ids": [model.get("id") for model in data if isinstance(model, dict)]}}


def kept_metrics(answer: dict[str, Any], text: str) -> dict[str, Any]:
    values: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#") and len(values) < METRICS:
            with contextlib.suppress(ValueError):
                values[name.strip()] = float(value)
    return {**{key: item for key, item in answer.items() if key != "text"}, "json": values}


def kept_completion(answer: dict[str, Any]) -> dict[str, Any]:
    data = _object(answer)
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return answer
    message = choices[0].get("message")
    message = message if isinstance(message, dict) else {}
    kept = {
        "text": message.get("content"),
        "reasoning": message.get("reasoning_content"),
        "finish": choices[0].get("finish_reason"),
        "usage": data.get("usage"),
        "timings": data.get("timings"),
    }
    return {**answer, "json": kept}


def completion_body(tokens: int) -> dict[str, Any]:
    """The request that every proof makes: short, greedy and from a clean cache."""
    return {
        "messages": [{"role": "user", "content": "Say hello and count from one to ten."}],
        "max_tokens": tokens,
        "temperature": 0,
        "cache_prompt": False,
        "stream": False,
    }
