# Copyright (c) llamarig contributors. Apache-2.0 (see LICENSE).
"""Specs as an Ansible inventory."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

# In a checkout the package lies beside the plugins. One that is installed, or that PYTHONPATH names, is found first.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from llamarig import __version__
from llamarig.converge.connection import read_password
from llamarig.converge.controller import controller_facts, new_run
from llamarig.converge.private import private_place
from llamarig.errors import RigError, RigErrors

DOCUMENTATION = r"""
name: llamarig
short_description: Host specs as an inventory
description:
  - Reads the specs of a project (C(inventory/*.yml)); every host gets its connection, the wanted state and the
    probe list as variables.
  - The environment variable C(LLAMARIG_OVERLAY) names an overlay that is laid on the spec of the host it is for.
  - A C(*.llamarig.json) file carries hosts that the llamarig command has planned already.
author: llamarig contributors
options: {}
"""


class InventoryModule(BaseInventoryPlugin):
    NAME = "llamarig"

    def verify_file(self, path: str) -> bool:
        return super().verify_file(path) and path.endswith((".yml", ".yaml", ".llamarig.json"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path, cache)
        _refuse_kept_files()
        try:
            hosts = _prepared(Path(path)) if path.endswith(".llamarig.json") else _from_specs(Path(path).resolve())
        except (RigError, RigErrors) as error:
            raise AnsibleParserError(str(error)) from error
        common = {"llamarig_run": _run(), "llamarig_controller": controller_facts(), "llamarig_version": __version__}
        for host, variables in hosts.items():
            self.inventory.add_host(host)
            for name, value in {**common, **_with_password(variables)}.items():
                # Plain values: nothing in a spec is ever a template.
                self.inventory.set_variable(host, name, value)


def _refuse_kept_files() -> None:
    """No variable of a host wins over this setting, and with it keys would stay on the host in module files."""
    if constants.config.get_config_value("DEFAULT_KEEP_REMOTE_FILES"):
        raise AnsibleParserError(
            "ANSIBLE_KEEP_REMOTE_FILES (keep_remote_files) would leave keys on the host; unset it and run again"
        )


_run = cache(new_run)


def _with_password(variables: dict[str, Any]) -> dict[str, Any]:
    """The become password goes from its file into memory; it is in no inventory that is written down."""
    path = variables.get("llamarig_become_password_file")
    if path is None:
        return variables
    return {**variables, "ansible_become_password": read_password(path)}


def _prepared(path: Path) -> dict[str, Any]:
    hosts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["prepared"]
    return hosts


def _project_root(path: Path) -> Path:
    """The directory that holds ``inventory/``, for a spec anywhere below it."""
    for parent in path.parents:
        if parent.name == "inventory":
            return parent.parent
    return path.parent


@cache
def _private() -> Path:
    """Where pinned host keys are written; gone when this process ends, not when a forked worker does."""
    path, owner = private_place(), os.getpid()

    def clean() -> None:
        if os.getpid() == owner:
            shutil.rmtree(path, ignore_errors=True)

    atexit.register(clean)
    return path


@cache
def _loaded(root: Path) -> list[Any]:
    from llamarig.spec.load import load_project  # noqa: PLC0415 - a prepared inventory does without, and is faster
    from llamarig.spec.overlay import read_overlay  # noqa: PLC0415 - as for the line above

    named = os.environ.get("LLAMARIG_OVERLAY")
    return list(load_project(root, read_overlay(Path(named).resolve()) if named else None).valid(None))


def _from_specs(path: Path) -> dict[str, Any]:
    from llamarig.converge.project import project_variables  # noqa: PLC0415 - a prepared inventory plans nothing

    root = _project_root(path)
    mine = [host for host in _loaded(root) if Path(host.path).resolve() == path]
    return {host.host: project_variables(root, host, _private()) for host in mine}
