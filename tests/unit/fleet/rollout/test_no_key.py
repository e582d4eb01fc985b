"""A key of a service lies in its own file alone: not in what a rollout keeps, tells or shows, nor in a saved bundle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from llamarig.cli import main
from llamarig.converge.apply import Options
from llamarig.converge.private import private_directory
from llamarig.fleet.rollout import session
from llamarig.fleet.rollout.ansible import AnsibleHands
from llamarig.fleet.rollout.session import Session, Start
from llamarig.fleet.rollout.state import Wave
from tests.support.doctor_bundles import bundle
from tests.unit.fleet.rollout.stand_in import Fleet, Machinery

ROOT = Path(__file__).resolve().parents[4]
KEY = "test-key-of-a-rollout-0123456789abcdefghij"


@dataclass
class Keeping(Fleet):
    """The stand-in, which keeps what the real layer keeps."""

    root: Path = Path()
    place: Path = Path()

    def keep(self, hosts: Sequence[str]) -> None:
        with private_directory() as private:
            real = AnsibleHands(self.root, self.place, private, Options(), lambda _event: None)
            real.load(hosts)
            real.keep(hosts)
        super().keep(hosts)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "inventory").mkdir(parents=True)
    (root / "secrets").mkdir(mode=0o700)
    (root / "secrets/chat.keys").write_text(f"# fleet\n{KEY}\n")
    (root / "secrets/chat.keys").chmod(0o600)
    spec = yaml.safe_load((ROOT / "inventory/demo.yml").read_text())
    spec |= {"host": "a", "connection": {"address": "192.0.2.1"}}
    spec["services"]["chat"]["listen"]["keys"] = {"file": "secrets/chat.keys"}
    (root / "inventory/a.yml").write_text(yaml.safe_dump(spec))
    return root


def holding(root: Path) -> list[str]:
    """Files below a directory that have the key."""
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*"))
        if path.is_file() and KEY in path.read_text(errors="replace")
    ]


def rolled(project: Path) -> Path:
    """Roll out, and write the page of it; the rollout's directory."""
    places: list[Path] = []

    def hands(root: Path, place: Path, _private: Path) -> Keeping:
        places.append(place)
        return Keeping({"a": Machinery()}, root=root, place=place)

    session.start(Session(project, make_hands=hands), Start([Wave("canary", ["a"])], {"canary": 1, "failures": 0}, {}))
    assert main._run(["-C", str(project), "rollout", "status", "--html", str(project / "page.html")]) == 0
    return places[0]


def test_no_key_is_in_what_a_rollout_leaves(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = rolled(project)
    for path in (place / "journal.jsonl", place / "wanted/a.json", project / "page.html"):
        assert path.stat().st_size > 0
    # What was kept knows of the key's file, and where it goes.
    assert "secrets/chat.keys" in (place / "wanted/a.json").read_text()
    assert holding(project) == ["secrets/chat.keys"]
    said = capsys.readouterr()
    assert KEY not in said.out + said.err


def test_a_key_in_another_place_would_be_found(project: Path) -> None:
    place = rolled(project)
    with (place / "journal.jsonl").open("a") as stream:
        stream.write(f'{{"reason": "{KEY}"}}\n')
    assert holding(project) == [f"rollouts/{place.name}/journal.jsonl", "secrets/chat.keys"]


def test_no_key_is_in_a_saved_bundle(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = bundle(kernel_log=f"[ 1.0] NVRM: llama-server --api-key {KEY}")
    assert KEY in str(said)
    monkeypatch.setattr("llamarig.converge.collect.collect_hosts", lambda *_given, **_named: {"a": said})
    saved = project / "a.json"
    main._run(["-C", str(project), "doctor", "a", "--save", str(saved)])
    assert "NVRM: llama-server" in saved.read_text()
    assert holding(project) == ["secrets/chat.keys"]
