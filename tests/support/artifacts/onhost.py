"""Import what runs on hosts: modules and their shared code, as Ansible would assemble them there."""

from __future__ import annotations

import sys
from pathlib import Path

import ansible.module_utils

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"

if str(PLUGINS / "module_utils") not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(str(PLUGINS / "module_utils"))
if str(PLUGINS / "modules") not in sys.path:
    sys.path.append(str(PLUGINS / "modules"))
