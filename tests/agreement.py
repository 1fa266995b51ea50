"""A kernel call on the current device against the oracle: results, vjp and jvp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import shaderad as sad
from shaderad.arrays.containers import rebuilt, struct_class, struct_fields
from shaderad.calls.arguments import typed_arguments
from shaderad.decorators import KernelFunction
from shaderad.device.devices import current_device
from tests.oracle import Oracle, oracle

# float32, up to a few thousand operations; adds of many threads come in any order.
RTOL = 2e-4
HALF_RTOL = 1e-3
"""A half keeps eleven bits."""


def check_against_oracle(
    kernel: KernelFunction, *args: Any, rtol: float = RTOL, seed: int = 7, **call: Any
) -> None:
    """Raises where a device and the rules disagree on the call or on its derivatives."""
    judge = oracle(kernel, *args, **call)
    out, pullback = sad.vjp(kernel, *args, **call)
    close(out, judge.out, "result", rtol)
    bars, tangents = drawn_for(judge, args, seed)
    close(pullback(bars), judge.vjp(bars), "gradient", rtol)
    _, out_dot = sad.jvp(kernel, args, tangents, **call)
    close(out_dot, judge.jvp(tangents), "tangent", rtol)


def check_second_order(
    kernel: KernelFunction, *args: Any, rtol: float = RTOL, seed: int = 7, **call: Any
) -> None:
    """Raises where a device and the rules disagree on how gradients move."""
    judge = oracle(kernel, *args, **call)
    bars, tangents = drawn_for(judge, args, seed)
    found = moved_gradients(kernel, args, call, bars, tangents)
    close(found, judge.moved(bars, tangents), "moved gradient", rtol)


def check_moved(
    kernel: KernelFunction, *args: Any, rtol: float = 2e-3, seed: int = 7, **call: Any
) -> None:
    """The same against central differences of the oracle's gradients."""
    judge = oracle(kernel, *args, **call)
    bars, tangents = drawn_for(judge, args, seed)
    found = moved_gradients(kernel, args, call, bars, tangents)
    close(found, judge.moved_between(bars, tangents), "moved gradient", rtol)
    close(found, judge.moved(bars, tangents), "moved gradient", RTOL)


def moved_gradients(
    kernel: KernelFunction, args: tuple[Any, ...], call: dict[str, Any], bars: Any, tangents: Any
) -> tuple[Any, ...]:
    """The tangents of the gradients that belong to the cotangents `bars`."""

    def gradients(*own: Any) -> tuple[Any, ...]:
        return sad.vjp(kernel, *own, **call)[1](bars)

    typed = typed_arguments(kernel, args, current_device())
    return sad.jvp(gradients, typed, tangents)[1]


def drawn_for(judge: Oracle, args: tuple[Any, ...], seed: int = 7) -> tuple[Any, tuple[Any, ...]]:
    """Cotangents of the results, and tangents of the arguments."""
    rng = np.random.default_rng(seed)
    bars = _like(judge.out, lambda x: _drawn_where_finite(rng, x))
    return bars, tuple(_tangent(a, rng) for a in args)


def close(found: Any, wanted: Any, what: str, rtol: float = RTOL) -> None:
    """Compares part by part, by the structure of what the oracle says."""
    if wanted is None:
        assert found is None, what
    elif isinstance(wanted, tuple):
        for k, (one, other) in enumerate(zip(found, wanted, strict=True)):
            close(one, other, f"{what} {k}", rtol)
    elif isinstance(wanted, dict):
        for name, other in wanted.items():
            close(_part(found, name), other, f"{what}.{name}", rtol)
    else:
        _close_arrays(np.asarray(_plain(found)), wanted, what, rtol)


def _close_arrays(found: np.ndarray, wanted: np.ndarray, what: str, rtol: float) -> None:
    assert found.shape == wanted.shape, f"{what}: {found.shape}, not {wanted.shape}"
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    rtol = max(rtol, HALF_RTOL) if found.dtype == np.float16 else rtol
    finite = np.abs(wanted[np.isfinite(wanted)])
    atol = rtol * max(float(finite.max(initial=0.0)), 1e-3)
    np.testing.assert_allclose(np.float64(found), wanted, rtol=rtol, atol=atol, err_msg=what)


def _plain(value: Any) -> Any:
    return value.numpy() if isinstance(value, sad.Array) else value


def _part(value: Any, name: str) -> Any:
    fields = struct_fields(value)
    return _plain(value)[name] if fields is None else fields[name]


def _like(result: Any, draw: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Something drawn for every float array of a result; `None` for results without floats."""
    if isinstance(result, tuple):
        return tuple(_like(one, draw) for one in result)
    if isinstance(result, dict):
        drawn = {name: _like(one, draw) for name, one in result.items()}
        return drawn if any(one is not None for one in drawn.values()) else None
    return draw(result) if result.dtype.kind == "f" else None


def _drawn_where_finite(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    # Elements that keep +-inf do not change.
    drawn = rng.uniform(0.5, 1.5, x.shape)
    return np.where(np.isfinite(x), drawn, 0).astype(np.float32)


def _tangent(argument: Any, rng: np.random.Generator) -> Any:
    """A direction in the form of an argument; `None` where it holds no float."""
    fields = struct_fields(argument)
    if fields is not None:
        drawn = {name: _tangent(one, rng) for name, one in fields.items()}
        zeros = {n: np.zeros_like(_plain(fields[n])) for n, dot in drawn.items() if dot is None}
        return rebuilt(struct_class(argument), drawn | zeros)
    data = np.asarray(_plain(argument))
    if data.dtype.names is not None:
        drawn = {name: _tangent(data[name], rng) for name in data.dtype.names}
        return {name: data[name] if d is None else d for name, d in drawn.items()}
    if data.dtype.kind != "f":
        return None
    drawn = rng.standard_normal(data.shape)
    return float(drawn) if data.ndim == 0 else drawn.astype(np.float32)
