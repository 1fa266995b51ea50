"""What passes are made of, without a device: widths, formulas, targets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shaderad.compiler.compile import compile_program
from shaderad.compiler.row_layouts import BLOCK, reduction_layout, scan_layout
from shaderad.ir import composing as c
from shaderad.ir import ops, sizes
from shaderad.ir.nodes import Assign, Expr, Function, Kernel
from shaderad.ir.types import DOUBLE, FLOAT, Matrix, Struct, Type
from shaderad.lower.bindings import Variant
from shaderad.lower.passes.entries import binary_function, operator_of
from shaderad.lower.passes.rows import Passes, lower_reduce, lower_scan
from shaderad.lower.passes.runs import BLOCKS, SINGLE, UNROLLED, runs_of
from tests.launch_shapes import shape_of
from tests.lower.row_passes import elements_of

MATRIX = Matrix(FLOAT, 4, 4)


def matrix_product() -> Function:
    left, right = c.variable("left", MATRIX), c.variable("right", MATRIX)
    return binary_function("product", MATRIX, c.apply(ops.MATMUL, left, right))


def struct_of(count: int) -> Struct:
    return Struct("Many", tuple((f"m{k}", MATRIX) for k in range(count)))


@pytest.mark.parametrize(("t", "width"), [(FLOAT, 64), (struct_of(4), 64), (struct_of(5), 32),
                                          (struct_of(16), 16), (struct_of(32), 8)])  # fmt: skip
def test_groups_are_as_wide_as_group_memory_allows(t: Type, width: int) -> None:
    for step in lower_scan(elements_of(t, 1), ops.ADD, Variant()).steps:
        assert step.lowered.program.workgroup == (width, 1, 1)
        is_together = step.chunks.is_together
        assert (f"parts[{width}];" in step.lowered.program.slang) == is_together


def test_elements_without_room_in_group_memory_are_reduced_by_threads_alone() -> None:
    for step in lower_reduce(elements_of(struct_of(33), 1), ops.ADD, Variant()).steps:
        assert "groupshared" not in step.lowered.program.slang


def test_only_short_code_is_repeated_for_each_element() -> None:
    add, mul = operator_of(ops.ADD, FLOAT).combine, operator_of(ops.MUL, DOUBLE).combine
    product = operator_of(matrix_product(), MATRIX).combine
    floats, doubles = elements_of(FLOAT, 1), elements_of(DOUBLE, 1)

    def runs(
        producer: Kernel,
        combine: Function,
        *values: Expr,
        is_scan: bool = False,
        is_built_in: bool = True,
    ) -> str:
        more = tuple(Assign(name=f"v{k}", value=value) for k, value in enumerate(values))
        producer = replace(producer, body=(*producer.body, *more))
        return runs_of(producer, combine, (), is_built_in=is_built_in, is_scan=is_scan)

    one, two = c.number(FLOAT, 1.0), c.number(DOUBLE, 2.0)
    branch = c.conditional(c.apply(ops.LT, one, one), one, one)
    for is_scan in (False, True):
        assert runs(floats, add, c.apply(ops.EXP, one), is_scan=is_scan) == UNROLLED
        assert runs(doubles, mul, is_scan=is_scan) == UNROLLED
        assert runs(floats, add, branch, is_scan=is_scan) == UNROLLED
        assert runs(floats, add, branch, branch, is_scan=is_scan) == BLOCKS
        assert runs(doubles, mul, c.apply(ops.EXP, two), is_scan=is_scan) == BLOCKS
        for is_built_in, way in ((True, BLOCKS), (False, SINGLE)):
            matrices = elements_of(MATRIX, 1)
            assert runs(matrices, product, is_scan=is_scan, is_built_in=is_built_in) == way


@pytest.mark.parametrize("is_parallel", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 3, 70_000])
@pytest.mark.parametrize("length", [0, 1, 128, 2049, 9000, 100_003])
def test_chunks_cover_rows_and_none_is_empty(rows: int, length: int, is_parallel: bool) -> None:
    passes = lower_reduce(
        elements_of(FLOAT, 1), ops.ADD, Variant(shape=shape_of(is_parallel=is_parallel))
    )
    known = passes.formulas.evaluate(rows, length)
    chunks, chunk_length = known["chunk_count"], known["chunk_length"]
    assert chunks * chunk_length >= length
    assert (chunks - 1) * chunk_length < max(length, 1)
    assert known["team_count"] == rows * chunks
    groups = [sizes.evaluate(step.group_count, known) for step in passes.steps]
    assert all(0 < g <= 4096 for g in groups) == (rows > 0)
    needed = [step for step in passes.steps if sizes.evaluate(step.is_needed, known) > 0]
    together = [step.chunks.is_together for step in needed]
    is_long = [known["chunk_length"] >= 128, chunks >= 128][: 1 + (chunks > 1)]
    assert together == [is_parallel and one for one in is_long]


def test_each_program_holds_one_way_in_which_teams_work() -> None:
    for passes in all_passes():
        for step in passes.steps:
            ways = [way for way in ("Alone<", "Together<") if way in step.lowered.program.slang]
            assert ways == [("Together<" if step.chunks.is_together else "Alone<")]


def test_only_the_passes_that_sizes_ask_for_are_lowered() -> None:
    x = elements_of(FLOAT, 1)
    reduction, scan = (layout(FLOAT, Variant().shape) for layout in (reduction_layout, scan_layout))
    assert [reduction.needed(1, n) for n in (1, 120, 400, 100_000)] == [(0,), (0,), (1,), (1, 2)]
    assert [scan.needed(1, n) for n in (0, 1, 400, 100_000)] == [(), (4,), (5,), (1, 2, 5)]
    assert reduction.needed(1, 1 << 20) == (1, 3)
    (step,) = lower_reduce(x, ops.ADD, Variant(), only=(1,)).steps
    assert step.lowered.program.name == "elements_reduce_together"
    names = [s.lowered.program.name for s in lower_scan(x, ops.ADD, Variant(), only=(1, 5)).steps]
    assert names == ["elements_reduce_together", "elements_scan_together"]


@pytest.mark.parametrize("length", [4096, 100_003, 1 << 20, 1 << 28])
def test_threads_begin_an_odd_number_of_blocks_apart(length: int) -> None:
    passes = lower_reduce(
        elements_of(FLOAT, 1), ops.ADD, Variant(shape=shape_of(is_parallel=False))
    )
    chunk_length = passes.formulas.evaluate(1, length)["chunk_length"]
    assert chunk_length % (2 * BLOCK) == BLOCK


def all_passes() -> list[Passes]:
    variant, producer = Variant(features=frozenset({"subgroups"})), elements_of(FLOAT, 2)
    return [
        lower_reduce(producer, ops.ADD, variant, has_init=True),
        lower_scan(producer, ops.MAX, variant),
    ]


@pytest.mark.parametrize("target", ["spirv", "hlsl", "wgsl", "metal"])
def test_passes_compile_for_every_target(target: str) -> None:
    for passes in all_passes():
        for step in passes.steps:
            assert compile_program(step.lowered.program, target).content
