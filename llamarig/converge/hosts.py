"""The variables that Ansible sees for a host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.compare.probe_list import probe_list
from llamarig.converge.connection import connection_variables
from llamarig.converge.wanted import spec_of
from llamarig.render.wanted import Wanted

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost


def host_variables(
    root: Path, loaded: LoadedHost, wanted: Wanted, private: Path, *, deep: bool = False
) -> dict[str, Any]:
    """Connection, wanted state and probe list of one host.

    ``root`` is the project (origin of relative paths), ``private`` a directory
    of mode 0700 for pinned host keys; ``deep`` hashes releases and models again.
    """
    spec = spec_of(loaded)
    return {
        **connection_variables(spec, root, private),
        "llamarig_project": str(root),
        "llamarig_os": {"distribution": spec.os.distribution, "release": spec.os.release},
        # As llamarig.compare.reboot.Policy names them.
        "llamarig_reboot_policy": {
            "reboot": spec.maintenance.reboot,
            "idle_minutes": spec.maintenance.idle_minutes,
            "local": spec.connection.type == "local",
        },
        "llamarig_wanted": wanted.to_json(),
        "llamarig_probe": {**probe_list(wanted), "deep": deep},
    }
