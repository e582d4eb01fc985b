"""Where tensors lie: the allocator's rules one by one."""

from __future__ import annotations

from llamarig.memory.graph import ops
from llamarig.memory.graph.allocator import Allocator, Arena
from llamarig.memory.graph.tensors import Graph, Tensor, graph_input, stored

ROW = 1024
"""Bytes of a tensor of 256 f32 elements."""


def size_of(*results: Tensor) -> int:
    graph = Graph()
    for result in results:
        graph.expand(result)
    for tensor in (*graph.nodes, *graph.leafs):
        tensor.backend = 0
    return Allocator([32]).run(graph.nodes, graph.leafs)[0]


def given() -> Tensor:
    return graph_input("f32", 256)


def made(*sources: Tensor) -> Tensor:
    """A result that takes memory of its own."""
    return Tensor("mul_mat", "f32", (256, 1, 1, 1), sources)


def test_the_smallest_free_block_that_is_big_enough_is_taken() -> None:
    arena = Arena(32)
    wide, _, narrow, _ = arena.take(128), arena.take(32), arena.take(64), arena.take(32)
    arena.give(wide, 128)
    arena.give(narrow, 64)
    assert arena.take(64) == narrow
    assert arena.take(64) == wide
    assert arena.peak == 256


def test_the_last_of_equal_blocks_is_taken() -> None:
    arena = Arena(32)
    first, _, second, _ = arena.take(64), arena.take(32), arena.take(64), arena.take(32)
    arena.give(first, 64)
    arena.give(second, 64)
    assert arena.take(64) == second


def test_the_end_is_taken_when_nothing_else_fits_even_if_it_is_free_again() -> None:
    arena = Arena(32)
    start = arena.take(64)
    arena.give(start, 64)
    assert arena.take(96) == 0
    assert arena.peak == 96


def test_freed_neighbours_become_one_block() -> None:
    arena = Arena(32)
    parts = [arena.take(32) for _ in range(4)]
    for part in (parts[0], parts[2], parts[1]):
        arena.give(part, 32)
    assert arena.take(96) == 0


def test_a_result_that_nobody_reads_any_more_gives_way() -> None:
    assert size_of(made(made(made(made())))) == 2 * ROW


def test_an_operation_in_place_takes_the_place_of_an_input_that_it_alone_reads() -> None:
    assert size_of(ops.elementwise("unary", made())) == ROW


def test_one_that_is_not_in_place_takes_its_own() -> None:
    assert size_of(ops.elementwise("norm", made())) == 2 * ROW


def test_not_when_something_else_reads_it_later() -> None:
    source = made()
    active = ops.elementwise("unary", source)
    assert size_of(active, made(source, active)) == 3 * ROW


def test_not_when_it_is_an_output() -> None:
    source = made()
    source.is_output = True
    assert size_of(ops.elementwise("unary", source)) == 2 * ROW


def test_not_when_its_extent_is_another() -> None:
    wide = Tensor("add", "f32", (512, 1, 1, 1), (made(),))
    assert size_of(wide) == ROW + 2 * ROW


def test_not_when_it_is_a_view() -> None:
    assert size_of(ops.elementwise("rope", ops.reshape(made(), 16, 16))) == 2 * ROW


def test_a_view_keeps_its_root_alive() -> None:
    assert size_of(made(made(made(ops.view(made(), (128, 1, 1, 1)))))) == 2 * ROW
    part, later = ops.view(made(), (128, 1, 1, 1)), made(made())
    assert size_of(part, later, made(later, part)) == 3 * ROW


def test_an_output_is_never_given_away() -> None:
    source = made()
    source.is_output = True
    assert size_of(made(made(made(source)))) == 3 * ROW


def test_caches_and_weights_take_nothing() -> None:
    cache = stored(0, (256, 64, 1, 1), 256 * 64 * 2, kind="f16", weight=False)
    written = ops.set_rows(cache, made(given()), graph_input("i64", 1))
    assert size_of(written) == 2 * ROW + 32


def test_sizes_are_rounded_up_to_the_alignment() -> None:
    graph = Graph()
    graph.expand(made(graph_input("f32", 1)))
    for tensor in (*graph.nodes, *graph.leafs):
        tensor.backend = 0
    assert Allocator([128]).run(graph.nodes, graph.leafs) == [128 + ROW]


def test_only_cards_stage() -> None:
    for backend, taken in ((0, [ROW + 5120, 0]), (1, [0, ROW])):
        graph = Graph()
        staged = graph.expand(made())
        staged.staging, staged.backend = 5120, backend
        assert Allocator([128, 32]).run(graph.nodes, graph.leafs) == taken
