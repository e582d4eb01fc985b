"""Where releases are built: what a spec may say, who shares a build, and that each is made once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamarig.compare.content import release as release_actions
from llamarig.compare.load import wanted_from_json
from llamarig.compare.view import view_of
from llamarig.converge import apply
from llamarig.converge.build import container, ensure, image, place, play, turn
from llamarig.converge.build.engine import engine
from llamarig.converge.decide import Decision
from llamarig.converge.store.releases import Held, Releases
from llamarig.errors import ExitCode, RigError, RigErrors
from llamarig.plan import plan_project
from llamarig.render import wanted_state
from llamarig.render.build import copied, release
from llamarig.render.build_place import wanted_build
from llamarig.spec.load import LoadedHost, Project, load_project
from llamarig.spec.overlay import read_overlay

ROOT = Path(__file__).resolve().parents[3]
BUILDER = {"where": "builder", "builder": "atelier"}
CONTAINER = {"where": "container", "image": "debian:13"}
Make = Callable[[dict[str, Any]], Project]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A project of demo hosts, by name what `engine.build` of each says (``os`` apart)."""

    def of(hosts: dict[str, Any]) -> Project:
        base = yaml.safe_load((ROOT / "inventory/demo.yml").read_text())
        for name, said in hosts.items():
            build = dict(said)
            system = {"os": build.pop("os")} if "os" in build else {}
            spec = base | system | {"host": name, "engine": base["engine"] | {"build": build}}
            (tmp_path / f"{name}.yml").write_text(yaml.safe_dump(spec))
        return load_project(tmp_path)

    return of


def wrong(project: Project, host: str) -> list[str]:
    return [f"{problem.line}: {problem.message} | {problem.fix}" for problem in project.named(host).errors]


def test_a_builder_is_a_host_of_the_project(make: Make) -> None:
    project = make({"atelier": {}, "desk": BUILDER, "lost": {"where": "builder", "builder": "attelier"}})
    assert project.named("atelier").errors == project.named("desk").errors == []
    [said] = wrong(project, "lost")
    line = (project.root / "lost.yml").read_text().splitlines().index("    builder: attelier") + 1
    assert said == f"{line}: no spec names the builder 'attelier' | did you mean `atelier`?"
    with pytest.raises(RigErrors):
        project.valid(["lost"])


def test_a_host_is_not_its_own_builder(make: Make) -> None:
    project = make({"atelier": BUILDER, "desk": BUILDER})
    [said] = wrong(project, "atelier")
    assert said.endswith("atelier names itself as its builder | a host that builds for itself has `where: host`")
    assert wrong(project, "desk") == []


def test_a_builder_builds_by_itself(make: Make) -> None:
    project = make({"atelier": {"where": "builder", "builder": "forge"}, "desk": BUILDER, "forge": {}})
    [said] = wrong(project, "desk")
    assert "the builder atelier has its own release from forge, and does not build" in said
    assert said.endswith("| name forge here, or write `where: host` for atelier")
    assert wrong(project, "atelier") == []


def test_hosts_that_name_each_other_are_both_told(make: Make) -> None:
    project = make({"atelier": {"where": "builder", "builder": "desk"}, "desk": BUILDER})
    assert [len(wrong(project, name)) for name in ("atelier", "desk")] == [1, 1]


def test_a_builder_may_have_its_own_name_from_the_defaults_of_its_fleet(make: Make) -> None:
    project = make(
        {"atelier": {"where": "host", "builder": "atelier"}, "desk": {"where": "host", "builder": "atelier"}}
    )
    assert project.named("atelier").warnings == project.named("atelier").errors == []
    [warning] = project.named("desk").warnings
    assert warning.message == "`builder` is not used with `where: host`"


def test_a_builder_runs_the_same_system(make: Make) -> None:
    project = make({"atelier": {"os": {"distribution": "debian", "release": "12"}}, "desk": BUILDER})
    [said] = wrong(project, "desk")
    assert "the builder atelier runs debian 12, and desk runs debian 13" in said


