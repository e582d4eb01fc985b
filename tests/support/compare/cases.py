"""A wanted state with two services, and the observation of a host that is exactly so. Composed, not recorded."""

from __future__ import annotations

import hashlib
import posixpath
from dataclasses import dataclass, field, replace
from typing import Any

from llamarig.render.wanted import (
    RELEASES,
    Wanted,
    WantedCredential,
    WantedFile,
    WantedModelFile,
    WantedPatch,
    WantedRelease,
    WantedService,
    WantedUser,
)
from tests.support.compare.driver_seen import driver_seen
from tests.support.compare.files_seen import files_seen

RELEASE = "4df29be4f-0123456789ab"
BASE = f"{RELEASES}/{RELEASE}"
SERVER = "/opt/llamarig/current/bin/llama-server"
UNIT = "/etc/systemd/system/llama-chat.service"
OTHER_UNIT = "/etc/systemd/system/llama-embed.service"
PROBE = "/opt/llamarig/libexec/start-probe"
KEYS = "/etc/llamarig/keys/chat.keys"
MODELS = "/var/lib/llamarig/models"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


MODEL = f"{MODELS}/sha256/{sha('model')}"
LINK = f"{MODELS}/smol/smol.gguf"
BUILT = {
    "bin/llama-server": sha("server"),
    "lib/libllama.so.0": sha("libllama"),
    "lib/libggml.so.0": sha("libggml"),
}


def service(name: str, port: int) -> WantedService:
    return WantedService(
        name=name,
        unit=f"llama-{name}.service",
        user=f"llama-{name}",
        argv=(
            SERVER,
            "--model",
            LINK,
            "--ctx-size",
            "4096",
            "--port",
            str(port),
            "--metrics",
            "--alias",
            f"{name} é %",
        ),
        environment={"GGML_CUDA_GRAPH_OPT": "1"},
        address="127.0.0.1",
        port=port,
        keyed=True,
        tls=False,
        model_sha256=sha("model"),
        model_path=LINK,
        alias=name,
        context=4096,
        slots=1,
        modalities=("text",),
        speculative=False,
        backend="cpu",
        gpu_uuid=None,
        vram_mib=0.0,
        start_timeout_s=60,
    )


def wanted_state() -> Wanted:
    return Wanted(
        host="demo",
        packages={"cmake": None, "libgomp1": "14.2.0-19"},
        users=(
            WantedUser("llamarig-build", home="/var/lib/llamarig/build"),
            WantedUser("llama-chat", groups=("video",)),
            WantedUser("llama-embed"),
        ),
        directories=(
            ("/opt/llamarig", "0755", "root", "root"),
            ("/var/lib/llamarig/build", "0750", "llamarig-build", "llamarig-build"),
        ),
        files=(
            WantedFile(PROBE, "#!probe\n", mode="0755", restarts=("chat", "embed")),
            WantedFile(UNIT, "[Service]\nExecStart=chat\n", restarts=("chat",)),
            WantedFile(OTHER_UNIT, "[Service]\nExecStart=embed\n", restarts=("embed",)),
        ),
        release=WantedRelease(
            id=RELEASE,
            label=f"4df29be4f-{RELEASE}",
            commit="4df29be4f",
            build_number=10454,
            source={"kind": "sdist", "ref": "llama_cpp_python==0.3.35", "sha256": sha("sdist"), "subdir": "vendor"},
            patches=(WantedPatch("fix.patch", sha("patch")),),
            cmake=("-DGGML_CUDA=OFF",),
            targets=("llama-server",),
            job_mib=1024,
            jobs=None,
            backend="cpu",
            inputs={"commit": "4df29be4f"},
            flags=("--model",),
        ),
        models=(
            WantedModelFile(
                sha256=sha("model"),
                size=1000,
                path=MODEL,
                links=(LINK,),
                origin={"kind": "wheel", "ref": "x==1"},
                fetch="host",
                restarts=("chat", "embed"),
            ),
        ),
        credentials=(WantedCredential(path=KEYS, service="chat", kind="generated", clients=("default", "phone")),),
        services=(service("chat", 8080), service("embed", 8081)),
        system="debian 13",
    )


