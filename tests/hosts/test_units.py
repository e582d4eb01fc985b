"""Units on a real Debian 13 machine: systemd reads, judges and runs them."""

from __future__ import annotations

import json
import random
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from lab import Host, Lab

from llamarig.render import wanted_state
from llamarig.render.quoting import command_line, quote
from llamarig.render.sandbox import UNPROVEN_ON_GPU
from llamarig.render.wanted import Wanted
from tests.golden.cases import HERE, SPECS, wanted_of
from tests.support.rendering.composed import changed, plan_of, spec_of, with_argv
from tests.support.rendering.kinds import BAR, bar, units

KEY = "a-key-of-32-characters-for-tests"
ALPHABET = " \t\n\r\"'\\%$;#{}[]()=-@:+!|&<>*?~`^,./azAZ09nxuUé\u00df\u00a0\u2028漢😀\x01\x1b\x7f"
STAND_IN = Path(__file__).resolve().parents[1] / "support" / "rendering" / "stand_in_server.py"
MANY_PAUSES = 1.0
"""Seconds in which a unit that is tried again every 20 ms has been tried many times."""


@pytest.fixture(scope="module")
def bare(lab: Lab) -> Iterator[Host]:
    host = lab.host("units", fresh=True)
    host.exec("mkdir -p /opt/llamarig/releases/stand-in/bin && ln -s releases/stand-in /opt/llamarig/current")
    host.write("/opt/llamarig/current/bin/llama-server", STAND_IN.read_bytes(), mode=0o755)
    yield host
    lab.discard("units")


def nasty(seed: int, count: int) -> list[str]:
    """Random text in which every character means something to systemd, and a few fixed traps."""
    chance = random.Random(seed)
    traps = ["", " ", ";", "\\", "\\;", "%%n", "$HOME", "${HOME}", "$$", "#", "--", "-", "@x", "a\\", '"', "'", "{a,b}"]
    return traps + ["".join(chance.choices(ALPHABET, k=chance.randint(1, 24))) for _ in range(count - len(traps))]


def run_once(host: Host, unit: str) -> None:
    host.write("/etc/systemd/system/once.service", unit.encode())
    host.exec("systemctl daemon-reload && systemctl start once.service")


def test_any_argument_and_variable_survives_systemd(bare: Host, record_property: Callable[[str, object], None]) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    record_property("seed", seed)
    values = nasty(seed, 400)
    # systemd itself refuses variables with control characters; a spec holds none either.
    variables = {f"V{at}": re.sub(r"[\x00-\x1f\x7f]", "_", value) for at, value in enumerate(values)}
    bare.write(
        "/opt/dump.py",
        b"import json, os, sys\n"
        b"data = [sys.argv[1:], {k: v for k, v in os.environ.items() if k[0] == 'V'}]\n"
        b"open('/run/dump.json', 'w').write(json.dumps(data))\n",
    )
    environment = "".join(f"Environment={quote(f'{name}={value}')}\n" for name, value in variables.items())
    start = command_line(["/usr/bin/python3", "-X", "utf8", "/opt/dump.py", *values])
    run_once(bare, f"[Service]\nType=oneshot\n{environment}ExecStart={start}\n")
    seen_argv, seen_environment = json.loads(bare.exec("cat /run/dump.json").output)
    assert seen_argv == values, f"seed {seed}"
    assert seen_environment == variables, f"seed {seed}"


def test_without_quoting_the_same_values_do_not_survive(bare: Host) -> None:
    """The broken twin of the test above."""
    run_once(bare, "[Service]\nType=oneshot\nExecStart=/usr/bin/python3 -X utf8 /opt/dump.py a  b $HOME %n\n")
    seen, _ = json.loads(bare.exec("cat /run/dump.json").output)
    assert seen != ["a  b", "$HOME", "%n"]


@pytest.mark.parametrize("name", SPECS)
def test_systemd_finds_no_fault_in_any_golden_unit(bare: Host, name: str) -> None:
    install(bare, wanted_of(name))
    for file in wanted_of(name).files:
        if file.path.endswith(".service"):
            assert verify(bare, file.path, file.content) == (0, "")


def verify(host: Host, path: str, content: str) -> tuple[int, str]:
    host.write(path, content.encode())
    done = host.exec(f"systemd-analyze verify --man=no --recursive-errors=one {path}", check=False)
    return done.code, done.output.strip()


