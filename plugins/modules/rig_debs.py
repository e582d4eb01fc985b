#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Say which Debian packages a bare machine would need, and where they lie: apt decides, nothing is installed."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ansible.module_utils import rig_apt, rig_nvidia
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_apt import FailedError

DOCUMENTATION = r"""
---
module: rig_debs
short_description: Resolve Debian packages for a machine that has none
description:
  - Reads the host's own sources into a state of its own, in a directory that is gone afterwards, and lets apt resolve
    the packages against an empty dpkg status. So every dependency is named, whatever is installed on this host.
  - Nothing is installed or downloaded but the lists; the host's own lists and packages are not touched.
options:
  packages:
    description: Names of packages, or C(name=version).
    type: list
    elements: str
    required: true
  files:
    description: Further lists and preferences for this run, path below C(/etc/apt) on the host and content.
    type: dict
    default: {}
  headers:
    description:
      - Also resolve the headers of each kernel in this host's C(/boot), and what brings those of its kernels to come,
        as far as a source offers them.
    type: bool
    default: false
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Resolve what the build needs
  rig_debs:
    packages: [cmake, g++]
"""

RETURN = r"""
packages:
  description: One entry a package with C(uri), C(sha256), C(size) and its C(stanza) of the index.
  type: list
  elements: dict
  returned: success
headers: {description: Packages of headers that were resolved beside C(packages)., type: list, returned: success}
lacking: {description: Packages of headers that no source of this host offers., type: list, returned: success}
architecture: {description: As dpkg names it., type: str, returned: success}
"""

NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
WORD = re.compile(NAME.pattern + r"(=[0-9A-Za-z.+:~-]+)?")
URI = re.compile(r"^'(?P<uri>[^']+)' ")
INSTALL = re.compile(r"^Inst (?P<name>\S+) \((?P<version>\S+) .*\[(?P<architecture>[a-z0-9]+)\]\)", re.MULTILINE)
OFFER = re.compile(r"^ *(?P<name>\S+) \| .* Packages$", re.MULTILINE)
UPDATE_S = 600
AT_ONCE = 200
"""Packages that apt-cache is asked about in one call."""


def etc(root: Path, files: dict[str, str]) -> dict[str, Path]:
    """The host's lists and preferences in ``root``, with those of this run; apt's options for them."""
    places = {
        "Dir::Etc::sourcelist": root / "sources.list",
        "Dir::Etc::sourceparts": root / "sources.list.d",
        "Dir::Etc::preferencesparts": root / "preferences.d",
    }
    for place in places.values():
        own = Path("/etc/apt") / place.name
        if place.suffix == ".list":
            place.write_bytes(own.read_bytes() if own.is_file() else b"")
            continue
        place.mkdir()
        for path in sorted(own.iterdir()) if own.is_dir() else ():
            if path.is_file() and not path.name.startswith("llamarig-"):
                (place / path.name).write_bytes(path.read_bytes())
    for given, content in files.items():
        folder, _, name = given.removeprefix("/etc/apt/").partition("/")
        if folder not in ("sources.list.d", "preferences.d") or "/" in name or not name:
            raise FailedError(f"{given[:200]} is no list and no preference")
        (root / folder / name).write_text(content)
    return places


