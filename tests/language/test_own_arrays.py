"""Arrays of our own kernels: the greatest pair of each element, and linked lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import uint2
from shaderad.interpret import interpret
from shaderad.language.own_arrays import Greatest, Lists
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from shaderad.render.kernels.drawing import draw
from tests.devices import entered

LONGS = "int64-atomics"
ELEMENTS, THREADS = 7, 500


@sad.kernel
def collect(
    i: sad.Index,
    row: sad.In[int],
    element: sad.In[int],
    pair: sad.In[uint2],
    best: Greatest[uint2, 2],
    lists: Lists[int, 2],
):
    best[row[i], element[i]] = sad.max(best[row[i], element[i]], pair[i])
    lists[row[i], element[i]] += len(best) * best.shape[1] + i


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    # Few upper words, so that many pairs differ in their lower words alone.
    pair = np.stack([rng.integers(0, 2**32, THREADS), rng.choice([1, 5, 2**32 - 1], THREADS)], 1)
    return {
        "row": np.int32(rng.integers(0, 2, THREADS)),
        "element": np.int32(rng.integers(0, ELEMENTS - 1, THREADS)),
        "pair": np.uint32(pair),
    }


SHAPES = {"best": (2, ELEMENTS), "lists": (2, 2 * ELEMENTS + THREADS)}


def check(best: np.ndarray, lists: np.ndarray) -> None:
    """The greatest pair of each element, and on its list all threads that wrote there."""
    given = inputs()
    for row in range(2):
        for element in range(ELEMENTS):
            threads = np.flatnonzero((given["row"] == row) & (given["element"] == element))
            pairs = [tuple(pair[::-1]) for pair in given["pair"][threads].tolist()]
            assert tuple(best[row, element].tolist()[::-1]) == max(pairs, default=(0, 0))
            items, item = [], int(lists[row, element])
            while item != 0:
                items.append(item - 2 * ELEMENTS)
                item = int(lists[row, item])
            assert sorted(items) == threads.tolist()


def features(runtime: str, *, has_longs: bool) -> dict[str, Any]:
    """Limits of a device with or without 64-bit atomics."""
    with entered(runtime) as device:
        own = device.capabilities.features
    if has_longs and LONGS not in own:
        pytest.skip(f"{runtime}: no 64-bit atomics")
    return {"features": own if has_longs else own - {LONGS}}


@pytest.mark.gpu
@pytest.mark.parametrize("has_longs", [True, False])
@pytest.mark.parametrize("runtime", ["wgpu", "slangpy"])
def test_pairs_and_lists_are_whole_with_one_pass_and_with_two(
    runtime: str, has_longs: bool
) -> None:
    with entered(runtime, features(runtime, has_longs=has_longs)):
        given = inputs()
        arrays = [sad.array(given[name]) for name in ("row", "element")]
        pair = sad.array(given["pair"], dtype=uint2)
        best, lists = collect(*arrays, pair, dim=THREADS, shapes=SHAPES)
        check(best.numpy(), lists.numpy())


def test_interpreter_keeps_pairs_and_lists() -> None:
    run = interpret(collect.specialise({}), dim=THREADS, arrays=inputs(), shapes=SHAPES)
    check(np.asarray(run.outputs["best"]), np.asarray(run.outputs["lists"]))


def test_both_passes_are_dispatches_of_one_program() -> None:
    """So they compute the same bits of a depth, whatever operations a driver fuses."""
    first, second = lower_kernel(draw.specialise({}), Mode.PRIMAL, Variant())
    assert first.program == second.program
    assert LONGS not in first.program.features
    differing = [(a, b) for a, b in zip(first.words, second.words, strict=True) if a != b]
    assert [(a.index, b.index) for a, b in differing] == [(0, 1)]
    # The second pass keeps what the first one wrote.
    assert all(resource.fill_word is None for resource in second.resources)


def test_devices_with_64_bit_atomics_take_one_pass() -> None:
    variant = Variant(features=frozenset({LONGS}))
    (lowered,) = lower_kernel(draw.specialise({}), Mode.PRIMAL, variant)
    assert LONGS in lowered.program.features
    assert (
        len(lower_kernel(draw.specialise({}), Mode.PRIMAL, replace(variant, is_windowed=True))) == 2
    )
