"""Each guard of rendering, and the broken input that it must catch."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from llamarig.errors import RigError
from llamarig.render import wanted_state
from llamarig.render.sandbox import Needs, sandbox
from llamarig.render.tree import write_tree
from tests.golden.cases import HERE, wanted_of
from tests.support.rendering.composed import changed, plan_of, spec_of, with_argv

ADDRESSES = ("127.0.0.1", "0.0.0.0", "::", "192.168.1.5", "/run/llama-x/api.sock")


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("allow", [(), ("10.0.0.0/8",)])
def test_a_gpu_unit_never_hides_its_devices(address: str, allow: tuple[str, ...]) -> None:
    """PrivateDevices= would take the card away and the server would fall back to the CPU."""
    keys = dict(sandbox(Needs(gpu=True, address=address, port=1, allow=allow)))
    assert "PrivateDevices" not in keys
    assert keys["DevicePolicy"] == "closed"
    assert dict(sandbox(Needs(gpu=False, address=address, port=1)))["PrivateDevices"] == "yes"


def test_no_unit_opens_more_than_nvidia_nodes() -> None:
    for host in ("demo", "twin"):
        for file in wanted_of(host).files:
            for device in re.findall(r"^DeviceAllow=(\S+)", file.content, re.MULTILINE):
                assert device.startswith("char-nvidia")
                assert "*" not in device


def test_a_keyed_service_without_its_key_flag_is_not_rendered() -> None:
    spec = spec_of("demo")
    plan = plan_of(spec)
    argv = plan.services["chat"].argv
    at = argv.index("--api-key-file")
    with pytest.raises(RigError, match="not safe to render") as caught:
        wanted_state(spec, with_argv(plan, "chat", argv[:at] + argv[at + 2 :]), HERE)
    assert "--api-key-file" in caught.value.why


def test_a_key_flag_for_a_keyless_service_is_not_rendered() -> None:
    spec = changed("demo", ("services.chat.listen", {"port": 1, "keyless": {"reason": "a test of guards"}}))
    plan = plan_of(spec)
    argv = (*plan.services["chat"].argv, "--api-key-file", "/run/credentials/llama-chat.service/keys")
    with pytest.raises(RigError, match="not safe to render"):
        wanted_state(spec, with_argv(plan, "chat", argv), HERE)


@pytest.mark.parametrize(
    "place",
    [
        "/etc/llamarig/keys/chat.keys",
        "/run/credentials/llama-other.service/keys",
        "/run/credentials/llama-chat.service/../x",
        "keys",
    ],
)
def test_keys_are_read_from_the_units_own_credentials_alone(place: str) -> None:
    spec = spec_of("demo")
    plan = plan_of(spec)
    argv = tuple(place if word.startswith("/run/credentials/") else word for word in plan.services["chat"].argv)
    with pytest.raises(RigError, match="not safe to render"):
        wanted_state(spec, with_argv(plan, "chat", argv), HERE)


def test_a_program_outside_the_current_release_is_not_rendered() -> None:
    spec = spec_of("demo")
    plan = plan_of(spec)
    with pytest.raises(RigError, match="not safe to render"):
        wanted_state(spec, with_argv(plan, "chat", ("/bin/sh", *plan.services["chat"].argv[1:])), HERE)
    with pytest.raises(RigError, match="not safe to render"):
        wanted_state(spec, with_argv(plan, "chat", ()), HERE)


def test_a_keyless_server_beyond_loopback_is_not_rendered() -> None:
    listen = {"address": "0.0.0.0", "port": 1, "plaintext": "accepted", "keyless": {"reason": "a test of guards"}}
    spec = changed("demo", ("services.chat.listen", listen))
    with pytest.raises(RigError, match="not safe to render"):
        wanted_state(spec, plan_of(spec), HERE)


def test_a_network_that_is_none_is_refused() -> None:
    with pytest.raises(RigError, match="allow: "):
        sandbox(Needs(gpu=False, address="0.0.0.0", port=1, allow=("10.0.0.0/8\nIPAddressAllow=any",)))


def test_a_models_directory_that_cannot_be_mounted_is_refused() -> None:
    with pytest.raises(RigError, match="cannot be shown"):
        sandbox(Needs(gpu=False, address="127.0.0.1", port=1, models_dir="/home/me/a:b"))


@pytest.mark.parametrize("place", ["/home/me", "/root", "/run/user/1000"])
def test_an_open_gpu_server_reads_nothing_below_home(place: str) -> None:
    open_server = Needs(gpu=True, address="0.0.0.0", port=1, models_dir=place)
    with pytest.raises(RigError, match="open to any network") as caught:
        sandbox(open_server)
    assert "listen.allow" in caught.value.fix
    for fine in (
        replace(open_server, address="127.0.0.1"),
        replace(open_server, allow=("10.0.0.0/8",)),
        replace(open_server, models_dir="/srv/models"),
        replace(open_server, gpu=False),
    ):
        assert sandbox(fine)


def test_a_missing_chat_template_is_named(tmp_path: Path) -> None:
    spec = spec_of("twin")
    with pytest.raises(RigError, match="chat template of service lan") as caught:
        wanted_state(spec, plan_of(spec), tmp_path)
    assert caught.value.where == str(tmp_path / "specs" / "team.jinja")


def test_a_directory_of_others_is_never_touched(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    with pytest.raises(RigError, match="not made by `llamarig render`"):
        write_tree(wanted_of("demo"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize(
    "manifest", ["", "[]", "{}", '{"made-by": "someone", "files": {}}', '{"made-by": "llamarig render"}']
)
def test_a_manifest_of_others_does_not_count(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(RigError, match="not made by `llamarig render`"):
        write_tree(wanted_of("demo"), tmp_path)


def test_rendering_again_takes_away_what_is_no_longer_rendered(tmp_path: Path) -> None:
    write_tree(wanted_of("twin"), tmp_path)
    (tmp_path / "etc" / "notes").write_text("kept")
    write_tree(wanted_of("demo"), tmp_path)
    units = [path.name for path in (tmp_path / "etc/systemd/system").iterdir()]
    assert units == ["llama-chat.service"]
    assert (tmp_path / "etc" / "notes").read_text() == "kept"


@pytest.mark.parametrize("path", ["/../outside", "/etc/../../outside", "outside", "/"])
def test_a_forged_manifest_reaches_nothing_outside(tmp_path: Path, path: str) -> None:
    (tmp_path / "outside").write_text("precious")
    out = tmp_path / "out"
    out.mkdir()
    (out / "manifest.json").write_text(json.dumps({"made-by": "llamarig render", "files": {path: {}}}))
    with pytest.raises(RigError, match="not an absolute path"):
        write_tree(wanted_of("demo"), out)
    assert (tmp_path / "outside").read_text() == "precious"


def test_links_are_never_followed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_tree(wanted_of("demo"), out)
    target = tmp_path / "target"
    target.mkdir()
    (out / "etc" / "systemd" / "system" / "llama-chat.service").unlink()
    (out / "etc" / "systemd" / "system").rmdir()
    (out / "etc" / "systemd" / "system").symlink_to(target)
    with pytest.raises(RigError, match="a link stands where"):
        write_tree(wanted_of("demo"), out)
    assert list(target.iterdir()) == []
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(RigError, match="not a directory"):
        write_tree(wanted_of("demo"), tmp_path / "link")


def test_nothing_secret_is_written(tmp_path: Path) -> None:
    made = write_tree(wanted_of("twin"), tmp_path)
    assert not (tmp_path / "etc/llamarig/keys").exists()
    assert {entry["path"] for entry in made["credentials"]} == {
        f"/etc/llamarig/keys/{name}.keys" for name in ("chat", "lan", "wide")
    }
    for path in tmp_path.rglob("*"):
        assert "PRIVATE" not in (path.read_text() if path.is_file() else "")