@pytest.mark.parametrize(
    ("build", "message"),
    [
        ({"where": "builder"}, "`where: builder` needs `builder`"),
        ({"where": "container", "builder": "atelier"}, "`where: container` needs `image`"),
        ({"where": "container", "image": "-v /:/host"}, "image"),
        ({"where": "builder", "builder": "../x"}, "builder"),
    ],
)
def test_a_place_that_is_not_said_or_no_place_is_refused(make: Make, build: dict[str, Any], message: str) -> None:
    assert any(message in each for each in wrong(make({"atelier": {}, "desk": build}), "desk"))


def test_what_a_fleet_says_beside_the_place_that_counts_is_only_warned_of(make: Make) -> None:
    loaded = make({"atelier": {}, "desk": {"builder": "atelier", "image": "debian:13"}}).named("desk")
    assert loaded.errors == []
    assert sorted(problem.message for problem in loaded.warnings) == [
        "`builder` is not used with `where: host`",
        "`image` is not used with `where: host`",
    ]


def test_the_place_is_no_part_of_the_release_id(make: Make) -> None:
    project = make(
        {"atelier": {}, "desk": BUILDER, "bench": CONTAINER, "many": {"jobs": 7}, "other": {"openssl": False}}
    )
    ids = {host.host: release(_spec(host), ()).id for host in project.hosts}
    assert len({ids[name] for name in ("atelier", "desk", "bench", "many")}) == 1
    assert ids["other"] != ids["desk"]


def _spec(host: LoadedHost) -> Any:
    assert host.spec is not None
    return host.spec


def test_a_host_that_does_not_build_wants_no_compiler_and_the_place_wants_all_of_it(make: Make) -> None:
    project = make({"atelier": {}, "desk": BUILDER})
    spec = _spec(project.named("desk"))
    plan = plan_project(spec, ROOT)
    there, here = wanted_state(spec, plan, ROOT), wanted_build(spec)
    compilers = {"g++", "gcc", "cmake", "ninja-build", "ccache", "libc6-dev", "libssl-dev"}
    assert compilers.isdisjoint(there.packages)
    assert {"libgomp1", "ca-certificates"} <= set(there.packages)
    caches = {"/var/cache/llamarig", "/var/cache/llamarig/ccache"}
    assert caches.isdisjoint({path for path, *_ in there.directories})
    assert caches <= {path for path, *_ in here.directories}
    own = _spec(project.named("atelier"))
    assert caches <= {path for path, *_ in wanted_state(own, plan_project(own, ROOT), ROOT).directories}
    assert there.toolkit is None
    assert there.release.elsewhere == "on the builder atelier"
    assert compilers <= set(here.packages)
    assert (here.services, here.models, here.files, here.credentials) == ((), (), (), ())
    assert here.release.elsewhere == ""
    assert here.release.id == there.release.id
    assert wanted_from_json(here.to_json()) == here


def test_a_look_says_where_it_is_built_and_that_it_is_copied_once_it_is_held(make: Make) -> None:
    spec = _spec(make({"bench": CONTAINER}).named("bench"))
    there = wanted_state(spec, plan_project(spec, ROOT), ROOT)
    [action] = release_actions(view_of(there, {"schema": 1}))
    assert action.reason == "is not there, and is built in a container of debian:13, then copied"
    [action] = release_actions(view_of(copied(there, "a" * 64, 1), {"schema": 1}))
    assert action.reason == "is not there, and is copied from the controller"


def hold(name: str) -> None:
    """Pretend that the controller holds a release."""
    store = Releases.default()
    store.shelf.root.mkdir(parents=True, exist_ok=True)
    store.shelf.path("a" * 64).write_bytes(b"x")
    store._write(Held(name, "a" * 64, 1, "atelier", "2026-12-01T00:00:00Z"))


def test_hosts_of_one_release_share_a_task_and_what_is_held_is_none(make: Make) -> None:
    two = BUILDER | {"openssl": False}
    project = make({"atelier": {}, "desk-1": BUILDER, "desk-2": CONTAINER, "desk-3": two, "desk-4": BUILDER})
    found = place.tasks(project.valid(None))
    assert [task.hosts for task in found] == [("desk-1", "desk-2", "desk-4"), ("desk-3",)]
    assert found[0].place.builder == "atelier"
    hold(found[0].release)
    assert [task.hosts for task in place.tasks(project.valid(None))] == [("desk-3",)]


