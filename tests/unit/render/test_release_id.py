from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamarig.compare.release_id import canonical, release_id
from llamarig.render.build import cmake_options, release
from llamarig.spec.host import HostSpec
from tests.support.rendering.composed import changed, spec_of

DEMO = "4df29be4f-10ce0152b096"
"""Of inventory/demo.yml. When it changes, every host builds its engine anew: do so on purpose only."""


def identity(spec: HostSpec) -> str:
    return release(spec, ()).id


def test_the_demo_release_keeps_its_id() -> None:
    assert identity(spec_of("demo")) == DEMO


def test_an_id_names_the_commit_and_hashes_the_rest() -> None:
    made = release(spec_of("twin"), ("--model",))
    assert re.fullmatch(r"4df29be4f-[0-9a-f]{12}", made.id)
    assert made.label == made.id
    assert made.cmake[-1] == f"-DLLAMA_BUILD_COMMIT={made.id}"
    assert "-DLLAMA_BUILD_NUMBER=10454" in made.cmake
    assert made.id == release_id(made.inputs)


SHA = "ab" * 32
CHANGES: dict[str, tuple[tuple[str, Any], ...]] = {
    "commit": (("engine.commit", "0c1e57098"),),
    "build number": (("engine.build-number", 10455),),
    "source kind": (("engine.source", {"archive": "llama_cpp_python==0.3.35", "sha256": SHA}),),
    "source ref": (("engine.source.sdist", "llama_cpp_python==0.3.36"),),
    "source hash": (("engine.source.sha256", SHA),),
    "subdir": (("engine.source.subdir", "vendor/other"),),
    "patch hash": (("engine.patches", [{"file": "a.patch", "sha256": SHA}]),),
    "patch order": (
        ("engine.patches", [{"file": "patches/local.patch", "sha256": SHA}, {"file": "b.patch", "sha256": "unlocked"}]),
    ),
    "no patches": (("engine.patches", []),),
    "architectures": (("engine.architectures", ["89-real", "120a-real"]),),
    "one architecture": (("engine.architectures", ["89-real"]),),
    "options": (("engine.build.options", {"GGML_CUDA_FA_ALL_QUANTS": False}),),
    "openssl": (("engine.build.openssl", False),),
    "toolkit": (("cuda.version", "13.0.88"),),
    "release": (("os.release", "12"),),
    "distribution": (("os.distribution", "ubuntu"), ("os.release", "24.04")),
    "backend": (("engine.backend", "cpu"), ("engine.architectures", [])),
}


def test_each_input_changes_the_id() -> None:
    ids = {"as it is": identity(spec_of("twin"))}
    for what, changes in CHANGES.items():
        ids[what] = identity(changed("twin", *changes))
    assert len(set(ids.values())) == len(ids), ids


@pytest.mark.parametrize(
    "changes",
    [
        (("services.chat.context", 8192),),
        (("engine.build.jobs", 7),),
        (("engine.build.job-mib", 900),),
        (("driver.version", "610.99.01"),),
        (("memory.total-mib", 1000),),
        (("models-dir", "/mnt/models"),),
    ],
)
def test_what_is_no_input_leaves_the_id_alone(changes: tuple[tuple[str, Any], ...]) -> None:
    assert identity(changed("twin", *changes)) == identity(spec_of("twin"))


def test_the_toolkit_does_not_matter_without_cuda() -> None:
    cpu = (("engine.backend", "cpu"), ("engine.architectures", []))
    assert identity(changed("twin", *cpu)) == identity(changed("twin", *cpu, ("cuda.version", "13.0.88")))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=5), st.dictionaries(st.text(max_size=5), JSON, max_size=5))
def test_different_inputs_have_different_ids_and_equal_ones_equal(one: dict[str, Any], two: dict[str, Any]) -> None:
    first, second = {**one, "commit": "4df29be4f"}, {**two, "commit": "4df29be4f"}
    reordered = dict(reversed(first.items()))
    assert release_id(first) == release_id(reordered)
    same = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert (release_id(first) == release_id(second)) == same


def test_canonical_json_is_plain_ascii_without_spaces() -> None:
    assert canonical({"b": "é", "a": [1, None]}) == b'{"a":[1,null],"b":"\\u00e9"}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"a": float("nan")})


def test_cuda_options_name_toolkit_compiler_and_architectures() -> None:
    options = cmake_options(spec_of("twin"))
    assert options["CMAKE_CUDA_ARCHITECTURES"] == "120a-real;89-real"
    assert options["CMAKE_CUDA_COMPILER"] == "/opt/llamarig/cuda/12.9.86/bin/nvcc"
    assert options["CMAKE_CUDA_HOST_COMPILER"] == "g++-14"
    assert options["GGML_CUDA_FA_ALL_QUANTS"] == "ON"


def test_the_users_options_win_and_downloads_are_off() -> None:
    options = cmake_options(changed("demo", ("engine.build", {"options": {"GGML_NATIVE": True, "GGML_X": "a;b"}})))
    assert (options["GGML_NATIVE"], options["GGML_X"]) == ("ON", "a;b")
    assert (options["LLAMA_BUILD_UI"], options["LLAMA_USE_PREBUILT_UI"]) == ("OFF", "OFF")
    assert not [name for name in options if "CUDA" in name]
