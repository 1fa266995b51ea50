"""Every public function, called with arguments that it has no parameters for, and wrong sizes."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float4, int3, render
from shaderad.functions import public

X = np.arange(6, dtype=np.float32)
M = np.arange(12, dtype=np.float32).reshape(3, 4)
INDEX = np.array([0, 1, 2], np.int32)

ON_ONE_RUNTIME = pytest.mark.parametrize("device", ["wgpu"], indirect=True)
"""What is refused here is refused before anything runs."""


@sad.graph
def added(x: Any, y: Any) -> Any:
    return x + y


@sad.function
def product(a: float, b: float) -> float:
    return a * b


class Model:
    def step(self, x: Any) -> Any:
        return x


def sum_of(x: Any) -> Any:
    return sad.sum(x)


REDUCED = {"x": M, "axis": 0}
VALID: dict[str, dict[str, Any]] = {
    "log_softmax": REDUCED,
    "softmax": REDUCED,
    "tensordot": {"x": M, "y": M.T, "axes": 1},
    "conv": {
        "x": np.ones((1, 8), np.float32),
        "w": np.ones((1, 1, 3), np.float32),
        "stride": 1,
        "padding": 0,
        "dilation": 1,
        "groups": 1,
    },
    "arange": {"start": 0, "stop": 4, "step": 1},
    "eye": {"n": 3, "m": 3, "k": 0},
    "full": {"shape": 3, "value": 1.0},
    "ones": {"shape": 3},
    "iota": {"n": 3},
    "linspace": {"start": 0.0, "stop": 1.0, "num": 4},
    "zeros": {"shape": 3},
    "take_along_axis": {"x": X, "index": INDEX, "axis": 0},
    "broadcast_to": {"x": X, "shape": (2, 6)},
    "concatenate": {"arrays": (X, X), "axis": 0},
    "stack": {"arrays": (X, X), "axis": 0},
    "reshape": {"x": X, "shape": (2, 3)},
    "reverse": REDUCED,
    "roll": {"x": X, "shift": 1, "axis": 0},
    "tril": {"x": M, "k": 0},
    "triu": {"x": M, "k": 0},
    "fori_loop": {"count": 2, "body": lambda _, carry: carry, "init": X},
    "while_loop": {
        "cond": lambda carry: sad.sum(carry) > 0.0,
        "body": lambda carry: carry - 10.0,
        "init": X,
        "limit": 8,
    },
    "argmax": REDUCED,
    "argmin": REDUCED,
    "logsumexp": REDUCED,
    "mean": REDUCED,
    "prod": REDUCED,
    "sum": REDUCED,
    "norm": REDUCED,
    "reduce": {"op": sad.add, **REDUCED},
    "scan": {"op": sad.add, **REDUCED},
    "associative_scan": {"op": sad.add, **REDUCED},
    "cumprod": REDUCED,
    "cumsum": REDUCED,
    "diff": {"x": M, "n": 1, "axis": 0},
    "argsort": {"keys": M, "axis": 0},
    "sort": {"keys": M, "axis": 0},
    "segment_reduce": {"op": sad.add, "init": 0.0, "size": 3, "index": INDEX, "values": X[:3]},
    "std": {**REDUCED, "ddof": 0},
    "var": {**REDUCED, "ddof": 0},
    "random.split": {"key": 0, "n": 2},
    "random.uniform": {"key": 0, "shape": 3},
    "random.normal": {"key": 0, "shape": 3},
    "random.permutation": {"key": 0, "x": X, "axis": 0},
    "render.rasterize": {"clip": M, "triangles": INDEX, "size": (4, 4)},
}
"""A call of each function that takes a size, an axis or a number of times."""
SIZES = frozenset(
    "n m k num shape size shift axis axes stride padding dilation groups count limit ddof".split()
)
NOT_PUBLIC = ("Array", "Device", "DeviceInfo", "Texture", "render.Fragments", "render.Mesh")
"""Classes that users do not call."""
DEPRECATED = ("histogram", "rotate")


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every function and class that users call, by its name behind ``sad.``."""
    spaces = {"": sad, "optim.": sad.optim, "random.": sad.random, "render.": render}
    for prefix, space in spaces.items():
        for name in getattr(space, "__all__", vars(space)):
            thing = getattr(space, name)
            is_own = not prefix or getattr(thing, "__module__", "").startswith(space.__name__)
            is_error = isinstance(thing, type) and issubclass(thing, Exception)
            if callable(thing) and is_own and not is_error and not name.startswith("_"):
                yield prefix + name, thing


