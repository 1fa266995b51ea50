"""Holds a kernel on a device against its reference: primal, every gradient, a tangent."""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from tests.lower import reference
from tests.lower.reference import Case

# float32, up to a few thousand operations; adds of many threads come in any order.
RTOL = 2e-4


def as_list(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(p.numpy(), np.float64) for p in parts]


def close(found: Any, wanted: np.ndarray, what: str, rtol: float = RTOL) -> None:
    finite = np.abs(wanted[np.isfinite(wanted)])
    atol = rtol * max(float(finite.max(initial=0.0)), 1e-3)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=atol, err_msg=what)


def check(case: Case, device: sad.Device, rtol: float = RTOL) -> None:
    """Primal, vjp and jvp of `case` against central differences of its Python."""
    random = np.random.default_rng(7)
    wanted = reference.primal(case, reference.widened(case.args))
    cotangents = [random.uniform(0.5, 1.5, w.shape).astype(np.float32) for w in wanted]
    out, pullback = sad.vjp(case.kernel, *case.args, **case.call)
    for k, (found, exact) in enumerate(zip(as_list(out), wanted, strict=True)):
        close(found, exact, f"result {k}", rtol)
    # Elements that keep +-inf do not change.
    cotangents = [
        np.where(np.isfinite(w), c, 0).astype(c.dtype)
        for c, w in zip(cotangents, wanted, strict=True)
    ]
    bar = tuple(_cotangent(p, c) for p, c in zip(_parts(out), cotangents, strict=True))
    found_gradients = pullback(bar if isinstance(out, tuple) else bar[0])
    with np.errstate(invalid="ignore"):
        exact_gradients = reference.gradients(case, cotangents)
        directions = {k: _direction(random, case.args[k]) for k in case.float_positions}
        changes = reference.directional(case, directions)
    for k, exact in exact_gradients.items():
        close(found_gradients[k].numpy(), exact, f"gradient of argument {k}", rtol)
    tangents = tuple(directions.get(k) for k in range(len(case.args)))
    _, out_dot = sad.jvp(case.kernel, case.args, tangents, **case.call)
    for k, (found, exact) in enumerate(zip(_parts(out_dot), changes, strict=True)):
        if found is not None:
            close(found.numpy(), exact, f"tangent of result {k}", rtol)
    device.synchronize()


def _parts(out: Any) -> tuple[Any, ...]:
    return out if isinstance(out, tuple) else (out,)


def _cotangent(result: Any, cotangent: np.ndarray) -> np.ndarray | None:
    return cotangent if result.numpy().dtype.kind == "f" else None


def _direction(random: np.random.Generator, argument: Any) -> Any:
    direction = random.standard_normal(np.shape(argument)).astype(np.float32)
    return direction if np.ndim(argument) else float(direction)
