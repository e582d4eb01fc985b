"""Bring an artifact from the controller to a host over the connection that Ansible already has.

The file travels in pieces, each written at its own offset: a cut connection loses
one piece, and the next run goes on behind what has arrived. Whether all of it is
right says the hash, checked on the host by the module that uses the file.
"""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from llamarig.converge import artifacts, toolkit
from llamarig.converge.events import progress
from llamarig.converge.jobs import LockKeeper, utilities
from llamarig.converge.mirror.pack import packed_packages
from llamarig.converge.store.releases import Releases
from llamarig.converge.store.shelf import Shelf
from llamarig.errors import RigError

PIECE = 16 << 20
TRIES = 3
MIB = 1 << 20
KINDS = ("release", "model", "toolkit", "packages")


def pace_of(limit_mib_s: float) -> Any:
    """The token bucket of rig_download, which runs on hosts and is found here as a file only; 0 is no limit."""
    spec = importlib.util.spec_from_file_location("rig_download_here", utilities() / "rig_download.py")
    if spec is None or spec.loader is None:
        raise AnsibleActionFail("rig_download.py is missing from llamarig's plugins")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Pace(limit_mib_s * MIB if limit_mib_s else None)


class ActionModule(ActionBase):
    """Arguments: ``release``, ``model`` or ``toolkit`` (as in the wanted state), or ``packages`` (a system of the
    mirror), and ``directory`` on the host;
    ``lock``, arguments for rig_lock, called now and then meanwhile.

    For a model it returns ``path``, ``sha256`` and ``size`` of the file there, still unchecked;
    for a release those of the source archive, and ``patches`` in order, as rig_source takes them, or, where the
    controller holds it, those of the packed release;
    for a toolkit ``parts`` in order, as rig_toolkit takes them.
    """

    _requires_connection = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        args, variables = self._task.args, task_vars or {}
        self._host = str(variables.get("inventory_hostname", ""))
        self._lock = LockKeeper(self, args.get("lock"), variables)
        self._pace = pace_of(float((variables.get("llamarig_transfer") or {}).get("limit_mib_s") or 0))
        mirror = (variables.get("llamarig_mirror") or {}).get("path")
        self._shelf = Shelf.default().with_mirror(Path(mirror) if mirror else None)
        if not args.get("directory") or sum(bool(args.get(key)) for key in KINDS) != 1:
            raise AnsibleActionFail("rig_push needs a directory, and one of a release, a model, a toolkit and packages")
        if self._task.check_mode:
            return {"changed": True, "path": "", "sha256": "", "size": 0, "patches": [], "parts": []}
        project = Path(str(variables.get("llamarig_project") or Path.cwd()))
        try:
            if args.get("packages"):
                return self._packages(str(args["packages"]), Path(str(mirror)))
            if args.get("toolkit"):
                return self._toolkit(project)
            return self._release(project) if args.get("release") else self._model(project)
        except RigError as error:
            return {"failed": True, "msg": str(error)}

    def _model(self, project: Path) -> dict[str, Any]:
        wanted = self._task.args["model"]
        return self._send(artifacts.model(wanted, project, self._progress, self._shelf), artifacts.label_of(wanted))

    def _packages(self, system: str, mirror: Path) -> dict[str, Any]:
        return self._send(packed_packages(mirror, system, Shelf.default()), f"packages of {system}")

    def _toolkit(self, project: Path) -> dict[str, Any]:
        # Everything is found before anything is sent.
        parts = toolkit.parts(self._task.args["toolkit"], project, self._progress, self._shelf)
        sent = [(part, self._send(part.artifact, part.name)) for part in parts]
        return {
            "changed": any(answer["changed"] for _, answer in sent),
            "parts": [
                {"name": part.name, "kind": part.kind, "path": answer["path"], "sha256": answer["sha256"]}
                for part, answer in sent
            ],
        }

    def _release(self, project: Path) -> dict[str, Any]:
        release = self._task.args["release"]
        if release.get("artifact"):
            packed = artifacts.Artifact(str(release["artifact"]["sha256"]), Releases(self._shelf).file(release))
            return {**self._send(packed, f"release {release['id']}"), "patches": []}
        # Everything is found before anything is sent.
        source = artifacts.source(release, project, self._progress, self._shelf)
        patches = [(entry, artifacts.patch(entry, project, self._shelf)) for entry in release["patches"]]
        result = self._send(source, "engine source")
        result["patches"] = []
        for entry, artifact in patches:
            sent = self._send(artifact, f"patch {entry['name']}")
            result["changed"] |= sent["changed"]
            result["patches"].append({"name": entry["name"], "path": sent["path"], "sha256": sent["sha256"]})
        return result

    def _progress(self, label: str, done: int, total: int) -> None:
        progress(self._host, label, done, total, "bytes")

    def _remote(self, command: str, data: bytes | None = None) -> str:
        answer = self._low_level_execute_command(command, in_data=data)
        if answer["rc"] != 0:
            said = str(answer["stderr"]).strip() or str(answer["stdout"]).strip()
            raise AnsibleActionFail(f"copying to the host failed: {said}")
        return str(answer["stdout"])

    def _offset(self, target: str, size: int) -> int:
        """Bytes that are there already. A link, or a file that is too long, is none of ours and goes away."""
        path = shlex.quote(target)
        keep = f'[ -f {path} ] && [ ! -L {path} ] && [ "$(stat -c %s {path})" -le {size} ]'
        lines = self._remote(f"if {keep}; then stat -c %s {path}; else rm -f {path}; echo 0; fi").split()
        return int(lines[-1]) if lines and lines[-1].isdigit() else 0

    def _send(self, artifact: artifacts.Artifact, label: str) -> dict[str, Any]:
        size = artifact.size
        target = f"{self._task.args['directory']}/{artifact.sha256}.part"
        begin = offset = self._offset(target, size)
        with artifact.path.open("rb") as file:
            while offset < size:
                file.seek(offset)
                # A limited line gets a second's worth at once: each piece is a command of its own over there.
                piece = file.read(PIECE if self._pace.rate is None else max(1 << 16, min(PIECE, int(self._pace.rate))))
                self._piece(target, offset, piece)
                self._pace.spend(len(piece))
                self._lock.renew()
                offset += len(piece)
                self._progress(f"copy {label}", offset, size)
        return {"changed": begin < size, "path": target, "sha256": artifact.sha256, "size": size}

    def _piece(self, target: str, offset: int, piece: bytes) -> None:
        flags = "iflag=fullblock oflag=seek_bytes,nofollow conv=notrunc status=none"
        command = f"umask 022; dd of={shlex.quote(target)} bs=1M seek={offset} {flags}"
        for left in reversed(range(TRIES)):
            try:
                self._remote(command, piece)
            except AnsibleConnectionFailure:
                if not left:
                    raise
            else:
                return