def test_a_failed_build_is_told_to_the_hosts_that_wait_for_it_alone(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = BUILDER | {"openssl": False}
    project = make({"atelier": {}, "desk-1": BUILDER, "desk-2": two, "desk-3": BUILDER})

    def build(task: place.Task, around: object) -> None:
        if task.hosts == ("desk-2",):
            hold(task.release)
            return
        raise RigError("main.cpp:1: error", "atelier", "g++ says so", "mend it", ExitCode.HOST_FAILED)

    monkeypatch.setattr(ensure, "build_on_host", build)
    errors = ensure.make_releases(tmp_path, project.valid(None), tmp_path, lambda _event: None)
    assert sorted(errors) == ["desk-1", "desk-3"]
    assert "could not be made on the builder atelier: main.cpp:1: error" in errors["desk-1"].what
    assert (errors["desk-3"].where, errors["desk-3"].why) == ("desk-3", "g++ says so")
    with pytest.raises(RigErrors):
        ensure.ensure_releases(tmp_path, project.valid(["desk-1"]), tmp_path, lambda _event: None)


def test_two_that_want_the_same_at_once_build_it_once(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make({"atelier": {}, "desk": BUILDER})
    built: list[str] = []
    told: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def build(task: place.Task, around: object) -> None:
        begun.set()
        assert go_on.wait(20)
        built.append(task.release)
        hold(task.release)

    monkeypatch.setattr(ensure, "build_on_host", build)
    monkeypatch.setattr(turn, "_EVERY_S", 0.01)

    def run(sink: Callable[[dict[str, Any]], None]) -> None:
        assert ensure.make_releases(tmp_path, project.valid(None), tmp_path, sink) == {}

    first = threading.Thread(target=run, args=[lambda _event: None])
    first.start()
    assert begun.wait(20)

    def hear(event: dict[str, Any]) -> None:
        told.append(str(event["task"]))
        go_on.set()

    run(hear)
    first.join()
    assert len(built) == 1
    assert told == [f"waits for another run that builds {built[0]}"]


def test_a_name_is_free_once_nobody_holds_it() -> None:
    with turn.turn("x", lambda: None):
        with turn.if_free("x") as free:
            assert not free
        with turn.if_free("y") as free:
            assert free
    with turn.if_free("x") as free:
        assert free


def test_an_apply_goes_on_with_the_hosts_whose_release_could_be_made(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make({"atelier": {}, "desk-1": BUILDER, "desk-2": BUILDER | {"openssl": False}})
    hosts = []
    for loaded in project.valid(None):
        wanted = wanted_state(_spec(loaded), plan_project(_spec(loaded), ROOT), ROOT).to_json()
        variables = {"llamarig_wanted": wanted, "llamarig_project": str(tmp_path)}
        todo = {"release": [wanted["release"]["id"]]}
        hosts.append(apply.HostApply(loaded.host, variables, decision=Decision((), todo, ()), loaded=loaded))

    def build(task: place.Task, around: object) -> None:
        if task.hosts == ("desk-2",):
            raise RigError("it broke", code=ExitCode.HOST_FAILED)
        hold(task.release)

    monkeypatch.setattr(ensure, "build_on_host", build)
    left = apply._with_releases(hosts, tmp_path, apply.Options(), lambda _event: None)
    assert [host.host for host in left] == ["atelier", "desk-1"]
    [atelier, desk, failed] = hosts
    assert atelier.variables["llamarig_wanted"]["release"]["artifact"] is None
    assert desk.variables["llamarig_wanted"]["release"]["artifact"] == {"sha256": "a" * 64, "size": 1}
    assert failed.error is not None
    assert failed.error.code == ExitCode.HOST_FAILED


def test_without_an_engine_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(RigError, match="no container engine answers") as caught, engine():
        pass
    assert caught.value.code == ExitCode.HOST_FAILED


def test_an_images_system_is_read_from_what_it_says_itself() -> None:
    text = 'PRETTY_NAME="Debian GNU/Linux 13"\nID=debian\nVERSION_ID="13"\nHOME_URL="x\n'
    said = image.os_release(lambda path: text if path == "/etc/os-release" else None)
    assert (said["ID"], said["VERSION_ID"]) == ("debian", "13")
    assert image.os_release(lambda _path: None) == {}


def test_an_image_of_another_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"/usr/lib/os-release": "ID=debian\nVERSION_ID='12'\n"}
    monkeypatch.setattr(image, "_read", lambda _container, path: texts.get(path))
    made: Any = object()
    image.check_system(made, "debian 12", "debian:12")
    with pytest.raises(RigError, match="the image debian:12 is debian 12, and its hosts run debian 13"):
        image.check_system(made, "debian 13", "debian:12")


class Container:
    """Counts how often it is taken away."""

    removed = 0

    def remove(self, **_how: bool) -> None:
        self.removed += 1


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, RigError, None])
def test_a_container_is_taken_away_however_its_build_ends(end: type[BaseException] | None) -> None:
    made: Any = Container()

    def build() -> None:
        with container._gone_afterwards(made):
            if end is not None:
                raise end("x")

    if end is None:
        build()
    else:
        with pytest.raises(end):
            build()
    assert made.removed == 1


