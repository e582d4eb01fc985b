#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Ask the running servers of a host what they are, and let each answer one short request.

Standard library only: this runs on the host, as root, and reads what others wrote. Every answer is bounded in
time and size, a key goes only to a socket that the unit's own process listens on, and no key is ever returned.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule  # type: ignore[import-untyped]

DOCUMENTATION = r"""
---
module: rig_probe
short_description: Ask running llama-server services what they are
description:
  - Runs on the host itself and asks each service for its health, properties, slots, models and metrics, whether it
    refuses a request without a key, and for one short completion.
  - Reads the lines of the last start that tell where the engine put its memory, and the driver's account of it.
  - A key is read on the host, sent only to a socket that the unit's own process listens on, and never returned.
  - Changes nothing. What it returns is what others said, clipped in size, and is to be treated as hostile text.
options:
  services:
    description: The services to ask.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The service's name.
        type: str
        required: true
      unit:
        description: Its systemd unit.
        type: str
        required: true
      address:
        description: Address it listens on, or the path of its unix socket.
        type: str
        required: true
      port:
        description: TCP port; 0 for a unix socket.
        type: int
        default: 0
      tls:
        description: Whether it speaks TLS.
        type: bool
        default: false
      key_file:
        description: File on the host that holds its API keys, one a line; empty when it asks for none.
        type: str
        default: ""
      gpu:
        description: Whether the driver is to be asked for the memory of its process.
        type: bool
        default: false
      release:
        description: Directory of the release that it should run from.
        type: str
        default: ""
  timeout:
    description: Seconds that one plain request may take.
    type: int
    default: 10
  completion_timeout:
    description: Seconds that the completion may take.
    type: int
    default: 120
  tokens:
    description: Tokens that the completion may have.
    type: int
    default: 32
author:
  - llamarig (@llamarig)
"""

EXAMPLES = r"""
- name: Ask the chat service
  rig_probe:
    services:
      - {name: chat, unit: llama-chat.service, address: 127.0.0.1, port: 8080, key_file: /etc/llamarig/keys/chat.keys}
  register: probed
"""

RETURN = r"""
probed:
  description: What each service said, by name.
  returned: always
  type: dict
"""

SCHEMA = 1
TEXT = 4096
"""Characters that any one string may have."""
BODY = 1 << 20
"""Bytes that are read of any one answer."""
KEY_FILE = 1 << 16
JOURNAL_BYTES = 8 << 20
JOURNAL_LINES = 200
JOURNAL_SECONDS = 15
SMI_SECONDS = 20
METRICS = 400
LISTS = 512
PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin"
TCP_LISTEN = "0A"

TELLING = re.compile(
    r"buffer size|offload|ggml_cuda_init|^\s*Device \d+:|using device|CLIP using|no usable GPU|CUDA error|"
    r"compiled without|failed to initialize|no CUDA|falling back|unable to allocate|out of memory|warning: .*GPU",
    re.IGNORECASE,
)
"""Lines of a start that say which device holds what."""

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
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)[:TEXT]


def run(argv: list[str], seconds: float) -> str:
    """Standard output of a program, or OSError in its own words."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program and arguments, never a shell
            argv,
            capture_output=True,
            timeout=seconds,
            check=False,
            env={"PATH": PATH, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{argv[0]} gave no answer within {seconds:g} s") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise OSError(f"{argv[0]} ended with {done.returncode}: {words[:TEXT]}")
    return done.stdout[:BODY].decode("utf-8", "replace")


def unit_state(unit: str) -> dict[str, str]:
    """MainPID and InvocationID of a unit."""
    text = run(["systemctl", "show", "-p", "MainPID,InvocationID", "--", unit], 10)
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


# --- who listens -------------------------------------------------------------


def _socket_inodes(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = str(entry.readlink())
            if target.startswith("socket:["):
                found.add(target[8:-1])
    return found


def _address(text: str) -> str:
    """An address from /proc/net/tcp or tcp6, whose 32-bit words stand in the machine's own order."""
    raw = bytes.fromhex(text)
    words = [raw[at : at + 4] for at in range(0, len(raw), 4)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, b"".join(words))