def stat_of(name: str, size: int = 1000) -> list[int]:
    """A stat tuple that depends on the name alone."""
    return [41, int(sha(name)[:6], 16), size, 1_790_000_000_000_000_000, 1_790_000_000_000_000_001]


def _big(sha256: str, name: str, mode: str) -> dict[str, Any]:
    return {
        "type": "file",
        "sha256": sha256,
        "size": 1000,
        "mode": mode,
        "owner": "root",
        "group": "root",
        "stat": stat_of(name),
        "hashed": False,
    }


def _process(each: WantedService) -> dict[str, Any]:
    return {
        "exe": f"{BASE}/bin/llama-server",
        "deleted": False,
        "exe-sha256": BUILT["bin/llama-server"],
        "argv": list(each.argv),
        "environment": dict(each.environment),
        "user": each.user,
        "mapped": {f"{BASE}/{path}": sha256 for path, sha256 in BUILT.items()},
        "devices": [],
        "libcuda": False,
    }


def toolkits(wanted: Wanted) -> dict[str, Any]:
    """The wanted CUDA toolkit as it was installed."""
    toolkit = wanted.toolkit
    if toolkit is None:
        return {}
    entry = {"type": "dir", "mode": "0755", "owner": "root", "group": "root", "manifest": {"id": toolkit.id}}
    told = {"manifest-sha256": sha("manifest"), "files": 1851, "wrong": [], "wrong-count": 0}
    return {toolkit.version: entry | told}


def observation(wanted: Wanted) -> dict[str, Any]:
    """What ``rig_observe`` says of a host that is as ``wanted`` (docs/contracts.md)."""
    release = {
        path: _big(sha256, path, "0755" if path.startswith("bin/") else "0644") for path, sha256 in BUILT.items()
    }
    release["lib/libllama.so"] = {"type": "link", "target": "libllama.so.0", "mode": "0777", "owner": "root"}
    models = {model.path: _big(model.sha256, model.path, "0444") for model in wanted.models}
    recorded = {
        f"{BASE}/{path}": {"sha256": entry["sha256"], "stat": list(entry["stat"])}
        for path, entry in release.items()
        if entry["type"] == "file"
    }
    recorded |= {path: {"sha256": entry["sha256"], "stat": list(entry["stat"])} for path, entry in models.items()}
    recorded |= {file.path: {"sha256": file.sha256, "stat": stat_of(file.path)} for file in wanted.files}
    recorded[f"{BASE}/provenance.json"] = {"sha256": sha("provenance"), "stat": stat_of("provenance")}
    pids = {each.name: 812 + at for at, each in enumerate(wanted.services)}
    return {
        "schema": 1,
        "hostname": "demo",
        "arch": "x86_64",
        "boot-id": "b",
        "time": 1790000000.0,
        "os": {"id": "debian", "version": "13", "codename": "trixie"},
        "kernel": "6.12.117+deb13-amd64",
        "cores": 2,
        "ram-mib": 24000.0,
        "disk": {},
        "packages": {name: version or "3.31.6-2" for name, version in wanted.packages.items()},
        "users": {
            user.name: {
                "uid": 990,
                "group": user.name,
                "home": user.home,
                "shell": user.shell,
                "groups": list(user.groups),
                "locked": True,
            }
            for user in wanted.users
        },
        "files": files_seen(wanted.files),
        "directories": {
            path: {"type": "dir", "mode": mode, "owner": owner, "group": group}
            for path, mode, owner, group in wanted.directories
        },
        "current": f"releases/{wanted.release.id}",
        "releases": {
            wanted.release.id: {
                "provenance": {"schema": 1, "release": wanted.release.id, "files": dict(BUILT)},
                "provenance-sha256": sha("provenance"),
                "directories": {
                    name: {"type": "dir", "mode": "0755", "owner": "root", "group": "root"}
                    for name in ("", "bin", "lib")
                },
                "files": release,
            }
        },
        "toolkits": toolkits(wanted),
        "models": models,
        "links": {
            link: posixpath.relpath(model.path, posixpath.dirname(link))
            for model in wanted.models
            for link in model.links
        },
        "credentials": {
            entry.path: {
                "type": "file",
                "mode": entry.mode,
                "owner": "root",
                "group": "root",
                "clients": list(entry.clients),
                "keys": len(entry.clients),
            }
            for entry in wanted.credentials
        },
        "units": {
            each.unit: {
                "load": "loaded",
                "active": "active",
                "sub": "running",
                "enabled": "enabled",
                "main-pid": pids[each.name],
                "restarts": 0,
                "drop-ins": [],
                "need-reload": False,
                "fragment": f"/etc/systemd/system/{each.unit}",
                "result": "success",
                "started": 1790000000.0,
            }
            for each in wanted.services
        },
        "processes": {str(pids[each.name]): _process(each) for each in wanted.services},
        "ports": {
            f"{each.address}:{each.port}": [{"pid": pids[each.name], "command": "llama-server"}]
            for each in wanted.services
        },
        "record": {
            "schema": 1,
            "host": wanted.host,
            "applied-at": "2026-11-29T16:00:00Z",
            "applied-from": "desk",
            "llamarig": "0.1.0",
            "run": "r1",
            "release": wanted.release.id,
            "former-release": None,
            "gpus": {card.name: card.uuid for card in wanted.cards if card.uuid},
            "files": recorded,
            "former": {"files": []},
            "digest": sha("digest"),
        },
        "record-state": "ok",
        "lock": None,
        "unfinished": None,
        "former": None,
        "systemd": True,
        "driver": driver_seen(wanted.driver),
        "gpus": [{"bus-id": card.bus_id, "device": "0x2bb1", "uuid": card.uuid} for card in wanted.cards if card.uuid],
    }


