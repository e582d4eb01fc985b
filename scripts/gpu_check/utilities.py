"""The code that llamarig runs on hosts, for use here: it imports itself under Ansible's name."""

from __future__ import annotations

import importlib
from typing import Any

import ansible.module_utils

from llamarig.converge.jobs import utilities


def utility(name: str) -> Any:
    """The module ``plugins/module_utils/NAME.py``."""
    place = str(utilities())
    if place not in ansible.module_utils.__path__:
        ansible.module_utils.__path__.append(place)
    return importlib.import_module(f"ansible.module_utils.{name}")
