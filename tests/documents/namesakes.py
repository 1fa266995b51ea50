"""Array functions beside those of NumPy, JAX and PyTorch with the same name: do equal calls agree?

``python -m tests.documents.namesakes`` writes the calls that mean something else here, with what
each library makes of them, into docs/coming_from.md.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import shaderad as sad
from shaderad.functions import public
from shaderad.names import INTRINSICS

PAGE = Path(__file__).parents[2] / "docs" / "coming_from.md"
BEGIN, END = "<!-- same names -->\n", "\n<!-- end -->"
HERE = "shaderad"

TRANSFORMS = ("grad", "jacobian", "jvp", "value_and_grad", "vjp")
NAMES = sorted({*public.__all__, *INTRINSICS, *TRANSFORMS, "detach", "unique"})
"""Every function of arrays."""

OPERANDS: dict[str, Any] = {
    "x": np.array([[3, 1, 2], [6, 5, 4]], np.float32),
    "y": np.array([[1, 2, 3], [2, 0, 1]], np.float32),
    "square": np.array([[4, 1, 2], [1, 5, 3], [2, 3, 6]], np.float32),
    "v": np.array([3, 1, 2], np.float32),
    "w": np.array([1, 2, 0.5], np.float32),
    "u": np.array([-2.5, -0.5, 0, 0.5, 1.5, np.inf, np.nan], np.float32),
    "p": np.array([0.25, 0.5, 0.75, 0, 2, np.inf, np.nan], np.float32),
    "k": np.array([2, 0, 1], np.int32),
    "at": np.array([[0, 2, 1], [1, 1, 0]], np.int32),
    "m": np.array([True, False, True]),
    "image": np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3),
    "filter": np.ones((1, 1, 2, 2), np.float32),
}
"""What the calls below are made with, as arrays of each library."""

OF_ONE = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh degrees erf erfc exp exp2 expm1 floor frac "
    "isfinite isinf isnan log log10 log1p log2 radians round rsqrt sign sin sinh sqrt tan tanh "
    "trunc relu sigmoid silu softplus"
)
OF_TWO = "add atan2 copysign fmod hypot maximum minimum mul pow"
CALLS: dict[str, str] = {
    **{name: f"{name}(u)" for name in OF_ONE.split()},
    **{name: f"{name}(u, p)" for name in OF_TWO.split()},
    "all": "all(m); all(x > 1, 0)",
    "gelu": "gelu(w)",  # PyTorch's at infinity depends on the processor
    "any": "any(m); any(x > 5, 0)",
    "arange": "arange(4); arange(1, 4); arange(0.0, 1.0, 0.25); arange(5, 0, -2)",
    "argmax": "argmax(x); argmax(x, 1)",
    "argmin": "argmin(x); argmin(x, 0)",
    "argsort": "argsort(v); argsort(x, 0); argsort(x)",
    "associative_scan": "associative_scan(plus, v); associative_scan(plus, x, axis=1); "
    "associative_scan(plus, v, True); associative_scan(plus, x)",
    "broadcast_to": "broadcast_to(v, (2, 3))",
    "checkpoint": "checkpoint(lambda a: a * a)(v)",
    "clamp": "clamp(v, 1.5, 2.5)",
    "clip": "clip(v, 1.5, 2.5); clip(v, min=1.5); clip(v, None, 2.5); clip(u, -1.0, 1.0)",
    "concatenate": "concatenate([x, y]); concatenate([x, y], 1)",
    "conv": 'conv(image, filter, (1, 1), ((0, 0), (0, 0))); conv(image, filter, (1, 1), "VALID")',
    "cross": "cross(v, w); cross(x, y)",
    "cumprod": "cumprod(v); cumprod(x, 0); cumprod(x)",
    "cumsum": "cumsum(v); cumsum(x, 0); cumsum(x)",
    "custom_vjp": "custom_vjp(lambda a: a * a)(v)",
    "detach": "detach(v)",
    "diff": "diff(v); diff(v, 2); diff(x); diff(x, 1, 0)",
    "dot": "dot(v, w); dot(x, square); dot(x, v)",
    "einsum": 'einsum("ij,j->i", x, v)',
    "eye": "eye(3); eye(2, 3)",
    "fori_loop": "fori_loop(1, 4, lambda i, c: c + i, 0)",
    "full": "full((2,), 7.0); full((2,), 7)",
    "full_like": "full_like(v, 2.5); full_like(k, 2.5)",
    "gather": "gather(x, 1, at); gather(v, k)",
    "grad": "grad(lambda a: (a * a).sum())(v); grad(lambda a, b: (a * b).sum(), (0, 1))(v, w); "
    "grad(lambda a: (a.sum(), a), has_aux=True)(v)",
    "histogram": "histogram(v, 3)",
    "inverse": "inverse(square)",
    "iota": "iota(int, 3)",
    "jacobian": "jacobian(lambda a: a * a)(v)",
    "jvp": "jvp(lambda a: a * a, (v,), (w,))",
    "lerp": "lerp(v, w, 0.25)",
    "linspace": "linspace(0.0, 1.0, 5); linspace(0.0, 1.0)",
    "log_softmax": "log_softmax(x); log_softmax(x, 0)",
    "logsumexp": "logsumexp(x); logsumexp(x, 1)",
    "map": "map(lambda a: a * a, v); map(lambda row: row.sum(), x)",
    "matmul": "matmul(x, v); matmul(x, square)",
    "max": "max(x); max(x, axis=1); max(x, 0); max(v, w); max(u)",
    "mean": "mean(x); mean(x, 0); mean(k)",
    "min": "min(x); min(x, axis=1); min(x, 0); min(v, w)",
    "norm": "norm(v); norm(x); norm(x, axis=1); norm(v, 1)",
    "normalize": "normalize(x)",
    "ones": "ones((2, 3)); ones(3)",
    "ones_like": "ones_like(v); ones_like(k)",
    "prod": "prod(x); prod(x, 0)",
    "reduce": "reduce(v, 0.0, plus, (0,))",
    "reshape": "reshape(x, (3, 2)); reshape(x, -1)",
    "roll": "roll(v, 1); roll(x, 1, 0); roll(x, 1)",
    "scan": "scan(lambda c, a: (c + a, c), 0.0, v)",
    "scatter": "scatter(v, 0, k, w)",
    "scatter_add": "scatter_add(v, 0, k, w)",
    "segment_reduce": 'segment_reduce(v, "sum", lengths=k)',
    "select": "select([m], [v]); select(x, 0, 1)",
    "softmax": "softmax(x); softmax(x, 0)",
    "sort": "sort(v); sort(x, 0); sort(x)",
    "stack": "stack([v, w]); stack([v, w], 1)",
    "std": "std(v); std(x, 0)",
    "sum": "sum(x); sum(x, 0); sum(m)",
    "take_along_axis": "take_along_axis(x, at, 1); take_along_axis(x, at)",
    "tensordot": "tensordot(x, square, 1); tensordot(x, y)",
    "transpose": "transpose(x); transpose(x, (1, 0)); transpose(x, 0, 1)",
    "tril": "tril(square); tril(square, 1)",
    "triu": "triu(square); triu(square, -1)",
    "unique": "unique(v)",
    "value_and_grad": "value_and_grad(lambda a: (a * a).sum())(v); "
    "value_and_grad(lambda a: (a.sum(), a), has_aux=True)(v)",
    "var": "var(v); var(x, 0)",
    "vjp": "vjp(lambda a: a * a, v)[0]",
    "vmap": "vmap(lambda row: row.sum())(x); vmap(lambda a, b: a + b, (0, None))(x, v)",
    "where": "where(m, v, w); where(m)",
    "while_loop": "while_loop(lambda c: c < 5, lambda c: c + 2, 0)",
    "zeros": "zeros((2, 3)); zeros(3)",
    "zeros_like": "zeros_like(v); zeros_like(k)",
}
"""Calls of each function that has a namesake, as users of the other libraries write them."""

_AXIS = "name the axis, such as `axis=-1`"
_POSITIONS = "the values; the positions are `sad.{}`"
NOTES: dict[str, str] = {
    "argsort": _AXIS,
    "associative_scan(plus, v, True)": "`sad.scan(sad.add, v, reverse=True)`",
    "associative_scan(plus, x)": _AXIS,
    "clip": "NaN becomes the lower bound",
    "conv": "`padding=0`",
    "cross": "`sad.cross` takes vectors: `sad.array(v, dtype=float3)`",
    "cumprod": _AXIS,
    "cumsum": _AXIS,
    "frac": "`x - floor(x)`, as in HLSL and Slang; `x - sad.trunc(x)` keeps the sign",
    "gather": "`sad.take_along_axis(x, at, 1)`",
    "gelu": '`approximate="tanh"` is JAX\'s default',
    "histogram": "`sad.segment_reduce(sad.add, 0, bin_count, bin, 1)` counts",
    "inverse": "`sad.inverse` takes matrices: `sad.array(square, dtype=float3x3)`",
    "iota": "`sad.iota(3)`",
    "map": "`f` takes elements; `sad.vmap(f)(x)` takes rows",
    "max(x, axis=1)": _POSITIONS.format("argmax"),
    "max(x, 0)": "`sad.max(x, axis=0)`; `sad.maximum(x, 0)` compares elements",
    "max(u)": "NaN never wins",
    "min(x, axis=1)": _POSITIONS.format("argmin"),
    "min(x, 0)": "`sad.min(x, axis=0)`; `sad.minimum(x, 0)` compares elements",
    "norm": "`sad.sum(sad.abs(v))`",
    "normalize": "`x / sad.norm(x, axis=1, keepdims=True)`; vectors by `sad.normalize`",
    "reduce": "`sad.reduce(sad.add, v)`",
    "roll": _AXIS,
    "scan": "`sad.loop(f, init, xs)`",
    "scatter": "`sad.scatter(v, k, w)`",
    "scatter_add": "`sad.scatter_add(v, k, w)`",
    "segment_reduce": "`sad.segment_reduce(sad.add, 0.0, segment_count, segment, v)`",
    "select([m], [v])": "`sad.where(m, v, 0.0)`, nested for several conditions",
    "select(x, 0, 1)": "`x[1]`",
    "sign": "0 for NaN, as in PyTorch",
    "sort(v)": _POSITIONS.format("argsort"),
    "sort(x, 0)": _POSITIONS.format("argsort"),
    "sort(x)": _AXIS,
    "std": "`ddof=1` divides by n - 1",
    "transpose": "`sad.transpose(x, (1, 0))`",
    "unique": "no counterpart in Python; in kernels a promise that no index repeats",
    "var": "`ddof=1` divides by n - 1",
    "where": "`sad.compact(sad.iota(len(m)), m)`",
    "while_loop": "give the largest number of iterations as `limit`",
}
"""What the calls of a function, or one call, give here, or what to write instead."""

REFUSED = object()


@cache
def libraries() -> dict[str, tuple[Any, ...]]:
    """The modules of each library in which names are looked up, first to last."""
    import jax
    import jax.numpy as jnp
    import torch

    return {
        HERE: (sad,),
        "NumPy": (np, np.linalg),
        "JAX": (jnp, jax.nn, jax.lax, jax),
        "PyTorch": (torch, torch.func, torch.nn.functional),
    }


def variables(library: str) -> dict[str, Any]:
    """The operands as arrays of one library."""
    import jax.numpy as jnp
    import torch

    convert: Callable[[Any], Any] = {
        HERE: sad.array,
        "NumPy": np.asarray,
        "JAX": jnp.asarray,
        "PyTorch": torch.as_tensor,
    }[library]
    found = {name: convert(value) for name, value in OPERANDS.items()}
    plus = {HERE: sad.add, "JAX": lambda a, b: a + b}.get(library)
    return {**found, "plus": plus}


def function_of(library: str, name: str) -> Any:
    """The function with this name, `None` if a library has none."""
    modules = (m for m in libraries()[library] if hasattr(m, name))
    module = next(modules, None)
    return None if module is None else getattr(module, name)


def result_of(library: str, call: str, operands: dict[str, Any]) -> Any:
    """The result of a call, in NumPy's arrays; `REFUSED` if it raises an error."""
    name = call.partition("(")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = eval(call, {**operands, name: function_of(library, name)})
            return _on_host(found)
        except Exception:  # Each library refuses by errors of its own.
            return REFUSED