def bare_observation(wanted: Wanted) -> dict[str, Any]:
    """A host that llamarig has never touched."""
    seen = observation(wanted)
    gone: dict[str, Any] = {"type": "absent"}
    return seen | {
        "packages": dict.fromkeys(wanted.packages),
        "users": {user.name: None for user in wanted.users},
        "files": {file.path: gone for file in wanted.files},
        "directories": {row[0]: gone for row in wanted.directories},
        "current": None,
        "releases": {},
        "toolkits": {},
        "models": {model.path: gone for model in wanted.models},
        "links": dict.fromkeys(seen["links"]),
        "credentials": dict.fromkeys(seen["credentials"], gone),
        "units": {
            each.unit: {
                "load": "not-found",
                "active": "inactive",
                "sub": "dead",
                "enabled": "",
                "main-pid": 0,
                "restarts": 0,
                "fragment": "",
                "drop-ins": [],
                "need-reload": False,
                "result": "success",
                "started": None,
            }
            for each in wanted.services
        },
        "processes": {},
        "ports": {place: [] for place in seen["ports"]},
        "record": None,
        "record-state": "absent",
    }


@dataclass
class Case:
    """A converged host, ready to be changed."""

    wanted: Wanted = field(default_factory=wanted_state)
    observed: dict[str, Any] = field(default_factory=lambda: observation(wanted_state()))

    def unit(self, name: str = "chat") -> dict[str, Any]:
        found: dict[str, Any] = self.observed["units"][f"llama-{name}.service"]
        return found

    def process(self, name: str = "chat") -> dict[str, Any]:
        found: dict[str, Any] = self.observed["processes"][str(self.unit(name)["main-pid"])]
        return found

    def release(self) -> dict[str, Any]:
        found: dict[str, Any] = self.observed["releases"][RELEASE]
        return found

    def want(self, **changes: Any) -> None:
        self.wanted = replace(self.wanted, **changes)

    def stop(self, name: str = "chat", result: str = "success") -> None:
        """What systemd shows of a stopped unit, and that nothing listens for it any more."""
        self.observed["processes"].pop(str(self.unit(name)["main-pid"]), None)
        self.unit(name).update(
            {
                "active": "failed" if result != "success" else "inactive",
                "sub": "dead",
                "main-pid": 0,
                "started": None,
                "result": result,
            }
        )
        port = next(each.port for each in self.wanted.services if each.name == name)
        self.observed["ports"][f"127.0.0.1:{port}"] = []
