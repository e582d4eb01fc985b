"""``llamarig init``: look at a machine, read-only, and write a first spec for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from llamarig.errors import RigError
    from llamarig.spec.host import Connection

_OPTIONS = {
    "connection.user": "--user",
    "connection.identity-file": "--identity",
    "connection.host-key": "--host-key",
    "connection.port": "--port",
    "connection.address": "the address",
}
"""The keys of a spec that explanations name, as options."""


def init(
    address: Annotated[
        str | None, typer.Argument(help="Name or address of the machine; user@address works too.")
    ] = None,
    local: Annotated[bool, typer.Option("--local", help="Look at this machine.")] = False,
    user: Annotated[str | None, typer.Option("--user", help="Who logs in; root when not given.")] = None,
    port: Annotated[int, typer.Option("--port", help="Port of its SSH server.", min=1, max=65535)] = 22,
    identity: Annotated[str | None, typer.Option("--identity", help="Private key on this machine.")] = None,
    host_key: Annotated[
        str | None, typer.Option("--host-key", help="Its public key, if your known_hosts lacks it.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--out", help="Where the spec goes; - prints it.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print what was seen as JSON, too.")] = False,
) -> None:
    """Never overwrites a file, and never trusts a host key that your known_hosts does not hold."""
    from llamarig.cli.context import emit_json, err, out, project_root, refuse_overlay
    from llamarig.converge.discover.look import look
    from llamarig.converge.discover.spec_text import compose
    from llamarig.errors import RigError

    refuse_overlay("init")
    if local == (address is not None):
        raise RigError("name one machine, or give --local", fix="for example: llamarig init box.lan")
    root = project_root()
    connection = _connection(address, {"user": user, "port": port, "identity-file": identity, "host-key": host_key})
    try:
        looked = look(root, connection)
    except RigError as error:
        raise _in_options(error) from None
    name, text = compose(looked, connection)
    if file == Path("-"):
        if json_:
            emit_json({"host": name, "file": None, "spec": text, "looked": looked})
        else:
            out().print(text, markup=False, end="", soft_wrap=True)
        return
    path = file or _place(root, name)
    _write_new(path, text)
    if json_:
        emit_json({"host": name, "file": str(path), "spec": text, "looked": looked})
    else:
        out().print(f"wrote {path}", markup=False, soft_wrap=True)
        err().print(f"next: llamarig check, llamarig lock {name}, llamarig plan {name}", markup=False, soft_wrap=True)


def _connection(address: str | None, options: dict[str, str | int | None]) -> Connection:
    from pydantic import ValidationError

    from llamarig.errors import RigError
    from llamarig.spec.host import Connection

    if address is None:
        return Connection.model_validate({"type": "local"})
    before, _, after = address.rpartition("@")
    keys = {**options, "address": after, "user": options["user"] or before or "root"}
    try:
        return Connection.model_validate({key: value for key, value in keys.items() if value is not None})
    except ValidationError as error:
        words = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors())
        raise RigError("this is no machine that can be reached", address, words) from None


def _in_options(error: RigError) -> RigError:
    """The same error, its fix in the options of this command: there is no spec yet whose keys could be changed."""
    from dataclasses import replace

    fix = error.fix
    for key, option in _OPTIONS.items():
        fix = fix.replace(key, option)
    return replace(error, fix=fix)


def _place(root: Path, name: str) -> Path:
    """Beside the project's other specs; a new project gets its ``inventory``."""
    inventory = root / "inventory"
    folder = root if not inventory.is_dir() and any(root.glob("*.yml")) else inventory
    return folder / f"{name}.yml"


def _write_new(path: Path, text: str) -> None:
    from llamarig.errors import RigError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise RigError("there is a spec already", str(path), fix="name another file with --out, or --out -") from None
    except OSError as error:
        raise RigError("the spec cannot be written", str(path), error.strerror or str(error)) from error
