"""The inventory as plain Ansible reads it, with nothing said about where the package lies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def listed(directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH" and not key.startswith("ANSIBLE_")}
    command = [sys.executable, "-m", "ansible", "inventory", "--inventory", str(ROOT / "inventory"), "--list"]
    return subprocess.run(
        command,
        cwd=directory,
        env=kept | {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_checkout_needs_no_pythonpath(tmp_path: Path) -> None:
    done = listed(tmp_path)
    assert done.returncode == 0, done.stderr
    hosts = json.loads(done.stdout)["_meta"]["hostvars"]
    assert {"demo", "dual-gpu-256k"} <= set(hosts)
    assert hosts["demo"]["llamarig_wanted"]["host"] == {"__ansible_unsafe": "demo"}, "never a template"


def test_another_package_that_is_named_is_found_first(tmp_path: Path) -> None:
    planted = tmp_path / "llamarig"
    planted.mkdir()
    (planted / "__init__.py").write_text("raise ImportError('the planted one')\n")
    done = listed(tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert "the planted one" in done.stderr
