#!/usr/bin/python
"""A finished build as an immutable release: whole, checked, with its provenance, or not there."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import exchange, open_plain, sha256_of, sync, write_whole

DOCUMENTATION = r"""
module: rig_release
short_description: Install a build as a release, or check one
description:
  - C(checked) compares every file of a release with its provenance.json and reports C(intact) and C(problems).
  - C(present) copies programs and libraries of a build beside the releases, checks them (all libraries found, the
    version shows the label), writes provenance.json, and renames the whole into place. An intact one is left alone.
options:
  state: {description: What to do., type: str, choices: [checked, present], default: present}
  id: {description: Id of the release., type: str, required: true}
  releases: {description: Directory of the releases., type: path, default: /opt/llamarig/releases}
  build: {description: Directory in which the build left C(bin)., type: path}
  programs: {description: Programs of the release., type: list, elements: str, default: [llama-server]}
  label: {description: What C(--version) must show., type: str, default: ""}
  provenance: {description: Keys of provenance.json that are known before., type: dict, default: {}}
  patches: {description: The patches of the source in order., type: list, elements: dict, default: []}
  force: {description: Whether to replace one that agrees with its own provenance.json., type: bool, default: false}
  user: {description: Who runs the new binary for the checks., type: str, default: llamarig-build}
"""

RETURN = r"""
intact: {description: Whether the release is whole., type: bool, returned: success}
problems: {description: What is wrong with it., type: list, returned: success}
"""

LIBRARY = re.compile(r"^lib[\w.+-]+\.so(\.\d+)*$")


class RefusedError(Exception):
    """The build cannot become a release; the text says why."""


def problems_of(release: Path) -> list[str]:
    """What differs between a release and its provenance.json; empty when it is intact."""
    try:
        with os.fdopen(open_plain(release / "provenance.json"), "rb") as file:
            files = dict(json.load(file)["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"provenance.json cannot be read: {error}"]
    found = []
    for name, digest in sorted(files.items()):
        path = release / name
        try:
            owner = path.stat(follow_symlinks=False)
            if sha256_of(path) != digest:
                found.append(f"{name}: the content differs")
            elif owner.st_uid != os.geteuid() or owner.st_mode & 0o022:
                found.append(f"{name}: others than root may write it")
        except OSError as error:
            found.append(f"{name}: {error.strerror}")
    return [*found, *_extra(release, set(files) | {"provenance.json"})]


def _extra(release: Path, known: set[str]) -> Iterator[str]:
    """What lies in a release beside its files, and links in it that lead anywhere but to one of them."""
    for path in sorted(release.rglob("*")):
        name = str(path.relative_to(release))
        if path.is_symlink() and name not in known:
            target = path.resolve()
            if not target.is_relative_to(release.resolve()):
                yield f"{name}: leads out of the release"
            elif not target.is_file():
                yield f"{name}: leads nowhere"
        elif not path.is_dir() and name not in known:
            yield f"{name}: does not belong to the release"


def _sandboxed(user: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a new binary as the build user, without network and with an empty environment."""
    drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    return subprocess.run(  # noqa: S603 - no shell, and a user without rights
        ["/usr/bin/unshare", "--net", *drop, *command],
        capture_output=True, text=True, errors="replace", check=False, timeout=120, cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"},
    )  # fmt: skip


