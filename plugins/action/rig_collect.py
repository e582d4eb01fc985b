# SPDX-License-Identifier: Apache-2.0
"""Take a finished release from the host that built it onto the controller, so that other hosts copy it.

The host packs it; the packed file comes in pieces over the connection that Ansible already has and is hashed while it
arrives. What arrived before a cut is used again, since the same release packs to the same bytes. The hash that counts
is the one computed here, and only a file that is the release of the wanted inputs is kept.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from llamarig.converge.events import progress
from llamarig.converge.jobs import LockKeeper
from llamarig.converge.store.releases import Releases
from llamarig.errors import RigError

PIECE = 8 << 20
TRIES = 3
LIMIT = 8 << 30
"""Bytes; a host that offers more is not believed."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


class ActionModule(ActionBase):
    """Arguments: ``release`` as in the wanted state, ``directory`` on the host for the packed file while it is
    fetched, ``lock`` as of rig_push.

    Returns ``sha256`` and ``size`` of what the controller holds then; unchanged where it held it already.
    """

    _requires_connection = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        args, variables = self._task.args, task_vars or {}
        self._host = str(variables.get("inventory_hostname", ""))
        self._lock = LockKeeper(self, args.get("lock"), variables)
        store, wanted = Releases.default(), args["release"]
        held = store.get(str(wanted["id"]))
        if held is not None:
            return {"changed": False, "sha256": held.sha256, "size": held.size}
        if self._task.check_mode:
            return {"changed": True, "sha256": "", "size": 0}
        archive = f"{args['directory']}/{wanted['id']}.tar"
        asked = {"state": "packed", "id": wanted["id"], "archive": archive}
        packed = self._execute_module("rig_release", asked, task_vars=variables)
        if packed.get("failed"):
            return dict(packed)
        try:
            return self._take(store, wanted, archive, packed)
        except RigError as error:
            return {"failed": True, "msg": str(error)}
        finally:
            # A cut connection is told as what it is; the next run packs to the same name.
            with contextlib.suppress(AnsibleConnectionFailure):
                self._remote(f"rm -f {shlex.quote(archive)}")

    def _take(self, store: Releases, wanted: dict[str, Any], archive: str, packed: dict[str, Any]) -> dict[str, Any]:
        sha256, size = str(packed.get("sha256")), int(packed.get("size") or 0)
        if not _SHA256.fullmatch(sha256) or not 0 < size <= LIMIT:
            raise AnsibleActionFail(f"the host packed something that is no release: {size} bytes")
        name = f"release {wanted['id']} {sha256}"
        with store.shelf.busy(name):
            part = store.shelf.partial(name)
            got = self._fetch(archive, part, size, f"fetch release {wanted['id']}")
            if got != sha256:
                part.unlink(missing_ok=True)
                raise AnsibleActionFail(
                    f"what arrived has sha256 {got}, the host had packed {sha256}; nothing was kept"
                )
            at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            held = store.add(part, got, wanted, self._host, at)
        return {"changed": True, "sha256": held.sha256, "size": held.size}

    def _fetch(self, archive: str, part: Path, size: int, label: str) -> str:
        """Bring the file to ``part``, behind what is there; the sha256 of all of it."""
        digest, offset = hashlib.sha256(), 0
        with part.open("ab+") as file:
            if file.tell() > size:
                file.truncate(0)
            file.seek(0)
            while block := file.read(PIECE):
                digest.update(block)
                offset += len(block)
            while offset < size:
                piece = self._piece(archive, offset, min(PIECE, size - offset))
                file.write(piece)
                digest.update(piece)
                offset += len(piece)
                self._lock.renew()
                progress(self._host, label, offset, size, "bytes")
        return digest.hexdigest()

    def _piece(self, archive: str, offset: int, count: int) -> bytes:
        flags = "bs=1M iflag=fullblock,skip_bytes,count_bytes,nofollow status=none"
        command = f"dd if={shlex.quote(archive)} skip={offset} count={count} {flags} | base64 -w0"
        for left in reversed(range(TRIES)):
            try:
                piece = base64.b64decode(self._remote(command).strip(), validate=True)
            except (AnsibleConnectionFailure, binascii.Error):
                if not left:
                    raise
                continue
            if len(piece) == count:
                return piece
            raise AnsibleActionFail(f"the host gave {len(piece)} bytes of the packed release instead of {count}")
        raise AssertionError  # the loop returns or raises

    def _remote(self, command: str) -> str:
        answer = self._low_level_execute_command(command)
        if answer["rc"] != 0:
            said = str(answer["stderr"]).strip() or str(answer["stdout"]).strip()[:2000]
            raise AnsibleActionFail(f"fetching from the host failed: {said}")
        return str(answer["stdout"])