@pytest.mark.parametrize("fault", ["NoSuchSetting=yes", "ProtectSystem=perhaps", "ExecStartPre=/no/such/program"])
def test_systemd_finds_a_planted_fault(bare: Host, fault: str) -> None:
    unit = next(file for file in wanted_of("demo").files if file.path.endswith(".service"))
    install(bare, wanted_of("demo"))
    content = unit.content.replace("Type=exec\n", f"Type=exec\n{fault}\n")
    code, output = verify(bare, unit.path.replace("llama-chat", "llama-broken"), content)
    assert code != 0 or output
    assert "llama-broken" in output
    bare.exec("rm /etc/systemd/system/llama-broken.service")


def score(host: Host, content: str) -> float:
    host.write("/root/llama-scored.service", content.encode())
    output = host.exec("systemd-analyze security --offline=yes --no-pager /root/llama-scored.service").output
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", output)
    assert found, output
    return float(found.group(1))


@pytest.mark.parametrize("kind", units())
def test_every_kind_of_unit_is_confined(bare: Host, kind: str) -> None:
    assert score(bare, units()[kind]) <= bar(kind)


def test_a_unit_that_lost_a_directive_scores_worse(bare: Host) -> None:
    text = units()["GPU + any network"]
    assert score(bare, text.replace("ProtectSystem=strict\n", "").replace("CapabilityBoundingSet=\n", "")) > BAR
    assert UNPROVEN_ON_GPU


def install(host: Host, wanted: Wanted) -> None:
    """The files, users and directories of a host, as the roles would put them; keys beside them."""
    lines = ["set -e"]
    for user in wanted.users:
        lines.append(f"id {user.name} >/dev/null 2>&1 || useradd -r -U -M -d {user.home} -s {user.shell} {user.name}")
    lines += [f"install -d -m {mode} -o {owner} -g {group} {path}" for path, mode, owner, group in wanted.directories]
    host.exec("\n".join(lines))
    for file in wanted.files:
        host.write(file.path, file.content.encode(), mode=int(file.mode, 8))
    for entry in wanted.credentials:
        host.write(entry.path, f"# test\n{KEY}\n".encode(), mode=0o600)
    for model in wanted.models:
        for link in model.links:
            host.write(link, b"GGUF")
    host.exec("systemctl daemon-reload; systemctl reset-failed")


@pytest.fixture
def served(bare: Host) -> Iterator[Wanted]:
    """The demo host's unit, with an alias and a variable that are hard to pass on."""
    spec = spec_of("demo")
    plan = plan_of(spec)
    nasty_alias = "a \"b\" 'c' 100% $HOME \\ é; #x"
    argv = plan.services["chat"].argv
    at = argv.index("--alias") + 1
    plan = with_argv(plan, "chat", (*argv[:at], nasty_alias, *argv[at + 1 :]))
    service = replace(plan.services["chat"], environment={"GGML_NOTE": nasty_alias})
    wanted = wanted_state(spec, replace(plan, services={"chat": service}), HERE)
    install(bare, wanted)
    yield wanted
    bare.exec("systemctl stop llama-chat; systemctl reset-failed", check=False)


@pytest.fixture
def impatient(bare: Host, served: Wanted) -> Iterator[Wanted]:
    """The same unit with shorter pauses between its starts, and nothing else: with its own, ten take ten minutes."""
    drop_in = "/etc/systemd/system/llama-chat.service.d/quick.conf"
    bare.write(drop_in, b"[Service]\nRestartSec=20ms\nRestartMaxDelaySec=40ms\n")
    bare.exec("systemctl daemon-reload")
    yield served
    bare.exec(f"systemctl stop llama-chat; rm {drop_in}; systemctl daemon-reload", check=False)


def show(host: Host, *names: str) -> list[str]:
    return [host.exec(f"systemctl show -p {name} --value llama-chat").output.strip() for name in names]