def listeners(address: str, port: int) -> set[str]:
    """Inodes of the TCP sockets that could take a connection to ``address`` and ``port``."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                host, _, number = fields[1].rpartition(":")
                if fields[3] == TCP_LISTEN and int(number, 16) == port and _address(host) in {address, "0.0.0.0", "::"}:  # noqa: S104
                    found.add(fields[9])
    return found


def owner(service: dict[str, Any], pid: int) -> dict[str, Any]:
    """Whether only the unit's main process can answer at the service's address."""
    if not pid:
        return {"pid": 0, "ours": False, "why": "the unit has no main process"}
    try:
        if not service["port"]:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                sock.settimeout(5)
                sock.connect(service["address"])
                peer = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            return {"pid": peer, "ours": peer == pid, "why": "" if peer == pid else f"process {peer} listens there"}
        open_ = listeners(service["address"], service["port"])
        ours = bool(open_) and open_ <= _socket_inodes(pid)
    except OSError as error:
        return {"pid": 0, "ours": False, "why": str(error)[:TEXT]}
    return {
        "pid": pid if ours else 0,
        "ours": ours,
        "why": "" if ours else "nothing listens there" if not open_ else "a socket there is not the unit's own",
    }


# --- asking ------------------------------------------------------------------


def connector(service: dict[str, Any]) -> Connect:
    """A function that makes a fresh connection to the service, given its timeout in seconds."""
    address, port = service["address"], service["port"]
    if not port:
        return lambda timeout: _UnixConnection(address, timeout)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)  # noqa: S104 - compared, not bound
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
    if not keys[0].isascii() or not keys[0].isprintable():
        return "", f"{path}: its first key is not printable ASCII"
    return keys[0], ""


def _object(answer: dict[str, Any]) -> dict[str, Any]:
    return answer["json"] if isinstance(answer.get("json"), dict) else {}


def _props(answer: dict[str, Any]) -> dict[str, Any]:
    """What a proof needs of /props; a chat template may be longer than everything else together."""
    data = _object(answer)
    settings = data.get("default_generation_settings")
    keep = ("build_info", "total_slots", "model_path", "model_alias", "modalities")
    kept = {key: data[key] for key in keep if key in data}
    if isinstance(settings, dict):
        kept["n_ctx"] = settings.get("n_ctx")
    return {**answer, "json": kept} if "json" in answer else answer


def _slots(answer: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(answer.get("json"), list):
        return answer
    keep = ("id", "n_ctx", "speculative", "is_processing")
    slots = [{key: slot.get(key) for key in keep} for slot in answer["json"] if isinstance(slot, dict)]
    return {**answer, "json": slots}


def _models(answer: dict[str, Any]) -> dict[str, Any]:
    data = _object(answer).get("data")
    if not isinstance(data, list):
        return answer
    return {**answer, "json": {"ids": [model.get("id") for model in data if isinstance(model, dict)]}}


def _metrics(answer: dict[str, Any], text: str) -> dict[str, Any]:
    values: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#") and len(values) < METRICS:
            with contextlib.suppress(ValueError):
                values[name.strip()] = float(value)
    return {**{key: item for key, item in answer.items() if key != "text"}, "json": values}


def _completion(answer: dict[str, Any]) -> dict[str, Any]:
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


# --- what the host itself says -----------------------------------------------


def journal(invocation: str) -> dict[str, Any]:
    """Lines of one start of a unit that say which device holds what."""
    if not re.fullmatch(r"[0-9a-f]{32}", invocation):
        return {"lines": [], "error": "the unit was never started"}
    lines: list[str] = []
    argv = ["journalctl", "--no-pager", "-q", "-o", "cat", f"_SYSTEMD_INVOCATION_ID={invocation}"]
    read = 0
    try:
        with (
            deadline(JOURNAL_SECONDS),
            subprocess.Popen(  # noqa: S603 - a fixed program, and an id of 32 hex digits
                argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"PATH": PATH, "LC_ALL": "C"}
            ) as reader,
        ):
            try:
                assert reader.stdout is not None  # noqa: S101 - for the type checker: stdout is a pipe
                while read < JOURNAL_BYTES and len(lines) < JOURNAL_LINES:
                    line = reader.stdout.readline(TEXT * 4)
                    if not line:
                        break
                    read += len(line)
                    text = line.decode("utf-8", "replace").rstrip()[:TEXT]
                    if TELLING.search(text):
                        lines.append(text)
            finally:
                reader.kill()
    except OSError as error:
        return {"lines": lines, "error": str(error)[:TEXT]}
    return {"lines": lines, "error": ""}


def vram() -> dict[str, Any]:
    """What the driver says each process holds on each card, in MiB."""
    tool = shutil.which("nvidia-smi", path=PATH)
    if tool is None:
        return {"processes": [], "error": "nvidia-smi is not there"}
    try:
        text = run(
            [tool, "--query-compute-apps=pid,gpu_uuid,used_memory", "--format=csv,noheader,nounits"], SMI_SECONDS
        )
    except OSError as error:
        return {"processes": [], "error": str(error)[:TEXT]}
    found = []
    for line in text.splitlines()[:LISTS]:
        with contextlib.suppress(ValueError):
            pid, uuid, used = (field.strip() for field in line.split(","))
            # Some drivers and virtual machines print [N/A] here: not known is not zero.
            mib = float(used) if used.replace(".", "", 1).isdigit() else None
            found.append({"pid": int(pid), "uuid": uuid, "mib": mib})
    return {"processes": found, "error": ""}


def mapped(pid: int, release: str) -> dict[str, Any]:
    """Code that a process maps from outside its release and the system's directories, and its model files."""
    allowed = ("/usr/", "/lib/", "/lib64/", "/opt/llamarig/", *([release.rstrip("/") + "/"] if release else []))
    outside: set[str] = set()
    models: dict[str, dict[str, Any]] = {}
    try:
        with Path(f"/proc/{pid}/maps").open(errors="replace") as stream:
            for line in stream:
                _range, mode, _offset, _device, inode, *rest = line.rstrip("\n").split(None, 5)
                path = rest[0] if rest else ""
                if not path.startswith("/"):
                    continue
                if "x" in mode and not path.startswith(allowed):
                    outside.add(path)
                if path.removesuffix(" (deleted)").endswith(".gguf") or "/sha256/" in path:
                    models[path] = {"path": path, "inode": int(inode), "deleted": path.endswith(" (deleted)")}
    except (OSError, ValueError) as error:
        return {"outside": [], "models": [], "error": str(error)[:TEXT]}
    return {"outside": sorted(outside)[:LISTS], "models": list(models.values())[:LISTS], "error": ""}


