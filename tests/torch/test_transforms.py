"""Wrapped functions under PyTorch's transforms, against PyTorch's own operators."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import product
from pathlib import Path

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

import shaderad as sad
from tests.torch.functions import CASES
from tests.torch.test_wrap import CLOSE, EXACT, flat
from tests.wrapped import functions
from tests.wrapped.functions import Case, both, gathered, square

Function = Callable[[torch.Tensor], torch.Tensor]

THIRD = {"rtol": 1e-4, "atol": 1e-4}
"""Third derivatives near 10, through several roundings of float32 each."""

pytestmark = [
    pytest.mark.gpu,
    # Warnings of PyTorch's own compiler.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@sad.kernel
def fourth_power(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i] * x[i] * x[i]


def native(x: torch.Tensor) -> torch.Tensor:
    return x**4


TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "jvp": lambda f: lambda x: jvp(f, (x,), (torch.cos(x),))[1],
    "jacfwd": lambda f: lambda x: jacfwd(f)(x).sum(0),
    "jacrev": lambda f: lambda x: jacrev(f)(x).sum(0),
    "vjp": lambda f: lambda x: vjp(f, x)[1](torch.sin(x))[0],
    "grad": lambda f: grad(lambda x: torch.sin(f(x)).sum()),
    "vmap": lambda f: lambda x: vmap(f)(torch.stack([x, 2.0 * x]))[1],
    "vmap of one": lambda f: lambda x: vmap(f)(x[None])[0],
    "no_grad": lambda f: lambda x: torch.no_grad()(f)(x) + x,
}


def nested(names: tuple[str, ...], f: Function) -> Function:
    """`f` under these transforms, the first of them innermost."""
    return reduce(lambda inner, name: TRANSFORMS[name](inner), names, f)


@pytest.mark.sample(4)
@pytest.mark.parametrize("first", TRANSFORMS)
def test_transforms_nest_as_those_of_an_operator_of_pytorch(device: sad.Device, first: str) -> None:
    x, wrapped = torch.tensor([0.5, 0.0, 1.1]), sad.torch.wrap(fourth_power)
    pairs = [*product(TRANSFORMS, repeat=2)]
    rests = [(), *product(TRANSFORMS), *random.Random(first).sample(pairs, 6)]
    for rest in rests:
        y, expected = (nested((first, *rest), f)(x) for f in (wrapped, native))
        torch.testing.assert_close(y, expected, **THIRD, msg=lambda m, r=rest: f"{r}: {m}")


def tangent_of(f: Function, x: torch.Tensor) -> torch.Tensor | None:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, torch.cos(x.detach())))).tangent


@pytest.mark.parametrize("name", ["grad", "jacrev", "vjp", "vmap", "no_grad"])
def test_dual_numbers_go_through_transforms(device: sad.Device, name: str) -> None:
    wrapped = sad.torch.wrap(fourth_power)
    for names in ((), (name,)):
        x = torch.tensor([0.5, 0.0, 1.1], requires_grad=True)
        y, expected = (tangent_of(nested(names, f), x) for f in (wrapped, native))
        torch.testing.assert_close(y, expected, **THIRD)
        assert y is not None
        assert expected is not None
        assert y.requires_grad is expected.requires_grad
        if expected.requires_grad:
            gradients = [torch.autograd.grad(dot.sum(), x) for dot in (y, expected)]
            torch.testing.assert_close(gradients[0], gradients[1], **THIRD)


COMPILED: dict[str, Callable[[Function], Function]] = {
    "jvp": TRANSFORMS["jvp"],
    "hessian": lambda f: hessian(lambda x: f(x).sum()),
    "jvp of grad": lambda f: nested(("grad", "jvp"), f),
    "grad of jvp": lambda f: nested(("jvp", "grad"), f),
    "jvp of jvp": lambda f: nested(("jvp", "jvp"), f),
    "jacfwd": jacfwd,
}


@pytest.fixture
def fresh() -> Iterator[None]:
    """PyTorch's compiler without the code of earlier tests."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", COMPILED)
def test_transforms_compile(device: sad.Device, fresh: None, name: str) -> None:
    x, wrapped = torch.tensor([0.5, 0.0, 1.1]), sad.torch.wrap(fourth_power)
    y = torch.compile(COMPILED[name](wrapped), backend="aot_eager", fullgraph=True)(x)
    torch.testing.assert_close(y, COMPILED[name](native)(x), **THIRD)