class Base:
    """An image by its id."""

    def __init__(self, name: str) -> None:
        self.id = name


def test_a_prepared_image_is_named_by_base_packages_and_user(monkeypatch: pytest.MonkeyPatch) -> None:
    one: Any = Base("sha256:1")
    other: Any = Base("sha256:2")
    tags = {
        image.prepared_tag(one, {"gcc": None}),
        image.prepared_tag(one, {"gcc": None, "patch": None}),
        image.prepared_tag(other, {"gcc": None}),
    }
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    tags.add(image.prepared_tag(one, {"gcc": None}))
    assert len(tags) == 4


@pytest.mark.parametrize("lent", [False, True])
def test_a_builder_takes_the_overlay_and_the_lock_as_the_hosts_do(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lent: bool
) -> None:
    project = make({"atelier": {}, "desk": BUILDER})
    with (tmp_path / "atelier.yml").open("a") as spec:
        spec.write("connection: {address: 192.0.2.1}\n")
    entry = {"key": "connection.address", "value": "192.0.2.77", "reason": "a spare machine", "unproven": "nothing"}
    (tmp_path / "over.yaml").write_text(yaml.safe_dump({"schema-version": 1, "host": "atelier", "replace": [entry]}))
    ran: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def run(_name: str, hosts: dict[str, Any], _private: Path, *, sink: object, extra: dict[str, Any]) -> Any:
        ran.append((hosts["atelier"], extra))
        raise RigError("enough")

    monkeypatch.setattr(play, "run_playbook", run)
    given = play.Given(break_lock=True, overlay=read_overlay(tmp_path / "over.yaml")) if lent else play.Given()
    errors = ensure.make_releases(tmp_path, [project.named("desk")], tmp_path, lambda _event: None, given)
    assert "enough" in errors["desk"].what
    [(reach, extra)] = ran
    assert (reach["ansible_host"] == "192.0.2.77") is lent
    assert extra["llamarig_break_lock"] is lent


def test_an_apply_hands_on_what_it_was_given(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = make({"atelier": {}, "desk": BUILDER}).named("desk")
    (tmp_path / "over.yaml").write_text("schema-version: 1\nhost: atelier\nreplace: []\n")
    given: list[play.Given] = []
    monkeypatch.setattr(ensure, "make_releases", lambda *words: given.append(words[4]) or {})
    release = {"id": "r", "elsewhere": "on the builder atelier", "artifact": None}
    host = apply.HostApply("desk", {"llamarig_wanted": {"release": release}, "llamarig_project": str(tmp_path)})
    host.loaded, host.decision = loaded, Decision((), {"release": ["r"]}, {}, ())
    options = apply.Options(break_lock=True, become_password_file="/f")
    apply._with_releases([host], tmp_path, options, lambda _event: None)
    assert given == [play.Given("/f", True, None)]


def test_the_playbook_of_a_build_takes_the_lock_from_others_when_asked() -> None:
    [page] = yaml.safe_load((ROOT / "playbooks/build.yml").read_text())
    [take] = [task["rig_lock"] for task in page["tasks"] if task.get("rig_lock", {}).get("operation") == "take"]
    assert page["vars"]["llamarig_break_lock"] is False
    assert take["over"] == "{{ 'any' if llamarig_break_lock | bool else '' }}"