def options(root: Path, files: dict[str, str]) -> list[str]:
    """apt's options for a machine on which nothing is installed."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True)
    (root / "status").touch()
    values: dict[str, object] = {
        "Dir::State": root / "state",
        "Dir::State::status": root / "status",
        "Dir::Cache": root / "cache",
        **etc(root, files),
        "Acquire::Languages": "none",
        "APT::Update::Error-Mode": "any",
        "APT::Sandbox::User": "root",
    }
    return [part for key, value in values.items() for part in ("-o", f"{key}={value}")]


def say(command: list[str], what: str) -> str:
    status, text = rig_apt.call(command, UPDATE_S)
    if status != 0:
        raise FailedError(f"{what} failed ({status}):\n{rig_apt.words(text)}")
    return text


def stanzas(apt: list[str], chosen: list[str]) -> dict[str, dict[str, str]]:
    """Path below the archive -> fields of the index, with the whole text under ``text``."""
    found: dict[str, dict[str, str]] = {}
    for begin in range(0, len(chosen), AT_ONCE):
        text = say(["apt-cache", *apt, "show", "--no-all-versions", *chosen[begin : begin + AT_ONCE]], "apt-cache show")
        for stanza in text.split("\n\n"):
            fields = dict(line.partition(": ")[::2] for line in stanza.splitlines() if line[:1] not in (" ", "\t", ""))
            if fields.get("Filename"):
                found[fields["Filename"].removeprefix("./")] = {**fields, "text": stanza.strip("\n")}
    return found


def headers_of_host(root: str = "") -> list[str]:
    """All that the driver's role may ask for on a host like this one (rig_driver_plan): what is installed here already
    is not there on the next."""
    return [f"linux-headers-{name}" for name in (*rig_nvidia.bootable(root), *rig_nvidia.flavours(root))]


def offered(apt: list[str], names: list[str]) -> list[str]:
    """Those of the names that a source has, in their order."""
    possible = [name for name in names if NAME.fullmatch(name)]
    if not possible:
        return []
    # Unlike show, madison goes on behind a name that nobody has.
    text = say(["apt-cache", *apt, "madison", "--", *possible], "apt-cache madison")
    known = {match["name"] for match in OFFER.finditer(text)}
    return [name for name in possible if name in known]


def update(root: Path, files: dict[str, str]) -> list[str]:
    """Fetch the lists into ``root``; apt's options for what follows."""
    apt = options(root, files)
    say(["apt-get", "-q", *apt, "update"], "apt-get update")
    return apt


def resolve(apt: list[str], packages: list[str]) -> list[dict[str, Any]]:
    """Each package with its place; raises :class:`FailedError` in apt's own words."""
    ask = ["apt-get", "-q", "-y", *apt, "--no-install-recommends"]
    simulated = say([*ask, "-s", "install", "--", *packages], f"apt-get install {' '.join(packages)}")
    chosen = [f"{match['name']}={match['version']}" for match in INSTALL.finditer(simulated)]
    printed = say([*ask, "--print-uris", "install", "--", *packages], "apt-get --print-uris")
    uris = [match["uri"] for line in printed.splitlines() if (match := URI.match(line))]
    known = stanzas(apt, chosen)
    found = []
    for path, fields in known.items():
        # apt writes some characters of a version as escapes, %2b for a plus, say.
        fitting = [uri for uri in uris if unquote(uri).endswith(f"/{unquote(path)}")]
        if len(fitting) != 1 or not re.fullmatch(r"[0-9a-f]{64}", fields.get("SHA256", "")):
            raise FailedError(
                f"the index does not say where {fields.get('Package', path)[:100]} lies, or names no sha256"
            )
        found.append(
            {"uri": fitting[0], "sha256": fields["SHA256"], "size": int(fields["Size"]), "stanza": fields["text"]}
        )
    if len(found) != len(uris):
        raise FailedError(f"apt would fetch {len(uris)} packages, and the index describes {len(found)} of them")
    return found


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "list", "elements": "str", "required": True},
            "files": {"type": "dict", "default": {}},
            "headers": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    packages: list[str] = module.params["packages"]
    for name in packages:
        if not WORD.fullmatch(name):
            module.fail_json(msg=f"{name[:200]!r} cannot be a package")
    try:
        architecture = say(["dpkg", "--print-architecture"], "dpkg").strip()
        with tempfile.TemporaryDirectory(prefix="llamarig-debs-") as root:
            apt = update(Path(root), module.params["files"])
            asked = headers_of_host() if module.params["headers"] else []
            headers = offered(apt, asked)
            found = resolve(apt, [*packages, *(name for name in headers if name not in packages)])
    except (FailedError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=str(error))
    lacking = [name for name in asked if name not in headers]
    module.exit_json(changed=False, packages=found, headers=headers, lacking=lacking, architecture=architecture)


if __name__ == "__main__":
    main()
