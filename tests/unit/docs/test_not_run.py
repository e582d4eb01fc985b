"""What the tests do not show, as a page that follows from spec and overlay."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from llamarig.errors import RigErrors
from llamarig.spec.load import load_project
from llamarig.spec.overlay import read_overlay
from llamarig.spec.tree import dotted
from llamarig.spec.unlocked import unlocked_places
from tests.support.docs import not_run
from tests.support.tiny_models import Tiny, write

REWRITE = "run `python -m tests.support.docs.not_run`"


def test_the_page_is_what_spec_and_overlay_say() -> None:
    assert not_run.PAGE.read_text(encoding="utf-8") == not_run.text(), REWRITE


def test_every_entry_is_on_the_page_with_its_reason() -> None:
    page, overlay = not_run.text(), read_overlay(not_run.OVERLAY)
    for each in overlay.replaced:
        assert f"| `{dotted(each.key)}` |" in page
        assert " ".join(each.reason.split()) in page
    for lacking in overlay.lacking:
        assert " ".join(lacking.what.split()) in page


def test_a_changed_spec_makes_the_page_stale(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yml"
    spec.write_text(not_run.SPEC.read_text().replace("610.57.04, flavour", "611.00.01, flavour"))
    assert not_run.text(spec) == not_run.text(), "the driver's version is not replaced, so it is not on the page"
    spec.write_text(not_run.SPEC.read_text().replace("version: 12.9.86", "version: 12.9.99"))
    assert not_run.text(spec) != not_run.text()


def test_an_entry_without_a_reason_makes_no_page(tmp_path: Path) -> None:
    bare = tmp_path / "overlay.yml"
    lines = not_run.OVERLAY.read_text().splitlines()
    bare.write_text("\n".join(line for line in lines if "reason: where the tests put" not in line))
    with pytest.raises(RigErrors) as caught:
        not_run.text(overlay=bare)
    assert "`reason` is missing" in str(caught.value)


def test_with_the_overlay_the_reference_spec_is_valid_and_pinned(tmp_path: Path) -> None:
    (tmp_path / "inventory").mkdir()
    shutil.copy(not_run.SPEC, tmp_path / "inventory")
    host = load_project(tmp_path, read_overlay(not_run.OVERLAY)).named("dual-gpu-256k")
    assert host.errors == []
    assert host.spec is not None
    assert list(unlocked_places(host.spec)) == []
    bare = load_project(tmp_path).named("dual-gpu-256k")
    assert bare.spec is not None
    assert list(unlocked_places(bare.spec)) != []
    assert host.spec.gpus == bare.spec.gpus
    assert host.spec.engine.architectures == bare.spec.engine.architectures


def test_the_example_of_an_overlay_is_one(tmp_path: Path) -> None:
    page = (not_run.ROOT / "docs/how-to/overlays.md").read_text(encoding="utf-8")
    example = tmp_path / "staging.yml"
    example.write_text(page.partition("```yml overlay\n")[2].partition("```")[0])
    overlay = read_overlay(example)
    assert [dotted(each.key) for each in overlay.replaced][:2] == ["gpus.upper.model", "engine.architectures"]
    assert all(each.reason for each in overlay.replaced)
    host = load_project(not_run.ROOT, overlay).named("rtx-5090")
    assert host.errors == []
    assert host.spec is not None
    assert host.spec.gpus["upper"].model == "rtx-4090"
    assert host.spec.services["chat"].sampling == "engine"


def test_the_stand_in_model_is_the_one_that_the_tests_write(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.gguf", Tiny(trained_context=262144))
    overlay = read_overlay(not_run.OVERLAY)
    model = next(each.value.data() for each in overlay.replaced if each.key == ("models", "qwen"))
    assert model["size"] == path.stat().st_size
    assert model["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
