"""Our modules' shared parts, importable in a test as on a host."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

import ansible.module_utils

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"


def part(name: str) -> ModuleType:
    """A file of plugins/module_utils under the name that the modules import it by."""
    place = str(PLUGINS / "module_utils")
    if place not in ansible.module_utils.__path__:
        ansible.module_utils.__path__.append(place)
    return importlib.import_module(f"ansible.module_utils.{name}")


def module(name: str) -> ModuleType:
    """A file of plugins/modules, imported and not started."""
    part("rig_files")
    spec = importlib.util.spec_from_file_location(f"tested_{name}", PLUGINS / "modules" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
