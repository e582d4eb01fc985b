"""Overlays: values that stand in for those of one host's spec, told by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamarig.errors import RigErrors
from llamarig.spec.load import load_project
from llamarig.spec.overlay import read_overlay
from tests.support.overlays import ENTRY, HEAD, project_of
from tests.support.spec_files import write


def problems(path: Path) -> list[str]:
    with pytest.raises(RigErrors) as caught:
        read_overlay(path)
    return [f"{error.where.rpartition(':')[2]}: {error.what}" for error in caught.value.errors]


def test_values_are_replaced_added_and_taken_away_on_one_host_alone(tmp_path: Path) -> None:
    root = project_of(tmp_path)
    text = HEAD + "replace:\n" + ENTRY
    text += "  - {key: services.chat.listen, value: {port: 9000, address: 127.0.0.1}, reason: taken, unproven: it}\n"
    text += "  - {key: engine.source.sha256, value: null, reason: none}\n"
    text += "  - {key: engine.source.archive, value: x.tar.gz, reason: offline}\n"
    text += "  - {key: engine.source.sdist, value: null, reason: offline}\n"
    text = text.replace("  - {key: engine.source.sha256, value: null, reason: none}\n", "")
    overlay = read_overlay(write(root / "overlay.yml", text))
    box, other = load_project(root, overlay).valid(None)
    assert box.spec is not None
    assert other.spec is not None
    assert box.spec.services["chat"].context == 2048
    assert box.spec.services["chat"].listen.port == 9000
    assert (box.spec.engine.source.archive, box.spec.engine.source.sdist) == ("x.tar.gz", None)
    assert other.spec.services["chat"].context == 4096
    assert overlay.replaced[1].unproven == "it"


def test_a_wrong_value_is_told_with_the_line_of_the_overlay(tmp_path: Path) -> None:
    root = project_of(tmp_path)
    path = write(root / "overlay.yml", HEAD + "replace:\n" + ENTRY.replace("2048", "much"))
    [error] = load_project(root, read_overlay(path)).named("box").errors
    assert (error.path, error.line) == (path, 4)


@pytest.mark.parametrize("key", ["services.talk.context", "services.chat.port.x", "engine.commit.x"])
def test_a_key_that_the_spec_does_not_have_is_refused(tmp_path: Path, key: str) -> None:
    root = project_of(tmp_path)
    path = write(root / "overlay.yml", HEAD + "replace:\n" + ENTRY.replace("services.chat.context", key))
    [error] = load_project(root, read_overlay(path)).named("box").errors
    assert (error.path, error.line) == (path, 4)
    assert f"the overlay replaces `{key}`, and" in error.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- 1\n", "1: an overlay is a mapping"),
        ("host: box\nreplace:\n" + ENTRY, "1: `schema-version` must be 1"),
        ("schema-version: 1\nreplace:\n" + ENTRY, "1: an overlay names the `host` whose spec it is for"),
        (HEAD, "1: the overlay replaces nothing"),
        (HEAD + "services: {}\nreplace:\n" + ENTRY, "3: `services` is no key of an overlay"),
        (HEAD + "replace:\n  - 1\n", "4: this is no mapping"),
        (HEAD + "replace:\n  - {key: a.b, value: 1}\n", "4: `reason` is missing"),
        (HEAD + "replace:\n  - {key: a.b, reason: x}\n", "4: `value` is missing: nothing says what stands in"),
        (HEAD + "replace:\n  - {key: a.b, value: 1, reason: [x]}\n", "4: `reason` is no text"),
        (HEAD + "replace:\n  - {key: a.b, value: 1, reason: x, why: y}\n", "4: `why` is no key here"),
        (HEAD + "replace:\n  - {key: 'a[0]', value: 1, reason: x}\n", "4: `a[0]` is no path of a key"),
        (HEAD + "replace:\n  - {key: host, value: b, reason: x}\n", "4: `host` cannot be replaced"),
        (
            HEAD + "replace:\n  - {key: a, value: {}, reason: x}\n  - {key: a.b, value: 1, reason: x}\n",
            "5: `a.b` and `a` replace the same value",
        ),
        (HEAD + "replace:\n" + ENTRY + "lacking:\n  - {what: a card}\n", "6: `instead` is missing"),
    ],
)
def test_the_form_is_checked(tmp_path: Path, text: str, told: str) -> None:
    assert told in problems(write(tmp_path / "overlay.yml", text))


def test_one_among_the_specs_is_told_as_what_it_is(tmp_path: Path) -> None:
    root = project_of(tmp_path)
    path = write(root / "inventory/staging.yml", HEAD + "replace:\n" + ENTRY)
    project = load_project(root)
    [problem] = project.named("staging").errors
    assert (problem.path, problem.message) == (path, "this looks like an overlay, and files here are host specs")
    assert problem.line == 3
    assert project.named("box").errors == []
