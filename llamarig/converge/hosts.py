"""The variables that Ansible sees for a host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.compare.probe_list import probe_list
from llamarig.converge.connection import connection_variables, read_password
from llamarig.converge.wanted import spec_of
from llamarig.render.site import mirror_of, pushed_source, system_of
from llamarig.render.wanted import Wanted

if TYPE_CHECKING:
    from llamarig.spec.host import HostSpec
    from llamarig.spec.load import LoadedHost


def host_variables(
    root: Path, loaded: LoadedHost, wanted: Wanted, private: Path, *, deep: bool = False
) -> dict[str, Any]:
    """Connection, wanted state and probe list of one host.

    ``root`` is the project (origin of relative paths), ``private`` a directory
    of mode 0700 for pinned host keys; ``deep`` hashes releases and models again. Raises
    :class:`~llamarig.errors.RigError` when the spec has errors, or its become password cannot be read.
    """
    spec = spec_of(loaded)
    connection = connection_variables(spec, root, private)
    if (password_file := connection.get("llamarig_become_password_file")) is not None:
        # The inventory plugin reads it again, but there one bad file would end the run of all hosts.
        read_password(password_file)
    return {
        **connection,
        "llamarig_project": str(root),
        "llamarig_os": {"distribution": spec.os.distribution, "release": spec.os.release},
        "llamarig_reboot_policy": reboot_policy(spec),
        "llamarig_mirror": {
            **mirror_of(spec, root),
            "system": system_of(spec),
            "source": pushed_source(spec, root),
        },
        "llamarig_transfer": {"limit_mib_s": spec.transfer.limit_mib_s or 0},
        "llamarig_wanted": wanted.to_json(),
        "llamarig_probe": {**probe_list(wanted), "deep": deep},
    }


def reboot_policy(spec: HostSpec) -> dict[str, Any]:
    """What the spec says of reboots, as :meth:`llamarig.compare.reboot.Policy.of` reads it."""
    own = spec.maintenance
    return {
        "reboot": own.reboot,
        "idle_minutes": own.idle_minutes,
        "local": spec.connection.type == "local",
        "window": [own.window] if isinstance(own.window, str) else own.window or [],
        "timezone": own.timezone,
    }
