"""What goes is what nobody names and nobody uses; whatever the documents say, nothing that is named ever goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamarig.compare.gc import KINDS, UNDER_WORK, agreed, differs, named, refuse, sweep
from llamarig.compare.view import View
from llamarig.errors import ExitCode, RigError
from llamarig.render.wanted import WantedArtifact
from tests.support.compare.cases import LINK, MODEL, MODELS, RELEASE, observation, sha, wanted_state

WANTED = wanted_state()
OLD, FORMER = "1df29be4f-0123456789ab", "2df29be4f-0123456789ab"
BASE = "/opt/llamarig/releases"
STATE = "/var/lib/llamarig"


def thing(kind: str, path: str, number: int = 0, **more: Any) -> dict[str, Any]:
    number = number or int(sha(f"{kind} {path}")[:8], 16)
    return {
        "kind": kind,
        "path": path,
        "bytes": 4096,
        "id": [41, number],
        "odd": "",
        "used": None,
        "target": "",
        **more,
    }


def listing(*things: dict[str, Any], **names: Any) -> dict[str, Any]:
    record = {"state": "ok", "releases": [RELEASE], "models": [MODEL], "toolkits": []}
    said = {"current": RELEASE, "record": record, "wanted": None, "proven": None, "former": None, "held": None}
    return {"schema": 1, "unreadable": "", "things": list(things), "unknown": [], "names": said | names, "blind": []}


def state(**more: list[str]) -> dict[str, list[str]]:
    return {"releases": [], "models": [], "links": [], "users": [], "toolkits": [], **more}


def gone(*things: dict[str, Any], busy: str = "", build_cache: bool = False, **names: Any) -> list[str]:
    plan = sweep(WANTED, listing(*things, **names), busy=busy, build_cache=build_cache)
    return [each.path for each in plan.gone]


def why(*things: dict[str, Any], busy: str = "", **names: Any) -> dict[str, str]:
    plan = sweep(WANTED, listing(*things, **names), busy=busy)
    return {each.path: each.reason for each in plan.kept}


def test_each_release_that_somebody_names_stays_with_who_names_it() -> None:
    things = [thing("release", f"{BASE}/{name}") for name in (RELEASE, OLD, FORMER, "recorded", "proven")]
    record = {"state": "ok", "releases": [RELEASE, "recorded"], "models": [], "toolkits": []}
    said = {"record": record, "former": state(releases=[FORMER]), "proven": state(releases=["proven"])}
    assert gone(*things, **said) == [f"{BASE}/{OLD}"]
    assert why(*things, **said) == {
        f"{BASE}/{RELEASE}": "`current` leads to it",
        f"{BASE}/{FORMER}": "rollback goes back to it",
        f"{BASE}/recorded": "the record names it",
        f"{BASE}/proven": "it belongs to the state that was proven last",
    }


def test_the_release_that_the_spec_wants_stays_though_it_does_not_run() -> None:
    assert gone(thing("release", f"{BASE}/{RELEASE}"), current=OLD, record={"state": "ok"}) == []


def test_what_a_process_uses_stays() -> None:
    used = thing("release", f"{BASE}/{OLD}", used={"pid": 812, "command": "llama-\x1bserver"})
    assert why(used)[f"{BASE}/{OLD}"] == "process 812 (llama-\\x1bserver) uses it"


def test_models_go_with_their_links_and_stay_with_them() -> None:
    old, was = f"{MODELS}/sha256/{sha('old')}", f"{MODELS}/sha256/{sha('was')}"
    things = [
        thing("model", MODEL),
        thing("model", old),
        thing("model", was),
        thing("link", LINK, target=MODEL),
        thing("link", f"{MODELS}/also/smol.gguf", target=MODEL),
        thing("link", f"{MODELS}/old/x.gguf", target=old),
        thing("link", f"{MODELS}/was/x.gguf", target=was),
        thing("link", f"{MODELS}/none/x.gguf", target=f"{MODELS}/sha256/{sha('none')}"),
    ]
    assert gone(*things, former=state(models=[was])) == [old, f"{MODELS}/none/x.gguf", f"{MODELS}/old/x.gguf"]


def test_a_model_that_goes_is_told_with_its_name() -> None:
    old = f"{MODELS}/sha256/{sha('old')}"
    plan = sweep(WANTED, listing(thing("model", old), thing("link", f"{MODELS}/qwen/Q4.gguf", target=old)))
    assert plan.gone[0].reason == "no spec, record or way back names it (it was qwen/Q4.gguf)"


def test_a_model_that_a_process_knows_by_its_link_stays() -> None:
    old = f"{MODELS}/sha256/{sha('old')}"
    link = thing("link", f"{MODELS}/old/x.gguf", target=old, used={"pid": 7, "command": "server"})
    assert gone(thing("model", old), link) == []


def test_a_second_path_to_what_stays_is_not_removed() -> None:
    mounted = thing("model", f"/data/sha256/{sha('model')}", number=5)
    assert gone(thing("model", MODEL, number=5), mounted) == []
    assert why(thing("model", MODEL, number=5), mounted)[mounted["path"]] == f"it is the same as {MODEL}"
    assert gone(thing("model", MODEL, number=5), {**mounted, "id": [41, 6]}) == [mounted["path"]]


def test_what_apply_would_go_on_from_stays_until_it_has_arrived() -> None:
    part = thing("part", f"{MODELS}/incoming/{sha('model')}.part")
    job = thing("job", f"{STATE}/jobs/llamarig-fetch-{sha('model')[:16]}")
    source = thing("part", f"{STATE}/incoming/{sha('sdist')}.part")
    build = thing("build", f"{STATE}/build/{RELEASE}")
    assert gone(part, job, source, build) == []
    arrived = [thing("model", MODEL), thing("release", f"{BASE}/{RELEASE}")]
    assert gone(part, job, source, build, *arrived) == [each["path"] for each in (source, part, build, job)]
    stranger = thing("part", f"{MODELS}/incoming/{sha('half')}.part")
    assert gone(stranger) == [stranger["path"]]


def test_a_packed_release_on_its_way_stays() -> None:
    copied = replace(WANTED, release=replace(WANTED.release, artifact=WantedArtifact(sha("packed"), 7)))
    part = thing("part", f"{STATE}/incoming/{sha('packed')}.part")
    assert sweep(copied, listing(part)).gone == ()
    assert [each.path for each in sweep(WANTED, listing(part)).gone] == [part["path"]]


def test_a_toolkit_stays_while_the_spec_names_it_even_where_nothing_is_built() -> None:
    inputs = {**WANTED.release.inputs, "toolkit": "13.0.88"}
    wanted = replace(WANTED, release=replace(WANTED.release, inputs=inputs))
    things = [thing("toolkit", f"/opt/llamarig/cuda/{version}") for version in ("12.9.86", "13.0.88", "12.8.93")]
    said = listing(*things, former=state(toolkits=["/opt/llamarig/cuda/12.8.93"]))
    assert [each.path for each in sweep(wanted, said).gone] == ["/opt/llamarig/cuda/12.9.86"]


def test_what_a_run_may_be_at_work_on_stays_while_somebody_holds_the_lock() -> None:
    things = [thing(kind, f"{STATE}/{kind}/x") for kind in sorted(UNDER_WORK)]
    old = thing("release", f"{BASE}/{OLD}")
    assert gone(*things, old, busy="anna on desk", build_cache=True) == [old["path"]]
    assert "anna on desk holds the host's lock" in why(*things, busy="anna on desk").values()
    assert len(gone(*things, build_cache=True)) == len(UNDER_WORK)


def test_the_compiler_cache_goes_only_when_asked() -> None:
    cache = thing("build-cache", "/var/cache/llamarig/ccache")
    assert gone(cache) == []
    assert gone(cache, build_cache=True) == [cache["path"]]


def test_a_user_of_a_service_that_is_wanted_or_was_stays() -> None:
    users = [thing("user", name) for name in ("llama-chat", "llama-was", "llama-old")]
    assert gone(*users, former=state(users=["llama-was"])) == ["llama-old"]


@pytest.mark.parametrize(
    "broken",
    [{"kind": "disk"}, {"path": 7}, {"path": ""}, {"id": None}, {"id": [1, "2"]}, {"id": [True, None]}],
)
def test_what_is_malformed_is_not_removed(broken: dict[str, Any]) -> None:
    assert gone(thing("release", f"{BASE}/{OLD}") | broken) == []


names = st.sampled_from([RELEASE, OLD, FORMER, "a", "b", "c"])
contents = st.sampled_from([sha(word) for word in ("model", "old", "was", "half")])
who = st.one_of(
    st.none(),
    st.builds(
        lambda releases, models, versions, users: state(
            releases=releases,
            models=[f"{MODELS}/sha256/{each}" for each in models],
            toolkits=[f"/opt/llamarig/cuda/{each}" for each in versions],
            users=[f"llama-{each}" for each in users],
        ),
        st.lists(names),
        st.lists(contents),
        st.lists(names),
        st.lists(names),
    ),
)
paths = {
    "release": names.map(lambda each: f"{BASE}/{each}"),
    "toolkit": names.map(lambda each: f"/opt/llamarig/cuda/{each}"),
    "model": contents.map(lambda each: f"{MODELS}/sha256/{each}"),
    "link": st.sampled_from([LINK, f"{MODELS}/old/x.gguf"]),
    "user": names.map(lambda each: f"llama-{each}"),
}


@st.composite
def any_thing(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(KINDS))
    path = draw(paths.get(kind, st.just(f"{STATE}/{kind}/x")))
    used = draw(st.one_of(st.none(), st.none(), st.just({"pid": 7, "command": "x"}), st.just("odd")))
    target = f"{MODELS}/sha256/{draw(contents)}" if kind == "link" else ""
    return thing(kind, path, draw(st.integers(1, 9)), used=used, target=target)


@given(
    st.lists(any_thing(), unique_by=lambda each: (each["kind"], each["path"])),
    names,
    st.fixed_dictionaries(dict.fromkeys(("record", "proven", "former", "wanted"), who)),
    st.tuples(st.booleans(), st.sampled_from(["", "anna"])),
)
def test_nothing_that_is_named_or_used_ever_goes(
    things: list[dict[str, Any]], current: str, parts: dict[str, Any], how: tuple[bool, str]
) -> None:
    said = {**parts, "current": current, "record": {"state": "ok", **(parts["record"] or {})}}
    cache, busy = how
    document = listing(*things, **said)
    plan = sweep(WANTED, document, busy=busy, build_cache=cache)
    keys = {each.key for each in plan.gone}
    kept = {each.key: each for each in plan.kept}
    assert not keys & set(named(WANTED, document).reasons)
    assert ("release", f"{BASE}/{current}") not in keys
    for part in parts.values():
        for kind, key in (("model", "models"), ("toolkit", "toolkits"), ("user", "users")):
            assert not keys & {(kind, path) for path in (part or {}).get(key, [])}
        assert not keys & {("release", f"{BASE}/{name}") for name in (part or {}).get("releases", [])}
    assert not keys & {(each["kind"], each["path"]) for each in things if each["used"] is not None}
    # All is told once, and what stays says why.
    assert sorted([*keys, *kept]) == sorted((each["kind"], each["path"]) for each in things)
    assert all(each.reason for each in (*plan.gone, *plan.kept))
    assert not {each.id for each in plan.gone if each.kind not in ("link", "user")} & {each.id for each in plan.kept}
    assert sweep(WANTED, document, busy=busy, build_cache=cache) == plan


def view(**more: Any) -> View:
    return View(WANTED, observation(WANTED) | more)


def refused(document: dict[str, Any] | None = None, **more: Any) -> RigError:
    with pytest.raises(RigError) as caught:
        refuse(view(**more), listing() if document is None else document)
    assert caught.value.fix
    return caught.value


def test_a_host_that_can_be_judged_is_not_refused() -> None:
    refuse(view(), listing())


@pytest.mark.parametrize("record", ["absent", "edited", "unreadable", None])
def test_without_a_record_nothing_goes(record: str | None) -> None:
    error = refused(**{"record-state": record})
    assert error.what == "the record does not tell what must stay"
    assert error.code == ExitCode.HOST_FAILED


def test_a_record_that_the_list_could_not_read_counts_as_well() -> None:
    assert "record" in refused(listing(record={"state": "edited"})).what


def test_an_apply_that_is_not_finished_is_finished_first() -> None:
    error = refused(unfinished={"at": "2026-12-01T00:00:00Z", "from": "anna@desk"})
    assert error.what == "an apply of this host is not finished"
    assert "anna@desk" in error.why
    assert "llamarig apply demo" in error.fix


def test_another_machine_than_the_spec_means_is_left_alone() -> None:
    assert "debian 12" in refused(os={"id": "debian", "version": "12"}).what


@pytest.mark.parametrize(
    "broken",
    [
        {"unreadable": "/var/lib/llamarig/former.json is a fifo"},
        {"blind": [{"pid": 7, "command": "x"}]},
        {"schema": 2},
        {"things": None},
    ],
)
def test_what_cannot_be_looked_at_refuses_the_host(broken: dict[str, Any]) -> None:
    assert refused(listing() | broken).code == ExitCode.HOST_FAILED


def test_only_what_was_agreed_to_goes() -> None:
    plan = sweep(WANTED, listing(thing("release", f"{BASE}/{OLD}"), thing("release", f"{BASE}/late")))
    assert agreed(plan, None) == plan
    left = agreed(plan, [f"release {BASE}/{OLD}"])
    assert [each.path for each in left.gone] == [f"{BASE}/{OLD}"]
    assert [each.reason for each in left.kept] == ["it came after the question"]


def proof(before: list[dict[str, Any]], after: list[dict[str, Any]], *removed: str, now: Any = None) -> list[str]:
    keys = [("release", path) for path in removed]
    return differs(listing(*before), listing(*after), keys, view(), View(WANTED, now or observation(WANTED)))


def test_a_removal_is_proven_by_what_is_left() -> None:
    old, kept = thing("release", f"{BASE}/{OLD}"), thing("release", f"{BASE}/{RELEASE}")
    assert proof([old, kept], [kept], old["path"]) == []
    assert proof([old, kept], [old, kept], old["path"]) == [f"{old['path']} is still there"]
    assert proof([old, kept], [], old["path"]) == [f"{kept['path']} is gone, though it was to stay"]
    assert proof([kept], [{**kept, "id": [41, 1]}]) == [f"{kept['path']} is gone, though it was to stay"]


@pytest.mark.parametrize("change", [{"active": "failed"}, {"main-pid": 999}])
def test_a_service_that_does_not_run_on_is_told(change: dict[str, Any]) -> None:
    now = observation(WANTED)
    now["units"]["llama-chat.service"] |= change
    assert proof([], [], now=now) == ["llama-chat.service does not run on as it did"]
