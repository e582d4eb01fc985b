"""What changes every host of a project at once keeps rollouts away while it works, and waits for theirs."""

from __future__ import annotations

import errno

_READ_ONLY = {errno.EROFS, errno.EACCES}


def hold_fleet(command: str) -> None:
    """Hold the project's fleet until this command has ended.

    It would walk past the waves of a rollout; single hosts have locks of their own. In a project in which nobody may
    write nobody can begin a rollout, and nothing is held. Raises :class:`~llamarig.errors.RigError` naming the holder.
    """
    from llamarig.cli.context import project_root, until_the_end
    from llamarig.fleet.rollout.lock import refuse_while_rolling, whole_fleet

    root = project_root()
    refuse_while_rolling(root)
    try:
        until_the_end(whole_fleet(root, command))
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise
