"""Start one of our Ansible modules as a plain process: ``python run_module.py NAME <arguments.json``."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import ansible.module_utils
from ansible.module_utils import basic

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"

if __name__ == "__main__":
    ansible.module_utils.__path__.append(str(PLUGINS / "module_utils"))
    name = sys.argv[1]
    basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": json.load(sys.stdin)}).encode()
    basic._ANSIBLE_PROFILE = "legacy"
    sys.argv = [name]
    runpy.run_path(str(PLUGINS / "modules" / f"{name}.py"), run_name="__main__")
