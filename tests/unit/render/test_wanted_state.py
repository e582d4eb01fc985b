from __future__ import annotations

import json
from typing import Any

import pytest

from llamarig.render import wanted_state
from llamarig.render.arguments import flags_of, value_of
from llamarig.render.probe import connect_address
from llamarig.render.wanted import Wanted
from llamarig.spec.host import HostSpec
from tests.golden.cases import HERE
from tests.support.rendering.composed import changed, plan_of, spec_of


def wanted(spec: HostSpec) -> Wanted:
    return wanted_state(spec, plan_of(spec), HERE)


def test_it_is_plain_json() -> None:
    data = wanted(spec_of("twin")).to_json()
    assert json.loads(json.dumps(data)) == data
    assert {entry["path"]: entry["sha256"] for entry in data["files"]}["/opt/llamarig/libexec/start-probe"] == wanted(
        spec_of("demo")
    ).files[0].sha256


def test_the_demo_host_installs_what_its_build_needs() -> None:
    assert list(wanted(spec_of("demo")).packages) == [
        "ca-certificates",
        "ccache",
        "cmake",
        "g++",
        "gcc",
        "libc6-dev",
        "libgomp1",
        "libssl-dev",
        "ninja-build",
        "python3",
    ]
    assert "libssl-dev" not in wanted(changed("demo", ("engine.build", {"openssl": False}))).packages
    assert "patch" in wanted(spec_of("twin")).packages


def test_each_service_has_a_user_of_its_own_and_the_card_only_if_it_needs_it() -> None:
    users = {user.name: user for user in wanted(spec_of("twin")).users}
    assert set(users) == {"llamarig-build", "llama-chat", "llama-lan", "llama-wide", "llama-local"}
    assert users["llama-chat"].groups == ("video",)
    assert users["llamarig-build"].groups == ()
    assert users["llamarig-build"].home == "/var/lib/llamarig/build"
    assert wanted(spec_of("demo")).users[1].groups == ()


def test_directories_come_parents_first_and_keys_are_roots_alone() -> None:
    directories = wanted(spec_of("twin")).directories
    paths = [path for path, _, _, _ in directories]
    assert len(set(paths)) == len(paths)
    for index, path in enumerate(paths):
        below = [other for other in paths[:index] if other.startswith(path + "/")]
        assert below == []
    modes = {path: (mode, owner) for path, mode, owner, _ in directories}
    assert modes["/etc/llamarig/keys"] == ("0700", "root")
    assert modes["/var/lib/llamarig/build"] == ("0755", "root")
    assert modes["/srv/models/qwen"] == ("0755", "root")


def test_models_lie_by_content_under_the_names_that_services_use() -> None:
    (smol,) = wanted(spec_of("demo")).models
    assert smol.path == f"/var/lib/llamarig/models/sha256/{smol.sha256}"
    assert smol.links == ("/var/lib/llamarig/models/smol/SmolLM2-135M-Instruct.Q4_1.gguf",)
    assert smol.origin["kind"] == "wheel"
    assert smol.restarts == ("chat",)


def test_unlocked_files_are_told_apart() -> None:
    model, projector = wanted(spec_of("twin")).models
    assert model.path != projector.path
    assert (model.sha256, model.size) == ("unlocked", 0)
    assert projector.links == ("/srv/models/qwen/mmproj-F16.gguf",)


def test_one_content_under_two_names_is_one_file() -> None:
    data: dict[str, Any] = spec_of("demo").model_dump(by_alias=True, exclude_unset=True)
    twice = changed("demo", ("models", {"smol": data["models"]["smol"], "other": data["models"]["smol"]}))
    (only,) = wanted(twice).models
    assert [link.split("/")[-2] for link in only.links] == ["other", "smol"]


@pytest.mark.parametrize(
    ("origin", "kind"),
    [
        ({"repo": "a/b", "revision": "0" * 40, "file": "sub/x.gguf"}, "hub"),
        ({"url": "https://models.test/x.gguf?download=1"}, "url"),
        ({"host-path": "/srv/x.gguf"}, "host-path"),
        ({"controller-path": "here/x.gguf"}, "controller-path"),
    ],
)
def test_every_origin_is_told(origin: dict[str, str], kind: str) -> None:
    model = {**origin, "sha256": "ab" * 32, "size": 5}
    (file,) = wanted(changed("demo", ("models.smol", model))).models
    assert file.origin["kind"] == kind
    assert file.links == ("/var/lib/llamarig/models/smol/x.gguf",)


def test_credentials_are_references() -> None:
    found = {entry.service: entry for entry in wanted(spec_of("twin")).credentials}
    assert set(found) == {"chat", "lan", "wide"}, "a keyless service has no key file"
    assert (found["chat"].kind, found["chat"].clients) == ("generated", ("desk", "phone"))
    assert (found["lan"].kind, found["lan"].source, found["lan"].clients) == ("file", "secrets/lan.keys", ())
    assert {entry.mode for entry in found.values()} == {"0600"}


def test_a_service_says_what_a_proof_may_expect() -> None:
    services = {service.name: service for service in wanted(spec_of("twin")).services}
    chat, local = services["chat"], services["local"]
    assert (chat.backend, chat.gpu_uuid, chat.vram_mib) == ("cuda", "GPU-01234567-89ab-cdef-0123-456789abcdef", 2000.0)
    assert (chat.keyed, chat.tls, chat.speculative, chat.port) == (True, False, True, 8080)
    assert (local.keyed, local.port, local.address) == (False, 0, "/run/llama-local/api.sock")
    assert services["lan"].alias.startswith("team")
    assert services["lan"].tls
    demo = wanted(spec_of("demo")).services[0]
    assert (demo.backend, demo.gpu_uuid, demo.vram_mib) == ("cpu", None, 0.0)


def test_the_release_knows_every_flag_and_no_value() -> None:
    flags = wanted(spec_of("twin")).release.flags
    assert {"--model", "--spec-type", "--ssl-key-file", "--mmproj", "--offline"} <= set(flags)
    assert all(flag.startswith("-") for flag in flags)


def test_flags_are_not_confused_with_values() -> None:
    argv = ("/x", "--alias", "--port", "--temp", "-1", "-a", "-b", "--port", "80")
    assert flags_of([argv]) == ("--alias", "--port", "--temp", "-a")
    assert value_of(argv, "--port") == "80"
    assert value_of(argv, "--none") is None


@pytest.mark.parametrize(
    ("listen", "connect"),
    [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("192.168.1.2", "192.168.1.2"), ("/run/x.sock", "/run/x.sock")],
)
def test_the_probe_connects_to_where_the_server_is(listen: str, connect: str) -> None:
    assert connect_address(listen) == connect


def test_changing_a_service_restarts_that_service_alone() -> None:
    before = {file.path: file for file in wanted(spec_of("twin")).files}
    after = {file.path: file for file in wanted(changed("twin", ("services.chat.context", 4096))).files}
    differ = [path for path in before if before[path].content != after[path].content]
    assert differ == ["/etc/systemd/system/llama-chat.service"]
    assert after[differ[0]].restarts == ("chat",)
