from __future__ import annotations

from typing import Any

import pytest

from llamarig.render import wanted_state
from llamarig.render.sandbox import GPU_DEVICES, UNPROVEN_ON_GPU
from llamarig.render.wanted import Wanted
from llamarig.spec.host import HostSpec
from tests.golden.cases import HERE
from tests.support.rendering.composed import changed, plan_of, spec_of
from tests.support.rendering.systemd_reader import arguments, settings, values, words

ALL = ("demo/chat", "twin/chat", "twin/lan", "twin/wide", "twin/local")
GPU = ALL[1:]


def wanted(spec: HostSpec) -> Wanted:
    return wanted_state(spec, plan_of(spec), HERE)


def unit(service: str, *changes: tuple[str, Any]) -> str:
    host, name = service.split("/")
    files = {file.path: file.content for file in wanted(changed(host, *changes)).files}
    return files[f"/etc/systemd/system/llama-{name}.service"]


@pytest.mark.parametrize("service", ALL)
def test_the_unit_starts_exactly_the_planned_program(service: str) -> None:
    host, name = service.split("/")
    plan = plan_of(spec_of(host)).services[name]
    text = unit(service)
    assert arguments(values(text, "ExecStart")[0]) == [
        "/opt/llamarig/libexec/start-probe",
        "run",
        f"/etc/llamarig/services/{name}.json",
        "--",
        *plan.argv,
    ]
    given = [word for value in values(text, "Environment") for word in words(value)]
    assert given == [f"{key}={value}" for key, value in sorted(plan.environment.items())]


@pytest.mark.parametrize("service", ALL)
def test_what_every_unit_has(service: str) -> None:
    name = service.split("/")[1]
    found = {(setting.key, setting.value) for setting in settings(unit(service))}
    assert {
        ("Type", "exec"),
        ("User", f"llama-{name}"),
        ("Group", f"llama-{name}"),
        ("NoNewPrivileges", "yes"),
        ("CapabilityBoundingSet", ""),
        ("DevicePolicy", "closed"),
        ("ProtectSystem", "strict"),
        ("LimitCORE", "0"),
        ("MemoryMax", "1024M"),
        ("TasksMax", "2048"),
        ("OOMPolicy", "kill"),
        ("Restart", "always"),
        ("RestartPreventExitStatus", "78 243"),
        ("RestartMaxDelaySec", "120"),
        ("TimeoutStartSec", "150"),
        ("StartLimitBurst", "10"),
        ("ExecStartPost", f"/opt/llamarig/libexec/start-probe after /etc/llamarig/services/{name}.json"),
    } <= found


@pytest.mark.parametrize("service", ALL)
def test_no_setting_is_given_twice_by_mistake(service: str) -> None:
    keys = [setting.key for setting in settings(unit(service))]
    twice = {key for key in keys if keys.count(key) > 1}
    assert twice <= {"Environment", "LoadCredential", "SystemCallFilter", "DeviceAllow"}


def test_a_cpu_service_sees_no_device_at_all() -> None:
    text = unit("demo/chat")
    assert values(text, "PrivateDevices") == ["yes"]
    assert values(text, "DeviceAllow") == []


@pytest.mark.parametrize("service", GPU)
def test_a_gpu_service_sees_nvidia_nodes_and_no_others(service: str) -> None:
    text = unit(service)
    assert values(text, "DeviceAllow") == [f"{device} rw" for device in GPU_DEVICES]
    assert all(device.startswith("char-nvidia") for device in GPU_DEVICES)


def test_what_is_unproven_on_a_gpu_is_really_in_the_units() -> None:
    found = {(setting.key, setting.value) for setting in settings(unit("twin/chat"))}
    for directive in UNPROVEN_ON_GPU:
        key, _, value = directive.partition("=")
        if key == "DeviceAllow":
            assert {(key, f"{device} rw") for device in value.split()} <= found
        else:
            assert (key, value) in found


def test_loopback_admits_the_host_alone() -> None:
    text = unit("twin/chat")
    assert (values(text, "IPAddressDeny"), values(text, "IPAddressAllow")) == (["any"], ["localhost"])
    assert values(text, "SocketBindAllow") == ["tcp:8080"]


def test_networks_are_admitted_as_given_beside_the_host() -> None:
    text = unit("twin/lan")
    assert values(text, "IPAddressDeny") == ["any"]
    assert values(text, "IPAddressAllow") == ["localhost 192.168.10.0/24 fd00:10::/64"]


def test_the_start_probe_reaches_a_server_on_an_address_outside_the_networks() -> None:
    listen = {"address": "192.168.10.2", "port": 1, "plaintext": "accepted", "allow": ["10.8.0.0/16"]}
    text = unit("twin/chat", ("services.chat.listen", listen))
    assert values(text, "IPAddressAllow") == ["localhost 192.168.10.2 10.8.0.0/16"]


def test_without_networks_any_may_connect() -> None:
    assert values(unit("twin/wide"), "IPAddressDeny") == []


def test_a_socket_service_has_no_network() -> None:
    text = unit("twin/local")
    assert values(text, "PrivateNetwork") == ["yes"]
    assert values(text, "RestrictAddressFamilies") == ["AF_UNIX"]
    assert values(text, "RuntimeDirectory") == ["llama-local"]
    assert values(text, "LoadCredential") == []


def test_a_socket_elsewhere_opens_its_directory_alone() -> None:
    text = unit("twin/local", ("services.local.listen.address", "/srv/my sockets/api.sock"))
    assert values(text, "ReadWritePaths") == ['"/srv/my sockets"']
    assert values(text, "RuntimeDirectory") == []


def test_secrets_reach_the_server_as_credentials() -> None:
    assert values(unit("twin/lan"), "LoadCredential") == [
        "keys:/etc/llamarig/keys/lan.keys",
        "tls-cert:/etc/ssl/certs/twin.pem",
        "tls-key:/etc/ssl/private/twin key 100%%.pem",
    ]


@pytest.mark.parametrize(
    ("place", "home", "bound"),
    [
        ("/var/lib/llamarig/models", "yes", []),
        ("/srv/models", "yes", []),
        ("/homestead/models", "yes", []),
        ("/home/me/my models", "tmpfs", ['"/home/me/my models"']),
        ("/root/models", "tmpfs", ["/root/models"]),
        ("/var/tmp/models", "yes", ["/var/tmp/models"]),
    ],
)
def test_models_below_hidden_directories_are_shown_read_only(place: str, home: str, bound: list[str]) -> None:
    text = unit("demo/chat", ("models-dir", place))
    assert values(text, "ProtectHome") == [home]
    assert values(text, "BindReadOnlyPaths") == bound


def test_memory_is_locked_only_when_asked_for() -> None:
    assert values(unit("twin/lan"), "LimitMEMLOCK") == ["infinity"]
    assert values(unit("twin/chat"), "LimitMEMLOCK") == []


def test_only_services_beyond_the_host_wait_for_the_network() -> None:
    assert "network-online.target" in values(unit("twin/lan"), "After")[0]
    assert "network-online.target" not in values(unit("twin/chat"), "After")[0]
    assert "nvidia-persistenced.service" in values(unit("twin/chat"), "After")[0]
    assert "nvidia" not in values(unit("demo/chat"), "After")[0]