def _on_host(found: Any) -> Any:
    if isinstance(found, tuple | list):
        return tuple(map(_on_host, found))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return found.numpy() if isinstance(found, sad.Array) else np.asarray(found)


def agree(ours: Any, theirs: Any) -> bool:
    """True if two results have one structure, kind of numbers, shape, and values."""
    if isinstance(ours, tuple) and isinstance(theirs, tuple):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(ours, np.ndarray) or not isinstance(theirs, np.ndarray):
        return False
    return (
        ours.shape == theirs.shape
        and ours.dtype.kind == theirs.dtype.kind
        and np.allclose(ours, theirs, rtol=2e-5, atol=1e-6, equal_nan=True)
    )


def differences() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each call that another library takes and that gives something else here, with all results."""
    operands = {library: variables(library) for library in libraries()}
    for name in NAMES:
        others = [k for k in libraries() if k != HERE and function_of(k, name) is not None]
        for call in filter(None, CALLS.get(name, "").split("; ")):
            ours = result_of(HERE, call, operands[HERE])
            results = {k: result_of(k, call, operands[k]) for k in others}
            taken = [found for found in results.values() if found is not REFUSED]
            if not all(agree(ours, found) for found in taken):
                yield call, {HERE: ours, **results}


def without_calls() -> list[str]:
    """The functions that have a namesake and no call that is compared."""
    others = [k for k in libraries() if k != HERE]
    return [
        name
        for name in NAMES
        if name not in CALLS and any(function_of(k, name) is not None for k in others)
    ]


def note_of(call: str) -> str:
    """What to write instead of `call`."""
    return NOTES.get(call) or NOTES[call.partition("(")[0]]


def table() -> str:
    """The rows of docs/coming_from.md."""
    rows = ["| Call | Elsewhere | Here |", "|---|---|---|"]
    for call, results in differences():
        ours = results.pop(HERE)
        libraries_by_result: dict[str, list[str]] = {}
        for library, found in results.items():
            if found is not REFUSED and not agree(ours, found):
                libraries_by_result.setdefault(_shown(found), []).append(library)
        elsewhere = "; ".join(f"{', '.join(k)}: `{v}`" for v, k in libraries_by_result.items())
        here = "" if ours is REFUSED else f"`{_shown(ours)}`: "
        rows.append(f"| `{call}` | {elsewhere} | {here}{note_of(call)} |")
    return "\n".join(rows)


def _shown(found: Any) -> str:
    if isinstance(found, tuple):
        return "(" + ", ".join(map(_shown, found)) + ")"  # pyright: ignore[reportUnknownArgumentType]
    if found.size > 8:
        return f"shape {found.shape}"
    unsigned = found if found.dtype == bool else found + 0  # no -0.
    return re.sub(r"\s+", " ", np.array2string(unsigned, precision=3, separator=", "))


def page_with(rows: str) -> str:
    """docs/coming_from.md with these rows."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return before + BEGIN + "\n" + rows + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page_with(table()))
    sys.stdout.write(f"{PAGE}\n")
