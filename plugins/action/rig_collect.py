# SPDX-License-Identifier: Apache-2.0
"""Bring a release from the host that built it to the controller, which keeps it by its id.

It travels in pieces, over the connection that Ansible has, as text: what arrives is written behind what arrived
before, so a cut connection costs one piece. What the file is says the hash that is computed here.
"""

from __future__ import annotations

import base64
import binascii
import shlex
import time
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from llamarig.converge.events import progress
from llamarig.converge.jobs import LockKeeper
from llamarig.converge.store.releases import Releases
from llamarig.converge.store.shelf import sha256_of
from llamarig.errors import RigError

PIECE = 8 << 20
TRIES = 3
LARGEST = 8 << 30
"""Bytes that a packed release may have."""


class ActionModule(ActionBase):
    """Arguments: ``release`` of the wanted state, ``directory`` on the host for the packed file, ``lock`` as of rig_push.

    Returns ``sha256`` and ``size`` of what the controller holds then.
    """

    _requires_connection = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        if self._task.check_mode:
            return {"changed": False, "skipped": True, "msg": "a check fetches nothing"}
        arguments, variables = self._task.args, task_vars or {}
        self._host = str(variables.get("inventory_hostname", ""))
        self._lock = LockKeeper(self, arguments.get("lock"), variables)
        release, store = arguments["release"], Releases.default()
        held = store.get(str(release["id"]))
        if held is not None:
            return {"changed": False, "sha256": held.sha256, "size": held.size}
        packed = f"{arguments['directory']}/{release['id']}.tar"
        asked = {"state": "packed", "id": release["id"], "archive": packed}
        answer = self._execute_module("rig_release", module_args=asked, task_vars=variables)
        if answer.get("failed"):
            return dict(answer)
        try:
            with store.shelf.busy(f"release {release['id']}"):
                path = store.shelf.partial(f"release {self._host} {answer['sha256']}")
                self._fetch(packed, path, int(answer["size"]), f"fetch {release['id']}")
                if sha256_of(path) != answer["sha256"]:
                    path.unlink()
                    return {"failed": True, "msg": "what arrived is not what the host has packed; try again"}
                now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                held = store.add(path, release, self._host, now)
        except RigError as error:
            return {"failed": True, "msg": str(error)}
        finally:
            self._low_level_execute_command(f"rm -f {shlex.quote(packed)}")
        return {"changed": True, "sha256": held.sha256, "size": held.size}

    def _fetch(self, source: str, target: Path, size: int, label: str) -> None:
        if size > LARGEST:
            raise AnsibleActionFail(f"the packed release has {size} bytes, more than any release")
        with target.open("ab") as file:
            if file.tell() > size:
                file.truncate(0)
            while (offset := file.tell()) < size:
                file.write(self._piece(source, offset, min(PIECE, size - offset)))
                self._lock.renew()
                progress(self._host, label, file.tell(), size, "bytes")

    def _piece(self, source: str, offset: int, count: int) -> bytes:
        flags = "iflag=skip_bytes,count_bytes,fullblock status=none"
        command = f"dd if={shlex.quote(source)} bs=1M skip={offset} count={count} {flags} | base64 -w0"
        for left in reversed(range(TRIES)):
            try:
                answer = self._low_level_execute_command(command)
                data = base64.b64decode(str(answer["stdout"]).strip(), validate=True)
            except AnsibleConnectionFailure:
                if not left:
                    raise
            except (binascii.Error, ValueError) as error:
                raise AnsibleActionFail(f"the host sent no piece of a file: {error}") from error
            else:
                if len(data) != count:
                    said = str(answer["stderr"]).strip() or f"{len(data)} of {count} bytes"
                    raise AnsibleActionFail(f"the packed release cannot be read: {said}")
                return data
        raise AnsibleActionFail("unreachable")