FUNCTIONS = {n: f for n, f in public_functions() if n not in (*NOT_PUBLIC, *DEPRECATED)}


def refusal(call: Callable[[], Any]) -> sad.Error:
    """The error that the call raises, which shows no frame of ours."""
    with pytest.raises(sad.Error) as caught:
        call()
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert {*files} == {__file__}, files
    return caught.value


def takes(function: Callable[..., Any], *kinds: inspect._ParameterKind) -> bool:
    return any(p.kind in kinds for p in inspect.signature(function).parameters.values())


def test_the_public_functions_are_found() -> None:
    assert {"sum", "sin", "grad", "float3", "optim.Adam", "random.key", "render.Texture"} <= set(
        FUNCTIONS
    )
    assert len(FUNCTIONS) > 150


@ON_ONE_RUNTIME
def test_a_keyword_that_no_parameter_has_is_named(device: sad.Device) -> None:
    for name, function in FUNCTIONS.items():
        error = refusal(lambda f=function: f(nonsense=1))
        if error.code not in ("SR0230", "SR0388") and not takes(
            function, inspect.Parameter.VAR_KEYWORD
        ):
            assert isinstance(error, sad.CallError), name
            assert isinstance(error, TypeError)
            shown = "scan" if name == "associative_scan" else name.split(".")[-1]
            assert error.message == f"`{shown}` has no argument `nonsense`"


@ON_ONE_RUNTIME
def test_too_many_positional_arguments_are_counted(device: sad.Device) -> None:
    for name, function in FUNCTIONS.items():
        error = refusal(lambda f=function: f(*[1.0] * 40))
        if isinstance(function, FunctionType) and not takes(
            function, inspect.Parameter.VAR_POSITIONAL
        ):
            assert error.code == "SR0291", name
            assert "found 40" in error.message