def _copy(source: Path, target: Path, mode: int) -> None:
    with os.fdopen(open_plain(source), "rb") as reader, target.open("xb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)
        os.fchmod(writer.fileno(), mode)
        writer.flush()
        os.fsync(writer.fileno())


def _copy_build(build: Path, programs: list[str], target: Path) -> list[str]:
    """Copy programs, libraries and their soname links; returns the names of the real files."""
    if (build / "bin").is_symlink() or not (build / "bin").is_dir():
        raise RefusedError(f"{build / 'bin'} is no directory of its own")
    for folder in ("bin", "lib"):
        (target / folder).mkdir(mode=0o755)
    names = []
    for program in programs:
        _copy(build / "bin" / program, target / "bin" / program, 0o755)
        names.append(f"bin/{program}")
    for entry in sorted((build / "bin").iterdir()):
        if not LIBRARY.match(entry.name):
            continue
        if entry.is_symlink():
            leads_to = os.readlink(entry)  # noqa: PTH115 - the text as it stands
            if not LIBRARY.match(leads_to):
                raise RefusedError(f"the link {entry.name} leads to {leads_to[:200]!r}, not to a library beside it")
            (target / "lib" / entry.name).symlink_to(leads_to)
        elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            _copy(entry, target / "lib" / entry.name, 0o755)
            names.append(f"lib/{entry.name}")
    return names


def _check(target: Path, names: list[str], params: dict[str, Any]) -> None:
    for name in names:
        listed = _sandboxed(params["user"], "ldd", str(target / name))
        missing = [line.strip() for line in listed.stdout.splitlines() if "not found" in line]
        if missing:
            raise RefusedError(f"{name} lacks libraries: {'; '.join(missing)}")
    server = str(target / "bin/llama-server")
    version = _sandboxed(params["user"], server, "--version")
    shown = version.stdout + version.stderr
    if version.returncode != 0 or params["label"] not in shown:
        raise RefusedError(f"{server} --version does not show {params['label']!r} but: {shown.strip()[:1000]}")


def _tool(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words
    except OSError:
        return ""
    return done.stdout.splitlines()[0].strip() if done.stdout else ""


def _provenance(params: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    return {
        "schema": 1,
        "release": params["id"],
        "label": params["label"],
        **params["provenance"],
        "patches": [{key: patch[key] for key in ("name", "sha256")} for patch in params["patches"]],
        "compiler": _tool("cc", "--version"),
        "cmake-version": _tool("cmake", "--version").removeprefix("cmake version "),
        "libc": os.confstr("CS_GNU_LIBC_VERSION").split()[-1],  # type: ignore[union-attr] # glibc always says
        "files": files,
    }


def _install(params: dict[str, Any], release: Path) -> None:
    target = release.with_name(f".{release.name}.tmp")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(mode=0o755, parents=True)
    try:
        names = _copy_build(Path(params["build"]), params["programs"], target)
        _check(target, names, params)
        files = {name: sha256_of(target / name) for name in names}
        write_whole(target / "provenance.json", json.dumps(_provenance(params, files), indent=1).encode())
        for folder in (target / "bin", target / "lib", target):
            sync(folder)
        if release.exists():
            exchange(target, release)
        else:
            target.rename(release)
        sync(release.parent)
    finally:
        shutil.rmtree(target, ignore_errors=True)


def _run(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    release = Path(params["releases"]) / params["id"]
    problems = problems_of(release) if release.exists() else ["it is not there"]
    replace = bool(problems) or params["force"]
    if params["state"] == "checked" or not replace:
        return {"changed": False, "intact": not problems, "problems": problems}
    if not module.check_mode:
        _install(params, release)
    return {"changed": True, "intact": not module.check_mode, "problems": problems}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["checked", "present"], "default": "present"},
            "id": {"type": "str", "required": True},
            "releases": {"type": "path", "default": "/opt/llamarig/releases"},
            "build": {"type": "path"},
            "programs": {"type": "list", "elements": "str", "default": ["llama-server"]},
            "label": {"type": "str", "default": ""},
            "provenance": {"type": "dict", "default": {}},
            "patches": {"type": "list", "elements": "dict", "default": []},
            "force": {"type": "bool", "default": False},
            "user": {"type": "str", "default": "llamarig-build"},
        },
        required_if=[("state", "present", ["build", "label"])],
        supports_check_mode=True,
    )
    os.umask(0o022)
    try:
        module.exit_json(**_run(module))
    except (RefusedError, OSError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
