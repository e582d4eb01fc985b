"""What must hold for every architecture, and what becomes of headers that make no sense."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamarig.errors import RigError
from llamarig.gguf import Header
from llamarig.memory import Settings, Shape, estimate, families, read_shape
from llamarig.memory.draft_kv import draft_kv_bytes
from llamarig.memory.kv import kv_by_layer, kv_bytes
from llamarig.memory.recurrent import recurrent_by_layer, recurrent_bytes
from llamarig.memory.window import cut
from tests.support import models

NAMES = sorted(models.MODELS)
HEADERS = {name: models.header(name) for name in NAMES}
SHAPES = {name: read_shape(header) for name, header in HEADERS.items()}

ANY = st.builds(
    Settings,
    context=st.integers(256, 200_000),
    backend=st.sampled_from(["cuda", "cpu"]),
    parallel=st.integers(1, 8),
    kv_unified=st.booleans(),
    ubatch=st.integers(32, 1024),
    speculation=st.sampled_from([None, "draft-mtp", "eagle3"]),
    n_max=st.integers(1, 8),
)


def caches(shape: Shape, wanted: Settings) -> int:
    """Bytes of all caches and states of a model."""
    window = cut(wanted)
    parts = (kv_bytes(shape, wanted, window), recurrent_bytes(shape, wanted), draft_kv_bytes(shape, wanted, window))
    return sum(part.device + part.host for part in parts)


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(NAMES), wanted=ANY, more=st.integers(1, 50_000))
def test_caches_never_shrink_with_the_window_the_draft_or_the_slots(name: str, wanted: Settings, more: int) -> None:
    shape = SHAPES[name]
    least = caches(shape, wanted)
    assert caches(shape, replace(wanted, context=wanted.context + more)) >= least
    assert caches(shape, replace(wanted, n_max=wanted.n_max + 1)) >= least
    unified = replace(wanted, kv_unified=True)
    assert caches(shape, replace(unified, parallel=unified.parallel + 1)) >= caches(shape, unified)


@settings(max_examples=100, deadline=None)
@given(name=st.sampled_from(NAMES), wanted=ANY)
def test_blocks_sum_up_to_the_whole_wherever_they_lie(name: str, wanted: Settings) -> None:
    shape = SHAPES[name]
    kv, state = kv_bytes(shape, wanted, cut(wanted)), recurrent_bytes(shape, wanted)
    assert sum(kv_by_layer(shape, wanted, cut(wanted))) == kv.device + kv.host
    assert sum(recurrent_by_layer(shape, wanted)) == state.device + state.host
    assert (wanted.backend == "cpu") == (kv.device + state.device == 0)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NAMES), first=st.integers(0, 100))
def test_layers_on_the_host_leave_the_sum_alone(name: str, first: int) -> None:
    shape = SHAPES[name]
    whole, some = (Settings(context=8192, gpu_layers=layers) for layers in (None, first))
    assert caches(shape, whole) == caches(shape, some)


NUMBERS = st.one_of(
    st.integers(-(1 << 63), 1 << 64),
    st.integers(0, 600),
    st.lists(st.integers(-5, 600), max_size=600).map(tuple),
    st.lists(st.booleans(), max_size=600).map(tuple),
    st.floats(),
    st.booleans(),
    st.text(max_size=20),
)
ARCHITECTURES = [*sorted(families.KNOWN), "brand-new"]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(NAMES), data=st.data())
def test_a_header_with_any_number_is_read_or_refused_in_no_time(name: str, data: st.DataObject) -> None:
    metadata = dict(HEADERS[name].metadata)
    own = str(metadata["general.architecture"])
    arch = data.draw(st.sampled_from([own, *ARCHITECTURES]))
    metadata = {key.replace(f"{own}.", f"{arch}.", 1): value for key, value in metadata.items()}
    metadata["general.architecture"] = arch
    keys = sorted(key for key in metadata if key.startswith(f"{arch}."))
    for key in data.draw(st.lists(st.sampled_from(keys), max_size=3)):
        metadata[key] = data.draw(NUMBERS)
    wanted = Settings(context=4096, backend="cpu", parallel=2)
    began = time.monotonic()
    with suppress(RigError):
        assert caches(read_shape(replace(HEADERS[name], metadata=metadata)), wanted) >= 0
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("name", sorted({model.architecture: name for name, model in models.MODELS.items()}.values()))
def test_a_model_without_a_key_is_refused_or_estimated(name: str) -> None:
    header = HEADERS[name]
    for missing in [key for key in header.metadata if key.startswith(header.architecture)]:
        metadata = {key: value for key, value in header.metadata.items() if key != missing}
        _estimated(replace(header, metadata=metadata))


def _estimated(header: Header) -> None:
    with suppress(RigError):
        assert estimate(header, Settings(context=4096, backend="cpu")).host_mib > 0


@pytest.mark.parametrize("groups", [0, 3])
def test_groups_that_do_not_divide_a_state_space_layer_are_refused(groups: int) -> None:
    header = HEADERS["mamba2-370m"]
    wrong = header.metadata | {"mamba2.ssm.group_count": groups, "mamba2.ssm.time_step_rank": 32 + groups}
    with pytest.raises(RigError, match="make no layer"):
        estimate(replace(header, metadata=wrong), Settings(context=4096, backend="cpu"))


@pytest.mark.parametrize(("count", "used"), [(8, 0), (8, 9), (0, 0)])
def test_more_experts_used_than_there_are_or_none_are_refused(count: int, used: int) -> None:
    header = HEADERS["qwen3moe-30b-a3b"]
    wrong = header.metadata | {"qwen3moe.expert_count": count, "qwen3moe.expert_used_count": used}
    with pytest.raises(RigError, match="used experts"):
        read_shape(replace(header, metadata=wrong))