@ON_ONE_RUNTIME
@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        (lambda x: sad.optim.SGD(1.0, 0.9), "SR0291", "(lr, *, momentum=0.0)"),
        (lambda x: sad.sum(x, axes=0), "SR0292", "did you mean `axis`?"),
        (lambda x: sad.max(x, axes=0), "SR0292", "did you mean `axis`?"),
        (lambda x: sad.grad(sum_of, argnum=0), "SR0292", "did you mean `argnums`?"),
        (lambda x: sad.full(3), "SR0293", "lacks `value`"),
        (lambda x: sad.scan(), "SR0293", "lacks `op`, `x`"),
        (lambda x: sad.sum(x, x=x), "SR0294", "`x` is given twice in a call of `sum`"),
        (lambda x: sad.array(x).item(1), "SR0291", "`Array.item` takes 0 positional arguments"),
        (lambda x: sad.vjp(sum_of, x)[1](), "SR0293", "a call of `Pullback` lacks `out_bar`"),
        (lambda x: sad.optim.SGD(), "SR0293", "a call of `SGD` lacks `lr`"),
        (lambda x: sad.optim.SGD(1.0).step(x), "SR0293", "lacks `gradients`, `state`"),
        (lambda x: render.Texture(x, mipmap=True), "SR0292", "did you mean `mips`?"),
        (lambda x: sad.grad(sum_of)(x, x), "SR0291", "`sum_of` takes 1 positional argument"),
        (lambda x: sad.jvp(sum_of, (x, x), (x, x)), "SR0291", "found 2"),
        (lambda x: sad.gradcheck(sum_of, x, tol=1), "SR0292", "`sum_of` has no argument `tol`"),
        (lambda x: sad.checkpoint(sum_of)(x, x), "SR0291", "`sum_of`"),
        (lambda x: sad.vmap(sum_of)(x, x), "SR0291", "`sum_of`"),
        (lambda x: sad.map(sum_of, x, x), "SR0291", "`sum_of`"),
        (lambda x: sad.fori_loop(3, lambda carry: carry, x), "SR0291", "`<lambda>` takes 1"),
        (lambda x: sad.loop(lambda carry: carry, 0.0, x), "SR0291", "`<lambda>` takes 1"),
        (lambda x: sad.map(5, x), "SR0295", "5 stands where a function is expected"),
        (lambda x: sad.fori_loop(3, None, x), "SR0295", "None stands where"),
        (lambda x: added(x), "SR0293", "a call of `added` lacks `y`"),
        (lambda x: added(x, x, x), "SR0291", "`added` takes 2 positional arguments, found 3"),
        (lambda x: added(x, z=x), "SR0292", "`added` has no argument `z`"),
        (lambda x: sad.grad(lambda x: added(x, z=x))(x), "SR0292", "no argument `z`"),
        (lambda x: product(1.0), "SR0293", "a call of `product` lacks `b`"),
        (lambda x: product(1.0, c=2.0), "SR0292", "`product` has no argument `c`"),
        (lambda x: sad.graph(lambda x: sad.softmax((x, x)))(x), "SR0321", "of `x`, a `tuple`"),
        (lambda x: sad.zeros(sad.array(3)), "SR0370", "write `int(x)` outside of traced functions"),
        (lambda x: sad.zeros(1.5), "SR0370", "`int(x)` converts"),
        (lambda x: sad.kernel(Model().step), "SR0103", "the bound method `Model.step`"),
        (lambda x: sad.function(Model().step), "SR0103", "the bound method `Model.step`"),
        (lambda x: sad.zeros(3, dtype=[1.5]), "SR0358", "is not an element type"),
        (lambda x: sad.softmax("text"), "SR0351", "`x` is not an array of numbers"),
        (lambda x: sad.scatter(x, "at", x), "SR0351", "`index` is not an array of numbers"),
    ],
)  # fmt: skip
def test_a_call_that_does_not_fit_says_why(
    call: Callable[[Any], Any], code: str, says: str, device: sad.Device
) -> None:
    error = refusal(lambda: call(X))
    assert error.code == code, str(error)
    assert says in str(error)


@ON_ONE_RUNTIME
def test_a_type_error_inside_of_a_function_stays_what_it_is(device: sad.Device) -> None:
    with pytest.raises(TypeError, match="unsupported operand") as caught:
        sad.grad(lambda x: sad.sum(x) + None)(X)
    assert not isinstance(caught.value, sad.Error)


def test_every_function_of_sizes_has_a_row() -> None:
    names = {
        n for n in public.__all__ if SIZES & {*inspect.signature(getattr(public, n)).parameters}
    }
    assert names - {*DEPRECATED} <= set(VALID)


@ON_ONE_RUNTIME
@pytest.mark.parametrize("name", VALID)
def test_a_size_of_the_wrong_kind_is_refused_by_name(name: str, device: sad.Device) -> None:
    function = FUNCTIONS[name]
    given = {k: sad.random.key(x) if k == "key" else x for k, x in VALID[name].items()}
    if name == "render.rasterize":
        given |= {"clip": sad.array(M, float4), "triangles": sad.array([INDEX], int3)}
    function(**given)
    for parameter in SIZES & {*given}:
        for wrong in ("many", 1.5, object()):
            if name == "arange" and wrong == 1.5:
                continue  # It counts in floats, too.
            error = refusal(lambda p=parameter, w=wrong: function(**{**given, p: w}))
            assert f"{parameter}" in f"{error.message} {error.label}", (
                f"{parameter}={wrong}: {error}"
            )
