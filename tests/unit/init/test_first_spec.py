"""The spec that init writes is valid, says what was found, and holds nothing that the machine could smuggle in."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamarig.converge.discover.cards import bus_id, found_cards, model_of
from llamarig.converge.discover.spec_text import comment, compose, host_name
from llamarig.errors import ExitCode, RigError
from llamarig.spec.host import Connection, HostSpec
from llamarig.spec.load import load_files
from tests.support.machines.trees import ADA, BLACKWELL, RECORDED, SMI, tree
from tests.support.observe.load import module

OVER_SSH = Connection.model_validate({"address": "box.lan", "user": "admin"})


def machine(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(RECORDED), **changes}


def dual(tmp_path: Path) -> dict[str, Any]:
    """The reference machine, its driver running: a composed tree, and what nvidia-smi would say."""
    root = tree(tmp_path / "m", {"0000:01:00.0": "2c33", "0000:02:00.0": "28b0"}, driver="nvidia", version="610.57.04")
    seen: dict[str, Any] = module("rig_look").look(str(root))
    return {**seen, "smi": {"cards": SMI, "error": ""}}


def load(text: str, tmp_path: Path) -> HostSpec:
    path = tmp_path / "box.yml"
    path.write_text(text)
    (loaded,) = load_files(tmp_path, [path], tmp_path).valid(None)
    assert loaded.spec is not None
    return loaded.spec


def test_a_machine_without_cards_gets_a_cpu_service(tmp_path: Path) -> None:
    name, text = compose(machine(), OVER_SSH)
    spec = load(text, tmp_path)
    assert name == spec.host == "prov0"
    assert spec.engine.backend == "cpu"
    assert (spec.connection.address, spec.connection.user, spec.connection.become) == ("box.lan", "admin", True)
    assert spec.connection.host_key == " ".join(RECORDED["host-key"].split()[:2])
    assert spec.memory is not None
    assert spec.memory.total_mib == 24105
    assert spec.services["chat"].listen.port == 8080
    assert "# serves already: /opt/x/bin/llama-server (llama-chat.service) on port 18080\n" in text
    assert "unlocked" not in "".join(line for line in text.splitlines() if not line.strip().startswith("#"))


def test_processes_that_nothing_tells_apart_are_one_line() -> None:
    seen = machine()
    server = {**seen["servers"][0], "unit": "", "ports": []}
    _, text = compose({**seen, "servers": [server, server, seen["servers"][0], server]}, OVER_SSH)
    assert [line for line in text.splitlines() if line.startswith("# serves already")] == [
        "# serves already: /opt/x/bin/llama-server, 3 processes",
        "# serves already: /opt/x/bin/llama-server (llama-chat.service) on port 18080",
    ]


def test_the_reference_machine_is_found_with_its_cards(tmp_path: Path) -> None:
    _, text = compose(dual(tmp_path), OVER_SSH)
    spec = load(text, tmp_path)
    assert {name: (gpu.model, gpu.bus_id, gpu.uuid, gpu.display) for name, gpu in spec.gpus.items()} == {
        "blackwell": ("rtx-pro-4000-blackwell-sff", "01:00.0", BLACKWELL, False),
        "ada": ("rtx-2000-ada", "02:00.0", ADA, True),
    }
    assert spec.engine.architectures == ["120a-real", "89-real"]
    assert spec.driver is not None
    assert (spec.driver.version, spec.driver.flavour) == ("610.57.04", "open")
    assert spec.services["chat"].gpu == "blackwell"
    assert spec.services["chat"].listen.port == 8081
    assert "its power limit is set to 60 W now" in text


def test_cards_are_known_before_their_driver_runs(tmp_path: Path) -> None:
    root = tree(tmp_path / "m", {"0000:01:00.0": "2b85"}, driver="nouveau")
    _, text = compose(module("rig_look").look(str(root)), OVER_SSH)
    spec = load(text, tmp_path)
    assert spec.gpus["blackwell"].model == "rtx-5090"
    assert spec.gpus["blackwell"].uuid is None
    assert "none runs now (held by nouveau)" in text
    assert spec.driver is not None
    assert spec.driver.flavour == "open"


def test_two_cards_of_a_generation_get_two_names(tmp_path: Path) -> None:
    root = tree(tmp_path / "m", {"0000:01:00.0": "2684", "0000:c1:00.0": "2684"})
    spec = load(compose(module("rig_look").look(str(root)), OVER_SSH)[1], tmp_path)
    assert {name: gpu.bus_id for name, gpu in spec.gpus.items()} == {"ada": "01:00.0", "ada-2": "c1:00.0"}


def test_an_unknown_card_is_said_and_left_out(tmp_path: Path) -> None:
    root = tree(tmp_path / "m", {"0000:01:00.0": "ffff"})
    _, text = compose(module("rig_look").look(str(root)), OVER_SSH)
    assert "# not in the catalog, so it is left out: 10de:ffff at 01:00.0\n" in text
    spec = load(text, tmp_path)
    assert spec.gpus == {}
    assert spec.engine.backend == "cpu"


def test_this_machine_itself_needs_no_address(tmp_path: Path) -> None:
    spec = load(compose(machine(), Connection.model_validate({"type": "local"}))[1], tmp_path)
    assert spec.connection.type == "local"


@pytest.mark.parametrize(
    ("driver", "device", "listed", "model"),
    [
        ("NVIDIA GeForce RTX 4090", "ffff", "", "rtx-4090"),
        ("NVIDIA  GeForce RTX 4090", "", "", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "2684", "", None),
        ("", "2684", "", "rtx-4090"),
        ("", "2684", "AD102 [Something else]", "rtx-4090"),
        ("", "eeee", "GB202 [GeForce RTX 5090]", "rtx-5090"),
        ("", "eeee", "", None),
    ],
)
def test_the_drivers_own_name_counts_before_ids(driver: str, device: str, listed: str, model: str | None) -> None:
    assert model_of(driver, device, listed) == model


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("00000000:01:00.0", "01:00.0"), ("0000:C1:00.0", "c1:00.0"), ("0001:01:00.0", "0001:01:00.0"),
        ("01:00.0; rm -rf /", ""), ("", ""),
    ],
)  # fmt: skip
def test_bus_ids_read_as_specs_write_them(text: str, wanted: str) -> None:
    assert bus_id(text) == wanted


@pytest.mark.parametrize(
    ("hostname", "address", "name"),
    [
        ("Atelier.lan", "x", "atelier"), ("a b_c", "x", "a-b-c"), ("", "box.lan", "box"), ("", "10.0.0.7", "box"),
        ("---", "", "box"), ("x" * 80, "", "x" * 63),
    ],
)  # fmt: skip
def test_the_host_is_named_after_the_machine(hostname: str, address: str, name: str) -> None:
    assert host_name({"hostname": hostname}, Connection.model_validate({"address": address})) == name


@pytest.mark.parametrize("hostname", ["true", "1e3", "null", "NULL"])
def test_a_name_that_reads_as_something_else_is_written_in_quotes(hostname: str) -> None:
    name, text = compose(machine(hostname=hostname), Connection())
    assert name == hostname.lower()
    assert f'host: "{name}"\n' in text


def test_another_system_is_refused() -> None:
    with pytest.raises(RigError, match="Debian and Ubuntu, and this is fedora 43") as caught:
        compose(machine(os={"id": "fedora", "version": "43", "codename": ""}), OVER_SSH)
    assert caught.value.code == ExitCode.FINDING


def test_comments_hold_one_printable_line() -> None:
    assert comment("a\nservices: {}\x1b[2J\u202e") == "a?services: {}?[2J?"


HOSTILE = st.text(max_size=40) | st.sampled_from(["x\nservices: {}", "'", '"', "a: b", "# x", "{}", "\u2028k: v", "*a"])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_text_of_the_machine_gets_into_the_spec(data: st.DataObject) -> None:
    """Whatever the machine says, the spec has the same keys and only values of the form that was asked for."""
    seen = machine(
        hostname=data.draw(HOSTILE),
        kernel=data.draw(HOSTILE),
        arch=data.draw(HOSTILE),
        **{"host-key": data.draw(HOSTILE)},
        cards=[{"bus-id": "0000:01:00.0", "device": data.draw(HOSTILE), "driver": data.draw(HOSTILE), "listed": "x"}],
        driver={"version": data.draw(HOSTILE), "open": True, "loaded": True},
        smi={"cards": [{**SMI[0], "uuid": data.draw(HOSTILE), "power.limit": data.draw(HOSTILE)}], "error": ""},
        servers=[{"pid": 1, "executable": data.draw(HOSTILE), "unit": data.draw(HOSTILE), "ports": [1]}],
    )
    _, text = compose(seen, OVER_SSH)
    assert set(text) <= {"\n"} | {ch for ch in text if ch.isprintable()}
    top = [line.split(":")[0] for line in text.splitlines() if line[:1].isalpha()]
    assert top == [
        "schema-version",
        "host",
        "connection",
        "os",
        "memory",
        "gpus",
        "driver",
        "cuda",
        "engine",
        "models",
        "services",
    ]


def test_malformed_cards_are_left_out() -> None:
    assert found_cards(machine(cards=[{"bus-id": "nonsense", "device": "2684"}])) == []
