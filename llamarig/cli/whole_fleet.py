"""What changes every host of a project at once keeps rollouts away while it works, and waits for theirs."""

from __future__ import annotations

import errno

_READ_ONLY = {errno.EROFS, errno.EACCES}


def hold_fleet(command: str) -> None:
    """Hold the project's fleet until this command has ended.

    It would walk past the waves of a rollout; single hosts have locks of their own. Where this user may not write into
    the project nothing is held, and where there is no project nothing is made: what comes next says so.
    Raises :class:`~llamarig.errors.RigError` naming the holder, and OSError when nobody can tell whether there is one.
    """
    from llamarig.cli.context import project_root, until_the_end
    from llamarig.fleet.rollout.lock import refuse_while_rolling, whole_fleet
    from llamarig.spec.load import is_project

    root = project_root()
    if not is_project(root):
        return
    refuse_while_rolling(root)
    try:
        until_the_end(whole_fleet(root, command))
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise
