# SPDX-License-Identifier: Apache-2.0
"""Work inside a container of the controller's engine, through the docker SDK."""

from __future__ import annotations

import io
import os
import socket
import tarfile
import threading
from pathlib import Path
from typing import Any

import docker
from ansible.errors import AnsibleConnectionFailure, AnsibleFileNotFound
from ansible.plugins.connection import ConnectionBase
from docker.errors import DockerException
from docker.utils.socket import frames_iter

DOCUMENTATION = r"""
name: rig_container
short_description: Run tasks in a container through the docker SDK
description:
  - Runs commands as root in a running container of the engine that C(DOCKER_HOST) names, or the machine's own.
  - Modules go in over standard input, so nothing of them lies in the container.
author: llamarig contributors
options:
  container:
    description: Id of the container.
    type: str
    required: true
    vars:
      - name: ansible_host
"""

BLOCK = 1 << 20
PATIENCE_S = 7200
_STDOUT, _STDERR = 1, 2


class Connection(ConnectionBase):
    """Commands and files in one running container; closing it leaves the container alone."""

    transport = "rig_container"
    has_pipelining = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._client: docker.DockerClient | None = None

    def _connect(self) -> Connection:
        self._api()
        return self

    def _api(self) -> Any:
        """The engine's interface, once the container is known to run."""
        if self._client is None:
            try:
                client = docker.from_env(timeout=PATIENCE_S)
                state = client.api.inspect_container(self.get_option("container"))["State"]
            except (DockerException, OSError) as error:
                raise AnsibleConnectionFailure(f"the container cannot be reached: {error}") from error
            if not state.get("Running"):
                raise AnsibleConnectionFailure("the container does not run any more")
            self._client, self._connected = client, True
        return self._client.api

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a command with a shell; exit status, output and errors."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        return self._run(["/bin/sh", "-c", cmd], in_data)

    def _run(self, command: list[str], in_data: bytes | None) -> tuple[int, bytes, bytes]:
        api = self._api()
        said: dict[int, list[bytes]] = {_STDOUT: [], _STDERR: []}
        try:
            made = api.exec_create(self.get_option("container"), command, stdin=in_data is not None, user="0:0")
            stream = api.exec_start(made["Id"], socket=True)
            raw: socket.socket = getattr(stream, "_sock", stream)
            raw.settimeout(PATIENCE_S)
            writer = threading.Thread(target=_send, args=(raw, in_data or b""), daemon=True)
            writer.start()
            try:
                for kind, data in frames_iter(stream, tty=False):  # type: ignore[no-untyped-call] # the SDK types none of it
                    said[kind].append(data)
            finally:
                stream.close()
                raw.close()
            writer.join()
            code = api.exec_inspect(made["Id"])["ExitCode"]
        except (DockerException, OSError) as error:
            raise AnsibleConnectionFailure(f"the container was lost: {error}") from error
        if code is None:
            raise AnsibleConnectionFailure("the container was lost while a command ran in it")
        return int(code), b"".join(said[_STDOUT]), b"".join(said[_STDERR])

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file of the controller into the container, owned by root."""
        super().put_file(in_path, out_path)
        source, target = Path(in_path), Path(out_path)
        if not source.is_file():
            raise AnsibleFileNotFound(f"{in_path} is not there")
        api, buffer = self._api(), io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar, source.open("rb") as file:
            info = tarfile.TarInfo(target.name)
            info.size, info.mode = source.stat().st_size, 0o600
            tar.addfile(info, file)
        try:
            api.put_archive(self.get_option("container"), str(target.parent), buffer.getvalue())
        except (DockerException, OSError) as error:
            raise AnsibleConnectionFailure(f"{out_path} cannot be written: {error}") from error

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file of the container to the controller."""
        super().fetch_file(in_path, out_path)
        code, content, errors = self._run(["/bin/cat", "--", in_path], None)
        if code != 0:
            raise AnsibleFileNotFound(f"{in_path}: {errors.decode(errors='replace').strip()}")
        handle = os.open(out_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as writer:
            writer.write(content)

    def close(self) -> None:
        """Let the engine go; the container stays."""
        if self._client is not None:
            self._client.close()
            self._client = None
        self._connected = False


def _send(raw: socket.socket, data: bytes) -> None:
    """Everything, and then the end of it. A command that does not read ends the pipe, and says so by itself."""
    try:
        for offset in range(0, len(data), BLOCK):
            raw.sendall(data[offset : offset + BLOCK])
        raw.shutdown(socket.SHUT_WR)
    except OSError:
        return
