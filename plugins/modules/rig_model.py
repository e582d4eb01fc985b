#!/usr/bin/python
"""One model file on a host: by content, checked before it gets its name, never linked when it is not right."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import open_plain, recorded_hash, relative_link, sha256_of, sync

DOCUMENTATION = r"""
module: rig_model
short_description: Place a model file by its hash
description:
  - C(checked) says whether the file is there with the right content, and how much of it has arrived.
  - C(present) takes a complete file from C(incoming), or from another place on the host, checks size and sha256,
    and gives it its name and its links. What is not right is thrown away and nothing is linked.
options:
  state: {description: What to do., type: str, choices: [checked, present], default: present}
  model: {description: The file as in the wanted state (WantedModelFile)., type: dict, required: true}
  incoming: {description: Where files arrive; on the file system of the models., type: path, required: true}
  record:
    description: The host's record; it holds hashes with stat tuples.
    type: path
    default: /var/lib/llamarig/record.json
  deep: {description: Hash the file whatever the record says., type: bool, default: false}
"""

RETURN = r"""
present: {description: Whether the file is there and right., type: bool, returned: success}
part: {description: Where the file arrives., type: str, returned: success}
have: {description: Bytes that have arrived., type: int, returned: success}
hashed: {description: Whether the content was read., type: bool, returned: success}
"""

MAGIC = b"GGUF"
FILE_MODE = 0o444
OWNER = (0, 0)


class RefusedError(Exception):
    """The content is not the wanted one; the text says how it differs."""


class Placer:
    """One model file and the places that it passes."""

    def __init__(self, params: dict[str, Any], check_mode: bool) -> None:
        model = params["model"]
        self.sha256, self.size = str(model["sha256"]), int(model["size"])
        self.path = Path(model["path"])
        self.links = [Path(link) for link in model["links"]]
        self.origin: dict[str, str] = model["origin"]
        self.part = Path(params["incoming"]) / f"{self.sha256}.part"
        self.record, self.deep, self.dry = Path(params["record"]), bool(params["deep"]), check_mode
        self.hashed = False

    def right(self) -> bool:
        """Whether the file in place is the wanted one; reads it only when the record cannot vouch for it."""
        try:
            info = self.path.stat(follow_symlinks=False)
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(info.st_mode) or info.st_size != self.size:
            return False
        if not self.deep and recorded_hash(self.record, self.path) == self.sha256:
            return True
        self.hashed = True
        return sha256_of(self.path) == self.sha256

    def have(self) -> int:
        """Bytes of the file that have arrived."""
        try:
            return self.part.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            return 0

    def take_from_host(self) -> None:
        """Link or copy a file that lies elsewhere on this host to the part."""
        source = Path(self.origin["path"])
        real = source.resolve()
        try:
            info = real.stat()
        except OSError as error:
            raise RefusedError(f"{source} cannot be read on this host: {error.strerror}") from error
        if info.st_size != self.size:
            raise RefusedError(f"{source} has {info.st_size} bytes, expected {self.size}")
        self.part.unlink(missing_ok=True)
        # A link shares owner and mode with its source, so only a file that is root's alone may be shared.
        private = info.st_uid == 0 and not info.st_mode & 0o022
        if private and info.st_dev == self.part.parent.stat().st_dev:
            self.part.hardlink_to(real)
        else:
            with os.fdopen(open_plain(real), "rb") as reader, self.part.open("xb") as writer:
                shutil.copyfileobj(reader, writer, 4 << 20)

    def place(self) -> None:
        """Check the part, and give it its name."""
        have = self.have()
        if have != self.size:
            raise RefusedError(f"{have} of {self.size} bytes are here; apply again and the rest is fetched")
        self.hashed = True
        got = sha256_of(self.part)
        if got != self.sha256:
            self.discard()
            raise RefusedError(
                f"it has sha256 {got}, expected {self.sha256}; it was thrown away and nothing was linked"
            )
        with self.part.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise RefusedError("its hash is right, but it is no GGUF file: the spec pins the wrong content")
        os.chown(self.part, *OWNER)
        self.part.chmod(FILE_MODE)
        sync(self.part)
        self.path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.part.replace(self.path)
        sync(self.path.parent)
        self.discard()

    def discard(self) -> None:
        """Remove what was on the way."""
        self.part.unlink(missing_ok=True)
        self.part.with_name(f"{self.part.name}.etag").unlink(missing_ok=True)

    def settle(self) -> bool:
        """Owner, mode and links; True when one of them changed."""
        changed = False
        if self.path.exists():
            info = self.path.stat(follow_symlinks=False)
            changed = (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)) != (*OWNER, FILE_MODE)
            if changed and not self.dry:
                os.chown(self.path, *OWNER)
                self.path.chmod(FILE_MODE)
        for link in self.links:
            changed = relative_link(link, self.path, self.dry) or changed
        return changed


def _run(module: AnsibleModule) -> dict[str, Any]:
    placer = Placer(module.params, module.check_mode)
    present = placer.right()
    changed = False
    if module.params["state"] == "present":
        changed = not present
        if not present and not module.check_mode:
            if placer.origin["kind"] == "host-path":
                placer.take_from_host()
            placer.place()
        changed = placer.settle() or changed
    return {
        "changed": changed,
        "present": present or (changed and not module.check_mode),
        "part": str(placer.part),
        "have": placer.have(),
        "hashed": placer.hashed,
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["checked", "present"], "default": "present"},
            "model": {"type": "dict", "required": True},
            "incoming": {"type": "path", "required": True},
            "record": {"type": "path", "default": "/var/lib/llamarig/record.json"},
            "deep": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)
    links = module.params["model"].get("links") or [module.params["model"].get("path", "")]
    name = Path(links[0]).name
    try:
        module.exit_json(**_run(module))
    except RefusedError as error:
        module.fail_json(msg=f"model {name}: {error}")
    except (OSError, KeyError, ValueError) as error:
        module.fail_json(msg=f"model {name} could not be put in place: {error}")


if __name__ == "__main__":
    main()
