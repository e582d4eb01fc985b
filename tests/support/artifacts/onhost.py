"""Import what runs on hosts: modules and their shared code, as Ansible would assemble them there."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import ansible.module_utils

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"

if str(PLUGINS / "module_utils") not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(str(PLUGINS / "module_utils"))
if str(PLUGINS / "modules") not in sys.path:
    sys.path.append(str(PLUGINS / "modules"))


def load(path: str) -> ModuleType:
    """A plugin by its path below plugins/; an action plugin may bear the name of its module, so no plain import."""
    name = "onhost_" + path.replace("/", "_").removesuffix(".py")
    spec = importlib.util.spec_from_file_location(name, PLUGINS / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
