"""What a second apply costs over ``ansible -m ping``, on hosts that are already what their specs say.

That nothing was done is asserted, not assumed.
"""

from __future__ import annotations

import sys

from lab import LabError
from lab.report import actions_of

from benchmarks.over_ping import Fleet, converged, over_ping

BAR = 3.5
HOSTS = 4


def second_apply(fleet: Fleet) -> float:
    """Seconds of an apply that has nothing to do; :class:`LabError` when it did something."""
    ran = fleet.project.rig("apply", *(host.name for host in fleet.hosts), "--yes", "--json").ok()
    actions = actions_of(ran.data)
    if actions:
        raise LabError(f"this apply was to do nothing, and did {actions}")
    changed = [report.get("changed", 0) for report in ran.data["hosts"]]
    if any(changed):
        raise LabError(f"this apply was to change nothing, and changed {changed}")
    return ran.seconds


def main() -> int:
    """Make the hosts, measure one and all of them; 1 when a bar is missed."""
    with converged("bench", HOSTS) as fleet:
        met = [over_ping("second apply", BAR, some, second_apply) for some in (fleet.first(1), fleet)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
