"""Known error texts, bundles that are hostile or broken, and what leaves a machine."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamarig.catalog.error_texts import error_texts
from llamarig.catalog.pci_ids import generation_of, models
from llamarig.errors import RigError
from llamarig.prove.doctor import examine, examine_text, load_bundle
from llamarig.prove.doctor.bundle import read_bundle
from llamarig.prove.doctor.scrub import HIDDEN, scrub, scrub_text
from tests.support.doctor_bundles import HEALTHY, bundle


@pytest.mark.parametrize("code", error_texts())
def test_an_example_is_known_by_its_own_text_alone(code: str) -> None:
    assert [each.code for each in examine_text(error_texts()[code].example)] == [code]


def test_a_pasted_log_gives_each_cause_once() -> None:
    line = error_texts()["vram-exhausted"].example
    log = "\n".join([line, "all is well", line, "NVRM: Xid (PCI:0000:01:00): 31, pid=1"])
    assert [each.code for each in examine_text(log)] == ["vram-exhausted", "xid"]


@pytest.mark.parametrize(
    ("text", "code"),
    [("the moon is made of cheese", "no-error-in-text"), ("fatal: the moon is made of cheese", "text-not-known")],
)
def test_an_unknown_text_is_no_clean_bill(text: str, code: str) -> None:
    assert [each.code for each in examine_text(text)] == [code]


def test_an_unknown_error_beside_a_note_is_said_too() -> None:
    note = error_texts()["unused-mtp-head"].example
    assert [each.code for each in examine_text(f"{note}\nfatal: cheese")] == ["text-not-known", "unused-mtp-head"]


PASTED = {
    "allocating 100.00 MiB on device 0: cudaMalloc failed": "vram-exhausted",
    "CUDA error: out of memory": "vram-exhausted",
    "error: unknown argument: --n-gpu-layer": "unknown-argument",
    "unknown argument: --n-gpu-layer": "unknown-argument",
    "error while loading shared libraries: libcublas.so.12: cannot open shared object file": "cuda-library-not-found",
    "Out of memory: Killed process 123 (llama-server) total-vm:9000kB": "killed-for-memory",
    "Memory cgroup out of memory: Killed process 123 (llama-server)": "killed-for-memory",
    "llama-chat.service: A process of this unit has been killed by the OOM killer.": "killed-for-memory",
    "llama-chat.service: Failed with result 'oom-kill'.": "killed-for-memory",
    "Xid (PCI:0000:01:00): 79": "xid",
    "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 43, pid=1": "xid",
    "srv  operator(): unauthorized: Invalid API Key": "key-refused",
    "the request exceeds: exceed_context_size_error": "context-exceeded",
    "srv load_model: failed to load model, '/srv/models/q.gguf'": "model-not-loaded",
    "ggml_cuda_compute_forward: MUL_MAT failed": "cuda-error",
    "cannot access /dev/nvidia0: Permission denied": "permission-denied",
}


@pytest.mark.parametrize("text", PASTED)
def test_a_text_as_users_paste_it_is_known(text: str) -> None:
    assert [each.code for each in examine_text(text)] == [PASTED[text]]


def test_a_general_text_yields_to_an_exact_one() -> None:
    exact, general = error_texts()["vram-exhausted"].example, error_texts()["model-not-loaded"].example
    assert [each.code for each in examine_text(f"{exact}\n{general}")] == ["vram-exhausted"]


def test_what_healthy_servers_write_is_not_held_against_a_machine() -> None:
    line = "srv  operator(): unauthorized: Invalid API Key"
    assert examine(read_bundle(bundle(server_log=line))) == []


UNBOUNDED = re.compile(r"(?<!\\)(?:\\[SswWdD]|[\].)])[*+]|\{\d+,\}")
"""A repetition without an end of something other than one character."""


def test_patterns_read_a_line_in_linear_time() -> None:
    assert UNBOUNDED.search(r"lib\S*x")
    assert UNBOUNDED.search(r"(a|b)+")
    assert [code for code, known in error_texts().items() if UNBOUNDED.search(known.pattern)] == []


def test_long_and_many_lines_end_in_bounded_time() -> None:
    began = time.monotonic()
    assert examine_text("a" * 2_000_000 + "\n" + '"content": "" , ' * 20_000)[0].code == "no-error-in-text"
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("device", "generation"),
    [("0x2b85", "blackwell"), ("2684", "ada"), ("0x2d04", "blackwell"), ("1eb8", "turing"), ("20b5", "ampere"),
     ("2330", "hopper"), ("1b06", "pascal"), ("1db6", "volta"), ("0x0a20", None), ("", None)],
)  # fmt: skip
def test_the_generation_of_a_device(device: str, generation: str | None) -> None:
    assert generation_of(device) == generation


def test_named_cards_lie_in_their_generations_range() -> None:
    for device in models():
        assert generation_of(device) is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
PARTS = st.dictionaries(st.sampled_from([*HEALTHY["parts"], "other"]), JSON, max_size=6)


@given(parts=PARTS, kernels=JSON, links=JSON, nodes=JSON)
def test_whatever_a_host_says_there_is_an_answer(parts: Any, kernels: Any, links: Any, nodes: Any) -> None:
    found = examine(read_bundle({"parts": parts, "kernels": kernels, "links": links, "nodes": nodes}))
    for each in found:
        assert all(character.isprintable() for character in each.evidence + each.what)


def test_terminal_codes_do_not_reach_the_screen() -> None:
    made = bundle(kernel_log="[1] NVRM: Xid (PCI:0000:01:00): 79, \x1b[2J\x1b]0;owned\x07")
    (found,) = examine(read_bundle(made))
    assert "\x1b" not in found.evidence


def test_a_width_that_is_no_number_is_none() -> None:
    made = bundle()
    made["links"][0]["current_link_width"] = "\u00b2"
    made["nodes"] = ["/dev/nvidia-\x1b]0;PWN\x07"]
    found = examine(read_bundle(made))
    assert {each.code for each in found} == {"device-nodes-missing"}
    assert all("\x1b" not in each.evidence for each in found)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": 2, "parts": {}}', '{"schema": 1}', "[" * 100_000])
def test_what_is_no_bundle_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bundle.json"
    path.write_text(text)
    with pytest.raises(RigError, match="cannot be read") as caught:
        load_bundle(path)
    assert "--save" in caught.value.fix


def test_a_saved_bundle_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "bundle.json"
    path.write_text(json.dumps(scrub(bundle(kernel_log="[ 800.0] PM: suspend exit"))))
    assert [each.code for each in examine(load_bundle(path))] == ["was-suspended"]


SECRETS = [
    "Authorization: Bearer 0123456789abcdef0123456789abcdef",
    "api_key=0123456789abcdef0123456789abcdef",
    '"api-key": "0123456789abcdef0123456789abcdef"',
    "hf_0123456789abcdef0123456789abcdef",
    "sk-0123456789abcdef0123456789abcdef",
    "password: 0123456789abcdef",
    "-----BEGIN OPENSSH PRIVATE KEY-----\n0123456789abcdef\n-----END OPENSSH PRIVATE KEY-----",
    "GPU-01234567-89ab-cdef-0123-456789abcdef",
    "somebody@example.org",
    "https://bob:0123456789abcdef@host/x",
    "Authorization: Basic 0123456789abcdef==",
    '{\\"password\\": \\"0123456789abcdef\\"}',
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n0123456789abcdef\n-----END PGP PRIVATE KEY BLOCK-----",
    "eyJhbGciOi.0123456789abcdef.x",
    "AKIA0123456789ABCDEF somebody@example.org",
    "passphrase: 0123456789abcdef",
    "pwd=0123456789abcdef",
    "psk=0123456789abcdef",
    "credential=0123456789abcdef",
    "Cookie: session=0123456789abcdef",
    'password="my 0123456789abcdef phrase"',
    "password=ab,0123456789abcdef",
    "--api-key 0123456789abcdef",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_does_not_leave_the_machine(secret: str) -> None:
    clean = json.dumps(scrub(bundle(server_log=f"before {secret} after")))
    assert "0123456789abcdef" not in clean
    assert "somebody" not in clean
    assert "89ab-cdef" not in clean
    assert HIDDEN in clean


def test_addresses_go_from_logs_and_versions_stay() -> None:
    clean = scrub(bundle(server_log="request: GET / 192.168.7.9 200", packages="ii  cuda-nvcc-13-0 13.0.88.1-1"))
    assert "192.168" not in json.dumps(clean)
    assert "13.0.88.1-1" in clean["parts"]["packages"]["text"]


def test_short_values_of_telling_names_go_too() -> None:
    assert "abc" not in scrub_text("password=abc")
    assert "abc" not in scrub_text("pin: abc")


@pytest.mark.parametrize(
    "address", ["fe80::1ff:fe23:4567:890a", "2001:db8::1", "aa-bb-cc-dd-ee-ff", "aa:bb:cc:dd:ee:ff"]
)
def test_other_addresses_go_from_logs(address: str) -> None:
    assert address not in json.dumps(scrub(bundle(server_log=f"from {address} port")))


def test_a_time_of_day_stays() -> None:
    assert "12:34:56" in json.dumps(scrub(bundle(server_log="12:34:56 main: ready")))


def test_places_on_the_bus_stay() -> None:
    line = "[ 1.0] NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=x"
    assert scrub(bundle(kernel_log=line))["parts"]["kernel-log"]["text"] == line


def test_names_of_keys_are_cleaned_too() -> None:
    assert "0123456789abcdef" not in json.dumps(scrub({"parts": {"Bearer 0123456789abcdef": {}}}))


@pytest.mark.parametrize("piece", ["token ", "a.", "a-", "1.", "1:", "password=", "-----BEGIN PRIVATE KEY-----", "eyJ"])
def test_cleaning_takes_linear_time(piece: str) -> None:
    began = time.process_time()
    scrub(bundle(server_log=piece * 200_000))
    assert time.process_time() - began < 3


def test_what_is_no_secret_stays() -> None:
    line = "ii  libnvidia-compute 610.57.04-1"
    assert scrub_text(line) == line
    assert re.search("token", scrub_text("prompt tokens: 12"))