def until(host: Host, name: str, value: str, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while show(host, name) != [value]:
        assert time.monotonic() < deadline, host.exec("journalctl -u llama-chat --no-pager -n 30").output
        time.sleep(0.3)


def journal(host: Host) -> str:
    return host.exec("journalctl --sync; journalctl -u llama-chat -o short --no-pager").output


def test_the_server_gets_exactly_what_was_planned_whatever_the_manager_was_told(bare: Host, served: Wanted) -> None:
    bare.exec("systemctl set-environment LLAMA_ARG_PORT=1 GGML_FUTURE=1 MTMD_X=1 AIP_MODE=PREDICTION GGML_NOTE=other")
    try:
        bare.exec("systemctl start llama-chat")
        seen = json.loads(
            bare.exec(
                "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8080/seen').read().decode())\""
            ).output
        )
    finally:
        bare.exec("systemctl unset-environment LLAMA_ARG_PORT GGML_FUTURE MTMD_X AIP_MODE GGML_NOTE")
    service = served.services[0]
    assert seen["argv"] == list(service.argv)
    # Python itself adds LC_CTYPE where no locale is set (PEP 538).
    assert {name: value for name, value in seen["environment"].items() if name != "LC_CTYPE"} == service.environment
    assert "variable LLAMA_ARG_PORT is not planned, dropped" in journal(bare)


def test_a_killed_server_comes_back(bare: Host, served: Wanted) -> None:
    bare.exec("systemctl start llama-chat")
    (before,) = show(bare, "MainPID")
    bare.exec(f"kill -9 {before}")
    until(bare, "NRestarts", "1")
    until(bare, "ActiveState", "active")
    assert show(bare, "MainPID") != [before]


@pytest.mark.parametrize("content", [b"", b"# only a comment\n", b"short\n"])
def test_a_key_file_without_a_good_key_never_starts_and_is_not_tried_again(
    bare: Host, impatient: Wanted, content: bytes
) -> None:
    bare.write(impatient.credentials[0].path, content, mode=0o600)
    assert bare.exec("systemctl start llama-chat", check=False).code != 0
    time.sleep(MANY_PAUSES)
    assert show(bare, "ActiveState", "NRestarts", "ExecMainStatus") == ["failed", "0", "78"]


def test_a_key_file_that_is_gone_is_not_tried_again(bare: Host, impatient: Wanted) -> None:
    bare.exec(f"rm {impatient.credentials[0].path}")
    assert bare.exec("systemctl start llama-chat", check=False).code != 0
    time.sleep(MANY_PAUSES)
    assert show(bare, "ActiveState", "NRestarts") == ["failed", "0"]


def test_a_taken_port_is_named_and_tried_again_until_it_is_free(bare: Host, served: Wanted) -> None:
    listen = "import socket,time; s=socket.create_server(('127.0.0.1',8080)); time.sleep(600)"
    bare.exec(f'systemd-run --unit=thief python3 -c "{listen}"; sleep 1')
    assert bare.exec("systemctl start llama-chat", check=False).code != 0
    assert "127.0.0.1 port 8080 is taken by a process of user root" in journal(bare)
    bare.exec("systemctl stop thief")
    until(bare, "ActiveState", "active")


@pytest.mark.parametrize(("network", "reached"), [("{address}/32", True), ("192.0.2.0/24", False)])
@pytest.mark.parametrize("listen", ["0.0.0.0", "{address}"])
def test_only_the_networks_that_may_connect_can(
    bare: Host, served: Wanted, network: str, listen: str, reached: bool
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((bare.address, 1))
        own = str(probe.getsockname()[0])
    where = {"address": listen.format(address=bare.address), "port": 8080, "plaintext": "accepted"}
    spec = changed("demo", ("services.chat.listen", {**where, "allow": [network.format(address=own)]}))
    install(bare, wanted_state(spec, plan_of(spec), HERE))
    bare.exec("systemctl start llama-chat")
    if reached:
        socket.create_connection((bare.address, 8080), timeout=5).close()
    else:
        with pytest.raises(TimeoutError):
            socket.create_connection((bare.address, 8080), timeout=2)


def test_a_server_that_asks_for_no_key_does_not_count_as_started(bare: Host, served: Wanted) -> None:
    open_server = STAND_IN.read_text().replace("not in keys", "is 0")
    bare.write("/opt/llamarig/current/bin/llama-server", open_server.encode(), mode=0o755)
    try:
        assert bare.exec("systemctl start llama-chat", check=False).code != 0
        assert "got 200 instead of 401" in journal(bare)
    finally:
        bare.exec("systemctl stop llama-chat")
        bare.write("/opt/llamarig/current/bin/llama-server", STAND_IN.read_bytes(), mode=0o755)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_keeps_failing_is_given_up(bare: Host) -> None:
    bare.write("/opt/llamarig/current/bin/llama-server", b"#!/bin/sh\nexit 1\n", mode=0o755)
    try:
        bare.exec("systemctl start llama-chat", check=False)
        until(bare, "SubState", "failed", 60.0)
        assert show(bare, "ActiveState", "NRestarts") == ["failed", "10"]
        assert "Start request repeated too quickly" in journal(bare)
    finally:
        bare.write("/opt/llamarig/current/bin/llama-server", STAND_IN.read_bytes(), mode=0o755)


def test_without_its_program_a_service_says_so_at_once(bare: Host, served: Wanted) -> None:
    bare.exec("mv /opt/llamarig/current/bin/llama-server /root/away")
    try:
        assert "Assertion failed" in bare.exec("systemctl start llama-chat", check=False).output
    finally:
        bare.exec("mv /root/away /opt/llamarig/current/bin/llama-server")
