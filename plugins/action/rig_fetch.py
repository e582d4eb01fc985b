"""Let a host download a model file itself, as a job that goes on when the connection is cut."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from llamarig.converge import artifacts
from llamarig.converge.jobs import follow, utilities
from llamarig.converge.store.origins import locked
from llamarig.errors import RigError

HARDENING = (
    "UMask=0022", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "ProtectHome=yes",
    "PrivateTmp=yes", "PrivateDevices=yes", "ProtectKernelTunables=yes", "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes", "ProtectControlGroups=yes", "ProtectClock=yes", "ProtectHostname=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX", "RestrictNamespaces=yes", "RestrictSUIDSGID=yes",
    "RestrictRealtime=yes", "LockPersonality=yes", "MemoryDenyWriteExecute=yes", "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service", "InaccessiblePaths=-/etc/llamarig/keys", "KillMode=control-group",
)  # fmt: skip


class ActionModule(ActionBase):
    """Arguments: ``model`` as in the wanted state, ``part`` where it arrives, ``jobs`` the directory of jobs,
    ``environment`` (proxies, say), ``lock`` as of rig_follow, ``mirror`` the address of the site's mirror (for a model
    that is fetched from there) and ``limit_mib_s``."""

    _requires_connection = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        args, variables = self._task.args, task_vars or {}
        if self._task.check_mode:
            return {"changed": True, "msg": "check mode: nothing is downloaded"}
        model, part = args["model"], str(args["part"])
        try:
            url = artifacts.address_of(model, str(args.get("mirror") or ""))
            sha256 = locked(model["sha256"], artifacts.label_of(model))
        except RigError as error:
            return {"failed": True, "msg": str(error)}
        name = f"llamarig-fetch-{sha256[:16]}"
        job = {"name": name, "directory": f"{args['jobs']}/{name}", "lock": args.get("lock")}
        started = self._execute_module("rig_job", self._job(job, url, part, int(model["size"])), task_vars=variables)
        if started.get("failed"):
            return dict(started)
        return follow(self, job, f"fetch {artifacts.label_of(model)}", "bytes", variables)

    def _job(self, job: dict[str, Any], url: str, part: str, size: int) -> dict[str, Any]:
        script = f"{job['directory']}/fetch.py"
        return {
            "name": job["name"],
            "directory": job["directory"],
            "state": "started",
            "mode": "0700",
            "scripts": {"fetch.py": (utilities() / "rig_download.py").read_text(encoding="utf-8")},
            "commands": [["/usr/bin/python3", "-I", script, url, part, str(size), *self._limit()]],
            "environment": self._task.args.get("environment") or {},
            "properties": [*HARDENING, f"ReadWritePaths={part.rpartition('/')[0]}"],
        }

    def _limit(self) -> list[str]:
        limit = float(self._task.args.get("limit_mib_s") or 0)
        return [str(limit)] if limit else []
