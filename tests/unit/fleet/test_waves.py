"""Waves: every host in one of them, the canary first, and of each room half at most."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamarig.errors import RigError
from llamarig.fleet.policy import policy_of, waves
from llamarig.spec.fleet_file import FleetSections
from llamarig.spec.load import LoadedHost
from llamarig.spec.rollout import Rollout, WaveSize

sizes = st.lists(st.one_of(st.integers(1, 40), st.integers(1, 100).map(lambda share: f"{share}%")), min_size=1)
fleets = st.dictionaries(
    st.from_regex(r"[a-z]{1,3}-?[0-9]{0,3}", fullmatch=True),
    st.one_of(st.just({}), st.sampled_from(["hall", "lab", "attic"]).map(lambda room: {"room": room})),
    max_size=60,
)


def policy(canary: int = 1, sizes: list[WaveSize] | None = None, by: str | None = None) -> Rollout:
    return Rollout.model_validate({"canary": canary, "waves": sizes or ["25%"], "by": by})


def hosts(count: int) -> dict[str, dict[str, str]]:
    return {f"host-{number}": {} for number in range(count)}


@given(fleets, st.integers(0, 5), sizes, st.sampled_from([None, "room"]))
def test_every_host_is_in_exactly_one_wave(
    fleet: dict[str, dict[str, str]], canary: int, sizes: list[WaveSize], by: str | None
) -> None:
    made = waves(fleet, policy(canary, sizes, by))
    assert sorted(name for wave in made for name in wave.hosts) == sorted(fleet)
    assert all(wave.hosts for wave in made)
    assert len({wave.name for wave in made}) == len(made)
    assert made == waves(dict(reversed(fleet.items())), policy(canary, sizes, by))
    if fleet and canary:
        assert made[0].name == "canary"
        assert len(made[0].hosts) <= canary


@given(fleets, st.integers(0, 5), sizes)
def test_half_of_a_room_goes_on_serving(fleet: dict[str, dict[str, str]], canary: int, sizes: list[WaveSize]) -> None:
    rooms = Counter(labels.get("room") for labels in fleet.values())
    for wave in waves(fleet, policy(canary, sizes, "room")):
        for room, taken in Counter(fleet[name].get("room") for name in wave.hosts).items():
            assert room is None or taken <= max(1, rooms[room] // 2)


def test_without_the_label_a_wave_may_take_a_whole_room() -> None:
    fleet = {f"host-{number}": {"room": "lab"} for number in range(4)}
    assert [len(wave.hosts) for wave in waves(fleet, policy(0, [4]))] == [4]
    assert [len(wave.hosts) for wave in waves(fleet, policy(0, [4], "room"))] == [2, 2]


@pytest.mark.parametrize(
    ("count", "canary", "given_sizes", "expected"),
    [
        (8, 1, ["25%"], [1, 2, 2, 2, 1]),
        (8, 1, ["50%", "100%"], [1, 4, 3]),
        (8, 0, [3], [3, 3, 2]),
        (10, 2, [1, 3], [2, 1, 3, 3, 1]),
        (4, 1, ["1%"], [1, 1, 1, 1]),
        (1, 1, ["25%"], [1]),
        (2, 5, ["25%"], [2]),
        (0, 1, ["25%"], []),
        (101, 1, ["33%"], [1, 33, 33, 33, 1]),
    ],
)
def test_sizes(count: int, canary: int, given_sizes: list[WaveSize], expected: list[int]) -> None:
    assert [len(wave.hosts) for wave in waves(hosts(count), policy(canary, given_sizes))] == expected


def test_hosts_go_by_name_with_numbers_as_numbers() -> None:
    [wave] = waves(hosts(12), policy(0, [12]))
    assert wave.hosts[:3] == ("host-0", "host-1", "host-2")
    assert wave.hosts[-1] == "host-11"


def test_rooms_take_turns() -> None:
    fleet = {"a1": {"room": "a"}, "a2": {"room": "a"}, "b1": {"room": "b"}, "b2": {"room": "b"}, "c": {}}
    assert [wave.hosts for wave in waves(fleet, policy(1, [2], "room"))] == [("c",), ("a1", "b1"), ("a2", "b2")]


def test_hosts_that_carry_the_canarys_labels_go_first() -> None:
    fleet = {f"host-{number}": {"wave": "canary"} if number in (3, 5) else {} for number in range(6)}
    marked = Rollout.model_validate({"canary": 1, "canary-labels": {"wave": "canary"}, "waves": [2]})
    assert [wave.hosts for wave in waves(fleet, marked)] == [
        *[("host-3",), ("host-0", "host-1")],
        *[("host-2", "host-4"), ("host-5",)],
    ]
    assert waves(fleet, marked.model_copy(update={"canary": 3}))[0].hosts == ("host-3", "host-5", "host-0")
    other = marked.model_copy(update={"canary_labels": {"wave": "none"}})
    assert waves(fleet, other)[0].hosts == ("host-0",)


def loaded(name: str, rollout: Rollout | None) -> LoadedHost:
    return LoadedHost(name, Path(f"{name}.yml"), None, fleet=FleetSections.model_validate({"rollout": rollout}))


def test_hosts_without_a_policy_have_the_default_one() -> None:
    assert policy_of([loaded("a", None), loaded("b", Rollout())]) == Rollout()
    assert policy_of([]) == Rollout()


def test_two_policies_are_no_rollout() -> None:
    many = [loaded(f"b{number}", policy(2)) for number in range(5)]
    with pytest.raises(RigError) as caught:
        policy_of([loaded("a", policy(1)), *many])
    assert "a; b0, b1, b2 and 2 more" in caught.value.why
