"""Functions of flat lists of host arrays: pullbacks against pushforwards, of two orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.wrapped.flat import DerivativeForm, Flat
from shaderad.wrapped.parts import contents
from shaderad.wrapped.primals import primal_of
from shaderad.wrapped.structures import TENSOR, CallLeaves, Leaves, structure_of
from tests.wrapped.functions import Case, arrays_in, cases, printed

SAME = 1e-5
"""Relative: sums of float32 in two orders."""

pytestmark = pytest.mark.gpu


def floats(*shape: int) -> np.ndarray:
    drawn = np.random.default_rng(sum(shape)).uniform(0.3, 1.3, shape)
    return np.asarray(drawn, np.float32)


CASES = cases(floats, lambda content: np.array(content, np.int32))


def flat_at(case: Case) -> tuple[Flat, int, CallLeaves]:
    """The function of flat lists for a case, and its arguments."""
    leaves, args = Leaves(), case.args()

    def place(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaves.constant(leaf)
        leaves.tensors.append(leaf.copy())
        return TENSOR

    flat = primal_of(case.function, case.call)
    form = flat.forms.number(structure_of((args, {}), place, "args"))
    assert len(leaves.tensors) == len(arrays_in(args))
    return flat, form, leaves.with_content(leaves.tensors)


def drawn_like(arrays: list[np.ndarray], seed: int) -> list[np.ndarray | None]:
    """A direction for each array of floats."""
    generator = np.random.default_rng(seed)
    return [
        np.asarray(generator.normal(size=x.shape), x.dtype) if x.dtype.kind == "f" else None
        for x in arrays
    ]


def dot(left: list[Any], right: list[Any]) -> float:
    return sum(np.vdot(x, y) for x, y in zip(left, right, strict=True))


def known(items: list[Any]) -> list[Any]:
    return [one for one in items if one is not None]


def assert_transposed(flat: Flat, form: int, given: CallLeaves) -> tuple[list[Any], list[Any]]:
    """Holds the pullback against the pushforward; gives the directions of both."""
    at = flat.at(form, given)
    dots = drawn_like(list(given.tensors), 1)
    bars = drawn_like(contents(at.parts), 2)
    # The memory of arguments may be another's by now.
    for x in given.tensors:
        x[...] = 77
    moved = contents(known(at.push(dots)))
    gradients = contents(at.pull(bars, [one is not None for one in dots]))
    assert dot(known(bars), moved) == pytest.approx(dot(gradients, known(dots)), rel=SAME)
    return dots, bars


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_pullback_is_the_transposed_pushforward(device: sad.Device, case: Case) -> None:
    assert_transposed(*flat_at(case))


@pytest.mark.parametrize(
    "function", [printed, sad.graph(lambda x: printed(x)), lambda x: printed(x)]
)
def test_outlines_neither_print_nor_check_values(
    device: sad.Device, capfd: pytest.CaptureFixture[str], function: Any
) -> None:
    call = {"checks": "nan"} if function is printed else {}
    flat, given = primal_of(function, call), CallLeaves([np.zeros(3, np.float32)], (), ())
    form = flat.forms.number(structure_of(((given.tensors[0],), {}), lambda _: TENSOR, "args"))
    _, (outline,) = flat.outlined(form, given)
    flat.check(form, given)
    device.synchronize()
    assert outline.shape == (3,)
    assert capfd.readouterr().out == ""


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["pulled", "pushed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_that_holds_of_derivatives_too(device: sad.Device, case: Case, name: str) -> None:
    flat, form, given = flat_at(case)
    at = flat.at(form, given)
    dots = drawn_like(list(given.tensors), 3)
    bars = drawn_like(contents(at.parts), 4)
    masks = [tuple(one is not None for one in side) for side in (dots, bars)]
    derivative = getattr(flat, name)
    number = derivative.forms.number(DerivativeForm(form, *masks))
    behind = known(bars if name == "pulled" else dots)
    assert_transposed(derivative, number, given.with_tensors([*given.tensors, *behind]))
