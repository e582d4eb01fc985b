"""The test lab: real Debian 13 machines in containers, driven over SSH as a user's host would be.

systemd is PID 1, sshd listens on an address of the machine's own, and root logs in with a key
that was made for this lab. Nothing of llamarig itself is in here: the lab makes
bare machines, and breaks them on request.
"""

from lab.host import Host
from lab.lab import Lab
from lab.packages import LabError

__all__ = ["Host", "Lab", "LabError"]
