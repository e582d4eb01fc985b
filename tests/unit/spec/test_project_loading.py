"""Projects: which files count, what a fleet adds, and who is told of which error."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamarig.errors import ExitCode, RigError, RigErrors
from llamarig.spec.load import load_project
from tests.support.spec_files import spec, write


def test_an_inventory_folder_is_searched_in_depth_and_alone(tmp_path: Path) -> None:
    write(tmp_path / "stray.yml", spec("stray"))
    write(tmp_path / "inventory/a.yml", spec("a"))
    write(tmp_path / "inventory/room/b.yml", spec("b"))
    write(tmp_path / "inventory/notes.txt", "no spec")
    project = load_project(tmp_path)
    assert [host.host for host in project.hosts] == ["a", "b"]
    assert project.headers_dir == tmp_path / "headers"
    assert project.patches_dir == tmp_path / "patches"


def test_a_file_with_the_other_suffix_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    path = write(tmp_path / "inventory/a.yaml", spec("a"))
    project = load_project(tmp_path)
    assert project.hosts == []
    assert [(error.path, error.fix) for error in project.errors] == [(path, "rename it to a.yml")]
    with pytest.raises(RigErrors):
        project.valid(None)


def test_without_an_inventory_the_directory_itself_counts(tmp_path: Path) -> None:
    write(tmp_path / "a.yml", spec("a"))
    write(tmp_path / "below/b.yml", spec("b"))
    assert [host.host for host in load_project(tmp_path).hosts] == ["a"]


def test_defaults_merge_maps_and_replace_lists_and_values(tmp_path: Path) -> None:
    fleet = """schema-version: 1
defaults:
  labels: {room: lab, wave: first}
  services:
    chat: {parallel: 2, unsafe-args: [--verbose-prompt], listen: {port: 9000, cors-origins: ["https://a"]}}
"""
    write(tmp_path / "inventory/fleet.yml", fleet)
    own = spec("a").replace("listen: {port: 8080}", 'listen: {port: 8081, cors-origins: ["https://b"]}')
    write(tmp_path / "inventory/a.yml", own + "labels: {wave: last}\n")
    [host] = load_project(tmp_path).hosts
    assert host.spec is not None
    assert host.spec.labels == {"room": "lab", "wave": "last"}
    chat = host.spec.services["chat"]
    assert (chat.parallel, chat.context, chat.unsafe_args) == (2, 4096, ["--verbose-prompt"])
    assert (chat.listen.port, chat.listen.cors_origins) == (8081, ["https://b"])


def test_nearer_defaults_lie_on_those_above_and_count_below_only(tmp_path: Path) -> None:
    write(tmp_path / "inventory/fleet.yml", "schema-version: 1\ndefaults: {labels: {room: hall, site: here}}\n")
    write(tmp_path / "inventory/lab/fleet.yml", "schema-version: 1\ndefaults: {labels: {room: lab}}\n")
    write(tmp_path / "inventory/lab/deep/a.yml", spec("a"))
    write(tmp_path / "inventory/b.yml", spec("b"))
    labels = {host.host: host.spec.labels for host in load_project(tmp_path).hosts if host.spec is not None}
    assert labels == {"a": {"room": "lab", "site": "here"}, "b": {"room": "hall", "site": "here"}}


def test_an_error_names_the_file_that_set_the_value(tmp_path: Path) -> None:
    fleet = write(
        tmp_path / "inventory/fleet.yml",
        "schema-version: 1\ndefaults:\n  services:\n    chat:\n      context: 1\n      contxt: 2\n",
    )
    text = spec("a").replace("context: 4096, ", "").replace("port: 8080", "port: 80")
    own = write(tmp_path / "inventory/a.yml", text)
    [host] = load_project(tmp_path).hosts
    places = [(error.path, error.line) for error in host.errors]
    assert places == [(own, 12), (fleet, 5), (fleet, 6)]


@pytest.mark.parametrize(
    ("fleet", "line", "words"),
    [
        ("schema-version: 1\ndefaults: {}\nhosts: []\n", 3, "`hosts` is no key of a fleet file"),
        ("schema-version: 2\ndefaults: {}\n", 1, "`schema-version` must be 1"),
        ("schema-version: 1\n", 1, "`defaults` must be a mapping"),
        ("schema-version: 1\ndefaults: [a]\n", 2, "`defaults` must be a mapping"),
        ("schema-version: 1\ndefaults:\n  host: a\n", 3, "a fleet has no `host`"),
        ("- a\n", 1, "a fleet file is a mapping"),
        ("a: [\n", 2, "opened and never"),
    ],
)
def test_a_broken_fleet_file_is_an_error_of_its_hosts_and_of_the_project(
    tmp_path: Path, fleet: str, line: int, words: str
) -> None:
    path = write(tmp_path / "inventory/fleet.yml", fleet)
    write(tmp_path / "inventory/a.yml", spec("a"))
    project = load_project(tmp_path)
    for errors in (project.errors, project.hosts[0].errors):
        hits = [error for error in errors if words in error.message]
        assert [(hit.path, hit.line) for hit in hits] == [(path, line)]
    assert project.hosts[0].spec is None


def test_a_host_name_belongs_to_one_file(tmp_path: Path) -> None:
    write(tmp_path / "inventory/a.yml", spec("same"))
    write(tmp_path / "inventory/b.yml", spec("same"))
    write(tmp_path / "inventory/same.yml", "a: [\n")
    project = load_project(tmp_path)
    used = [host for host in project.hosts if any("also used by" in error.message for error in host.errors)]
    assert [host.path.name for host in used] == ["a.yml", "b.yml"]
    assert all(error.line == 2 for host in used for error in host.errors)
    assert all(host.spec is None for host in project.hosts)


def test_valid_gives_the_named_hosts_in_order_once(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / f"inventory/{name}.yml", spec(name))
    project = load_project(tmp_path)
    assert [host.host for host in project.valid(["c", "a", "c"])] == ["c", "a"]
    assert [host.host for host in project.valid(None)] == ["a", "b", "c"]


def test_a_broken_spec_does_not_stop_the_others(tmp_path: Path) -> None:
    write(tmp_path / "inventory/a.yml", spec("a"))
    write(tmp_path / "inventory/b.yml", spec("b").replace("4096", "1").replace("8080", "80"))
    project = load_project(tmp_path)
    assert [host.host for host in project.valid(["a"])] == ["a"]
    with pytest.raises(RigErrors) as caught:
        project.valid(None)
    assert len(caught.value.errors) == 2
    assert {error.where for error in caught.value.errors} == {f"{tmp_path}/inventory/b.yml:12"}
    assert caught.value.code is ExitCode.BAD_INPUT


def test_an_unknown_host_names_near_ones(tmp_path: Path) -> None:
    write(tmp_path / "inventory/atelier.yml", spec("atelier"))
    with pytest.raises(RigError, match="did you mean atelier"):
        load_project(tmp_path).valid(["ateiler"])
    with pytest.raises(RigError, match="known hosts: atelier"):
        load_project(tmp_path).valid(["zzz"])


def test_an_empty_project_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="llamarig init"):
        load_project(tmp_path).valid(None)
    with pytest.raises(RigError, match="-C"):
        load_project(tmp_path).valid(["a"])


@pytest.mark.parametrize("text", ["- a\n", "just text\n", "12\n"])
def test_a_document_that_is_no_mapping_is_an_error(tmp_path: Path, text: str) -> None:
    write(tmp_path / "inventory/a.yml", text)
    [host] = load_project(tmp_path).hosts
    assert host.host == "a"
    assert "mapping" in host.errors[0].message