# --- putting it together -----------------------------------------------------


def _scrubbed(value: Any, key: str) -> Any:
    """``value`` without the key, should the server have said it back."""
    if isinstance(value, str):
        return value.replace(key, "***")
    if isinstance(value, dict):
        return {_scrubbed(name, key): _scrubbed(item, key) for name, item in value.items()}
    if isinstance(value, list):
        return [_scrubbed(item, key) for item in value]
    return value


def _talk(service: dict[str, Any], limits: dict[str, int], ours: bool) -> tuple[dict[str, Any], str]:
    """Every question to one service, and the key that was used."""
    connect, seconds = connector(service), limits["timeout"]
    said: dict[str, Any] = {"health": ask(connect, "/health", seconds), "open": ask(connect, "/props", seconds)}
    said["open"].pop("json", None)
    key, withheld = ("", "")
    if service["key_file"]:
        said["wrong-key"] = ask(connect, "/props", seconds, "not-a-key-of-this-service")
        said["wrong-key"].pop("json", None)
        key, withheld = first_key(service["key_file"])
        if not ours:
            key, withheld = "", "the key is not sent to a socket that the unit does not own"
    said["withheld"] = withheld
    if withheld:
        return said, key
    said["props"] = _props(ask(connect, "/props", seconds, key))
    said["slots"] = _slots(ask(connect, "/slots", seconds, key))
    said["models"] = _models(ask(connect, "/v1/models", seconds, key))
    metrics = ask(connect, "/metrics", seconds, key)
    said["metrics"] = _metrics(metrics, metrics.get("text", ""))
    if said["health"].get("status") == http.HTTPStatus.OK:
        body = completion_body(limits["tokens"])
        answer = ask(connect, "/v1/chat/completions", limits["completion_timeout"], key, body)
        said["completion"] = _completion(answer)
    return said, key


def probe_one(service: dict[str, Any], limits: dict[str, int]) -> dict[str, Any]:
    """Everything about one service."""
    try:
        state = unit_state(service["unit"])
    except OSError as error:
        state = {"error": str(error)}
    pid = int(state.get("MainPID", "0") or 0)
    owned = owner(service, pid)
    said, key = _talk(service, limits, bool(owned["ours"]))
    said["owner"] = owned
    said["journal"] = journal(state.get("InvocationID", ""))
    said["mapped"] = mapped(pid, service["release"]) if pid else {"outside": [], "models": [], "error": "no process"}
    clipped: dict[str, Any] = clip(said)
    if not key:
        return clipped
    scrubbed: dict[str, Any] = _scrubbed(clipped, key)
    return scrubbed


def probe(services: list[dict[str, Any]], limits: dict[str, int]) -> dict[str, Any]:
    """All services, one after the other: a completion on one must not slow that of another."""
    answers = {service["name"]: probe_one(service, limits) for service in services}
    on_gpu = any(service["gpu"] for service in services)
    # Asked last: the memory of a process is complete only after its first request.
    return {"schema": SCHEMA, "services": answers, "vram": vram() if on_gpu else {"processes": [], "error": ""}}


def main() -> None:
    service = {
        "name": {"type": "str", "required": True},
        "unit": {"type": "str", "required": True},
        "address": {"type": "str", "required": True},
        "port": {"type": "int", "default": 0},
        "tls": {"type": "bool", "default": False},
        "key_file": {"type": "str", "default": "", "no_log": False},
        "gpu": {"type": "bool", "default": False},
        "release": {"type": "str", "default": ""},
    }
    module = AnsibleModule(
        argument_spec={
            "services": {"type": "list", "elements": "dict", "required": True, "options": service},
            "timeout": {"type": "int", "default": 10},
            "completion_timeout": {"type": "int", "default": 120},
            "tokens": {"type": "int", "default": 32},
        },
        supports_check_mode=True,
    )
    limits = {name: module.params[name] for name in ("timeout", "completion_timeout", "tokens")}
    module.exit_json(changed=False, probed=probe(module.params["services"], limits))


if __name__ == "__main__":
    main()
