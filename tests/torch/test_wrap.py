"""Wrapped functions against PyTorch's own checks, and against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import shaderad as sad
from shaderad import float2
from tests.torch.functions import CASES, floats_in, spots
from tests.wrapped.functions import (
    Case,
    Pair,
    arrays_in,
    both,
    looked_up,
    mixed,
    moved,
    second_use,
    square,
    with_arrays,
)

STEP = 1e-2
"""Of finite differences: a float32 of 1 is exact to 6e-8, so they are to 1e-5."""
CLOSE = {"eps": STEP, "atol": 5e-3, "rtol": 5e-3, "nondet_tol": 1e-5}
"""Second order terms of a step are below 1e-3 here; atomic sums come in any order."""
EXACT = {"rtol": 1e-5, "atol": 1e-6}
"""Some roundings of float32."""

pytestmark = pytest.mark.gpu


def with_floats(args: Any, floats: tuple[torch.Tensor, ...]) -> Any:
    """`args` with other tensors of floats."""
    remaining = iter(floats)
    return with_arrays(
        args, [next(remaining) if x.dtype.is_floating_point else x for x in arrays_in(args)]
    )


def flat(case: Case) -> tuple[Any, tuple[torch.Tensor, ...]]:
    """A wrapped function of its tensors of floats alone, which gives those of its result.

    They become doubles, as PyTorch's checks want them.
    """
    wrapped, args = sad.torch.wrap(case.function, **case.call), case.args()

    def called(*leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = floats_in(wrapped(*with_floats(args, leaves)))
        return tuple(x.double() for x in found)

    return called, tuple(floats_in(args))


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gradients_are_those_of_finite_differences(device: sad.Device, case: Case) -> None:
    called, leaves = flat(case)
    assert torch.autograd.gradcheck(called, leaves, **CLOSE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operators_keep_the_rules_of_pytorch(device: sad.Device, case: Case) -> None:
    wrapped = sad.torch.wrap(case.function, **case.call)
    args = case.args()
    args = with_floats(args, tuple(
        x.detach().float().requires_grad_() for x in floats_in(args)))  # fmt: skip
    tensors, numbers = wrapped.operands(*args)
    checked = torch.library.opcheck(wrapped.operator.op, (tensors,), numbers, atol=1e-5, rtol=1e-5)
    assert set(checked.values()) == {"SUCCESS"}


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_second_derivatives_are_those_of_finite_differences(device: sad.Device, case: Case) -> None:
    called, leaves = flat(case)
    assert torch.autograd.gradgradcheck(called, leaves, fast_mode=True, **CLOSE)


def test_results_and_gradients_have_the_types_of_their_tensors(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(both)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        p = torch.rand(4, 3).to(dtype).requires_grad_()
        long, big, back = wrapped(p, 2)
        assert (long.dtype, big.dtype, back.dtype) == (torch.float32, torch.int32, torch.float32)
        assert long.grad_fn is not None
        assert big.grad_fn is None
        (long.sum() + back.sum()).backward()
        assert p.grad is not None
        assert p.grad.dtype is dtype
        x = p.detach().double()
        wanted = 4.0 * x + back_gradient(x)
        torch.testing.assert_close(p.grad.double(), wanted, rtol=2e-2, atol=2e-2)


def back_gradient(x: torch.Tensor) -> torch.Tensor:
    """The gradient of the sum of ``p.zyx * p.x``."""
    first = x.sum(dim=1) + x[:, 0]
    return torch.stack([first, x[:, 0], x[:, 0]], dim=1)


def test_strides_and_offsets_are_followed(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(square)
    whole = torch.rand(6, 8)
    for x in (whole.t()[3], whole[1:, 2], whole[2].flip(0), whole[:0, 0], whole[0, :1]):
        x = x.detach().requires_grad_()
        y = wrapped(x, 2.0)
        torch.testing.assert_close(y, 2.0 * x * x, **EXACT)
        (by_x,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(by_x, 4.0 * x, **EXACT)


def test_only_what_requires_grad_is_differentiated(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[bool, ...]] = []
    from shaderad.calls.run_graph import GraphStep

    original = GraphStep.gradients

    def noted(self: Any, wanted: tuple[bool, ...], *rest: Any) -> Any:
        asked.append(wanted)
        return original(self, wanted, *rest)

    monkeypatch.setattr(GraphStep, "gradients", noted)
    wrapped = sad.torch.wrap(square)
    x, w = torch.rand(3, requires_grad=True), torch.rand(())
    wrapped(x, w).sum().backward()
    wrapped(x.detach(), w.requires_grad_()).sum().backward()
    assert asked == [(True, False), (False, True)]
    torch.testing.assert_close(w.grad, (x.detach() ** 2).sum(), **EXACT)


def test_nothing_is_differentiated_without_grad(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(square)
    x = torch.rand(3, requires_grad=True)
    with torch.no_grad():
        assert wrapped(x, 1.0).grad_fn is None
    with torch.inference_mode():
        torch.testing.assert_close(wrapped(x, 1.0), x * x, **EXACT)


def test_structures_go_in_and_come_out(device: sad.Device) -> None:
    out = sad.torch.wrap(mixed)(Pair(torch.ones(3), torch.zeros(2)), [2.0, torch.ones(2)], 2)
    assert isinstance(out, Pair)
    assert float(out.left) == 12.0
    seen, word, power = out.right
    assert (seen.tolist(), word, power) == ([1.0, 1.0], "seen", 2)
    given = {key: x.detach().float() if x.is_floating_point() else x for key, x in spots().items()}
    moved_spots = sad.torch.wrap(moved)(given, torch.tensor([2.0, 3.0]))
    assert sorted(moved_spots) == ["center", "color", "number"]
    torch.testing.assert_close(moved_spots["number"], given["number"] + 1)
    torch.testing.assert_close(moved_spots["center"], given["center"] * torch.tensor([2.0, 3.0]))
    torch.testing.assert_close(sad.torch.wrap(moved)(given, float2(1, 1))["center"],
                               given["center"])  # fmt: skip


def test_results_share_memory_with_nothing(device: sad.Device) -> None:
    x = torch.rand(3)
    first, (second, third) = sad.torch.wrap(second_use)(x)
    first.zero_()
    torch.testing.assert_close(second, x * x, **EXACT)
    third.zero_()
    assert bool(x.all())


def test_a_second_pass_backward_needs_retain_graph(device: sad.Device) -> None:
    x = torch.rand(3, requires_grad=True)
    y = sad.torch.wrap(square)(x, 1.0).sum()
    y.backward(retain_graph=True)
    y.backward()
    torch.testing.assert_close(x.grad, 4.0 * x.detach(), **EXACT)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_a_changed_argument_is_noticed(device: sad.Device) -> None:
    x = torch.rand(3, requires_grad=True)
    given = x * 1.0
    y = sad.torch.wrap(square)(given, 1.0).sum()
    given.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_arguments_that_no_derivative_follows_are_refused(device: sad.Device) -> None:
    x = torch.rand(3, requires_grad=True)
    with pytest.raises(sad.DerivativeError, match="SR0477"):
        sad.torch.wrap(square)(sad.zeros(3), 1.0)
    with pytest.raises(sad.DerivativeError, match="SR0466"):
        sad.torch.wrap(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(sad.DerivativeError, match="SR0453"):
        sad.torch.wrap(lambda x, w: x * w, w=np.ones(3))
    with pytest.raises(sad.DerivativeError, match=r"(?s)SR0476.*sad\.torch\.wrap"):
        square(x, 1.0)
    with pytest.raises(sad.DerivativeError, match="SR0453"):
        sad.torch.wrap(square)(x, w=torch.rand((), requires_grad=True))


def test_keywords_of_a_call_may_differ(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(looked_up)
    mesh = {"points": torch.rand(4, 3), "index": torch.tensor([0, 1, 2, 3])}
    assert wrapped(mesh, dim=2).shape == (2,)
    assert wrapped(mesh, dim=4).shape == (4,)


def test_numbers_make_no_new_form(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(square)
    for k in range(5):
        torch.testing.assert_close(wrapped(torch.ones(2), 0.5 * k), torch.full((2,), 0.5 * k))
    assert [wrapped.operands(torch.ones(n), 2.5)[1]["form"] for n in (1, 2, 3)] == [0, 0, 0]


def test_all_tensors_of_a_case_are_found() -> None:
    assert len(arrays_in(CASES[3].args())) == 3
