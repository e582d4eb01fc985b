"""Asking a host for the hash of a model that lies there already."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llamarig.converge.connection import connection_variables, lend_password
from llamarig.converge.observe import observe_variables
from llamarig.converge.private import private_directory
from llamarig.errors import ExitCode, RigError
from llamarig.spec.load import LoadedHost

_NOTHING: dict[str, list[str]] = {
    key: [] for key in ("files", "directories", "packages", "users", "models", "credentials", "units", "ports")
}


def asker(
    root: Path, hosts: list[LoadedHost], become_password_file: str | None = None
) -> Callable[[str, str], tuple[str, int]]:
    """A function that returns sha256 and size of a path on one of ``hosts``; it raises :class:`RigError`.

    ``become_password_file`` is that of hosts whose spec names none.
    """
    specs = {loaded.host: loaded.spec for loaded in hosts}

    def ask(host: str, path: str) -> tuple[str, int]:
        spec = specs[host]
        if spec is None:
            raise RigError("the spec has errors", host, fix="run `llamarig check`")
        probe = {**_NOTHING, "models": [{"path": path, "links": []}], "deep": True}
        with private_directory() as private:
            variables = {**connection_variables(spec, root, private), "llamarig_probe": probe}
            lend_password(variables, become_password_file)
            answer = observe_variables({host: variables}, private)[host]
        if isinstance(answer, RigError):
            raise answer
        seen = answer.get("models", {}).get(path, {})
        sha256, size = seen.get("sha256"), seen.get("size")
        if seen.get("type") != "file" or not isinstance(sha256, str) or not isinstance(size, int):
            raise RigError("there is no such file on the host", f"{host}: {path}", code=ExitCode.HOST_FAILED)
        return sha256, size

    return ask
