"""Where the ``llamarig`` command begins: Ctrl-C ends it without a traceback while it still imports."""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""What a shell expects of a command that Ctrl-C ended: 128 and the number of SIGINT."""


def main() -> None:
    """Entry point; ends the process with the documented exit code."""
    try:
        from llamarig.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
