"""Where llamarig's own data lies: roles, playbooks, plugins and templates.

In a checkout they stand beside the package; an installed wheel carries them
under ``llamarig/data``.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_root() -> Path:
    """The directory that holds ``ansible.cfg``, ``roles``, ``playbooks``, ``plugins`` and ``templates``."""
    installed = _PACKAGE / "data"
    return installed if installed.is_dir() else _PACKAGE.parent