@pytest.mark.sample(3)
@pytest.mark.parametrize("differentiated", [True, False])
def test_a_tangent_goes_into_compiled_code_and_out(
    device: sad.Device, fresh: None, differentiated: bool
) -> None:
    wrapped = sad.torch.wrap(fourth_power)
    compiled = torch.compile(lambda x: wrapped(x), backend="eager", fullgraph=True)
    x = torch.tensor([0.5, 0.0, 1.1], requires_grad=differentiated)
    torch.testing.assert_close(tangent_of(compiled, x), tangent_of(native, x), **EXACT)


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tangents_are_those_of_finite_differences(device: sad.Device, case: Case) -> None:
    called, leaves = flat(case)
    assert gradcheck(called, leaves, check_forward_ad=True, check_backward_ad=False, **CLOSE)


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tangents_of_gradients_are_those_of_finite_differences(
    device: sad.Device, case: Case
) -> None:
    called, leaves = flat(case)
    modes = {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False}
    assert gradgradcheck(called, leaves, fast_mode=True, **modes, **CLOSE)


def test_tangents_have_the_types_of_their_results(device: sad.Device) -> None:
    wrapped = sad.torch.wrap(both)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        p = torch.rand(4, 3).to(dtype)
        (long, _, back), (long_dot, big_dot, back_dot) = jvp(
            lambda p: wrapped(p, 2), (p,), (torch.ones_like(p),)
        )
        assert (long_dot.dtype, back_dot.dtype) == (long.dtype, back.dtype)
        assert not big_dot.any()
        by_p, by_p_dot = jvp(grad(lambda p: wrapped(p, 2)[0].sum()), (p,), (torch.ones_like(p),))
        assert by_p.dtype is by_p_dot.dtype is dtype


def test_tangents_of_nothing_and_of_zero(device: sad.Device) -> None:
    wrapped, x = sad.torch.wrap(square), torch.rand(3)
    none = torch.zeros(0)
    torch.testing.assert_close(jvp(lambda x: wrapped(x, 2.0), (none,), (none,)), (none, none))
    zero = torch._efficientzerotensor(3)  # pyright: ignore[reportPrivateUsage]
    _, dot = jvp(lambda x: wrapped(x, 2.0), (x,), (zero,))
    torch.testing.assert_close(dot, torch.zeros(3))
    torch.testing.assert_close(wrapped(zero, 2.0), torch.zeros(3))
    w = torch.tensor(2.0)
    _, dot = jvp(lambda w: wrapped(x, w), (w,), (torch.ones(()),))
    torch.testing.assert_close(dot, x * x, **EXACT)


def test_a_pushforward_uses_the_run_of_its_primal(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped, runs = sad.torch.wrap(square), []
    cls = type(wrapped.operator.flat)
    original = cls.at
    monkeypatch.setattr(cls, "at", lambda *args: runs.append(1) or original(*args))
    tangent_of(lambda x: wrapped(x, 2.0), torch.rand(3))
    jvp(lambda x: wrapped(x, 2.0), (torch.rand(3),), (torch.rand(3),))
    assert len(runs) == 2


@sad.custom_vjp
def cubed(x):
    return x**3


cubed.defvjp(lambda x: (x**3, x), lambda x, bar: (3.0 * x * x * bar,))


def test_tangents_that_do_not_exist_are_refused(device: sad.Device, tmp_path: Path) -> None:
    x, to = torch.rand(3), torch.tensor([0, 2, 0], dtype=torch.int32)
    with pytest.raises(sad.DerivativeError, match="SR0472"):
        jvp(sad.torch.wrap(cubed), (x,), (x,))
    wrapped = sad.torch.wrap(square)
    with pytest.raises(sad.DerivativeError, match="SR0453"):
        jvp(lambda w: wrapped(x, w=w), (x[0],), (x[0],))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)
        for f in (sad.array, sad.from_dlpack, lambda x: square(x, 1.0)):
            with pytest.raises(sad.DerivativeError, match="SR0476"):
                f(dual)
    source = Path(functions.__file__)
    sad.build(source, tmp_path, entries="gathered", targets="wgsl,spirv", validate=False)
    built = sad.torch.wrap(sad.load(tmp_path).gathered, shapes={"total": 3})
    with pytest.raises(sad.DerivativeError, match="SR0725"):
        jvp(lambda x: built(x, to), (x,), (x,))
    sad.build(source, tmp_path, entries="gathered", targets="wgsl,spirv", validate=False, jvp=True)
    built = sad.torch.wrap(sad.load(tmp_path).gathered, shapes={"total": 3})
    wrapped = sad.torch.wrap(gathered, shapes={"total": 3})
    by_build, by_kernel = (jvp(lambda x, f=f: f(x, to), (x,), (x,))[1] for f in (built, wrapped))
    torch.testing.assert_close(by_build, by_kernel, **EXACT)
