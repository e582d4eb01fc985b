"""Which backend computes what, and what is copied."""

from __future__ import annotations

from llamarig.memory.graph import ops
from llamarig.memory.graph.schedule import Machine, schedule
from llamarig.memory.graph.tensors import Graph, Tensor, graph_input, stored

CARD, HOST = 0, 1


def weight(place: int, rows: int = 256, columns: int = 256) -> Tensor:
    return stored(place, (columns, rows, 1, 1), rows * columns * 2)


def run(result: Tensor, machine: Machine) -> tuple[Graph, list[Tensor], list[Tensor]]:
    graph = Graph()
    graph.expand(result)
    nodes, leafs = schedule(graph, machine)
    return graph, nodes, leafs


def copies(tensors: list[Tensor], backend: int, size: int) -> list[Tensor]:
    """Copies of a tensor of ``size`` bytes: tensors without an operation that a backend holds."""
    return [
        item
        for item in tensors
        if item.op == "none" and item.root is None and item.backend == backend and item.size == size and item.lies < 0
    ]


def test_without_cards_everything_is_on_the_one_backend() -> None:
    rows = ops.get_rows(weight(0), graph_input("i32", 64))
    graph, nodes, _ = run(ops.mul_mat(weight(0), rows), Machine(0))
    assert nodes is graph.nodes
    assert {node.backend for node in nodes} == {0}


def test_rows_of_the_embedding_are_computed_on_the_host_and_copied_to_the_card() -> None:
    rows = ops.get_rows(weight(HOST), graph_input("i32", 64))
    result = ops.mul_mat(weight(CARD), rows)
    _, nodes, _ = run(result, Machine(1))
    assert (rows.backend, result.backend) == (HOST, CARD)
    assert len(copies(nodes, CARD, rows.size)) == 1
    assert result.inputs[1] is not rows


def test_what_has_no_weight_goes_with_its_neighbours_on_the_card() -> None:
    result = ops.mul_mat(weight(CARD), ops.elementwise("unary", graph_input("f32", 256, 64)))
    run(result, Machine(1))
    assert result.inputs[1].backend == CARD


def test_a_pipeline_keeps_four_copies_of_what_the_caller_writes() -> None:
    source = graph_input("f32", 256, 64)
    result = ops.mul_mat(weight(CARD), source)
    _, _, leafs = run(result, Machine(1, copies=4))
    assert len(copies(leafs, CARD, source.size)) == 4
    assert len(copies(leafs, HOST, source.size)) >= 4
    assert all(item.is_output for item in copies(leafs, CARD, source.size))


def test_a_card_borrows_weights_for_long_passes_alone() -> None:
    for tokens, place in ((31, HOST), (32, CARD)):
        result = ops.mul_mat(weight(HOST), graph_input("f32", 256, tokens))
        run(result, Machine(1))
        assert result.backend == place
    refused = ops.mul_mat(weight(HOST), graph_input("f32", 256, 512))
    run(refused, Machine(1, offload=False))
    assert refused.backend == HOST


def test_each_borrowed_weight_begins_a_split_so_that_the_one_before_is_free() -> None:
    first = ops.mul_mat(weight(HOST), graph_input("f32", 256, 64))
    second = ops.mul_mat(weight(HOST), first)
    _, nodes, _ = run(second, Machine(1))
    borrowed = [number for number, node in enumerate(nodes) if node in copies(nodes, CARD, 256 * 256 * 2)]
    assert len(borrowed) == 2
    assert nodes.index(first) < borrowed[1] < nodes.index(second)


def test_what_no_card_computes_is_computed_on_the_host() -> None:
    source = ops.mul_mat(weight(CARD), graph_input("f32", 256, 64))
    odd = ops.elementwise("odd", source)
    odd.host_only = True
    result = ops.mul_mat(weight(CARD), odd)
    run(result, Machine(1))
    assert (source.backend, odd.backend, result.backend) == (CARD, HOST, CARD)


def test_a_pinned_node_stays_where_it_is_pinned() -> None:
    source = ops.mul_mat(weight(0), graph_input("f32", 256, 64))
    pinned = ops.elementwise("rms_norm", source)
    pinned.pinned = 1
    result = ops.mul_mat(weight(1), pinned)
    _, nodes, _ = run(result, Machine(2))
    assert pinned.backend == 1
    assert len(copies(nodes, 1, source.size)) == 1


def test_the_caller_s_unread_inputs_are_kept_in_the_newest_era() -> None:
    source, unread = graph_input("f32", 256, 64), graph_input("f32", 256, 65)
    graph = Graph()
    graph.expand(unread)
    graph.expand(ops.mul_mat(weight(CARD), source))
    _, leafs = schedule(graph, Machine(1, copies=4, every_input=True))
    assert len(copies(leafs, HOST, unread.size)) >= 4


def test_a_split_grows_when_one_node_needs_more_inputs_than_there_is_room_for() -> None:
    given = [graph_input("f32", 256, 8) for _ in range(70)]
    total = ops.mul_mat(weight(CARD), graph_input("f32", 256, 64))
    for row in given[:28]:
        total = ops.add(total, row)
    total = Tensor("concat", "f32", (256, 64, 1, 1), (total, *given[28:32]))
    for row in given[32:]:
        total = ops.add(total, row)
    _, nodes, _ = run(ops.mul_mat(weight(CARD), total), Machine(1))
    borrowed = [number for number, node in enumerate(nodes) if node in copies(nodes, CARD, given[0].size)]
    assert len(borrowed) == 70
    first_sum = next(number for number, node in enumerate(nodes) if node.op == "add")
    assert sum(number < first_sum for number in borrowed) == 59  # 60 with what is multiplied
