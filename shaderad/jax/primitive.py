"""The primitive of JAX that calls a function of flat lists, and JAX's rules for it.

The tangents of a call come from a call of its pushforward. That is linear, so JAX transposes it
into a call of the pullback. Both are again functions of flat lists, so forward and reverse mode of
any order follow from these two rules.

Operands are the tensors of the function. A derivative takes the tensors of the primal, the mapped
inputs, and the ticket of the primal last (`calls.py`). JAX calls back with host arrays; the
callback must not call JAX, which could deadlock by waiting for the callback's own thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, partial_eval

from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.jax.calls import TICKET, Axes, BatchAxis, FlatCall, KeptRuns, run
from shaderad.jax.tensors import from_host, hollow, home_of
from shaderad.wrapped.flat import DerivativeForm, LinearMap
from shaderad.wrapped.parts import Outline

_ad, _batching, _core = cast("Any", ad), cast("Any", batching), cast("Any", jax).core
_mlir, _partial_eval = cast("Any", mlir), cast("Any", partial_eval)

_call: Any = Primitive("shaderad_call")
_call.multiple_results = True


def bind(call: FlatCall, operands: Sequence[Any], axes: Axes = ()) -> list[Any]:
    """Calls through JAX."""
    return _call.bind(*operands, call=call, axes=axes)


@_call.def_impl
def _at_once(*operands: Any, call: FlatCall, axes: Axes) -> list[Any]:
    """Runs a call that is neither traced nor compiled."""
    contents = run(call, axes, operands)
    home = home_of(operands)
    results = [from_host(content, home) for content in contents]
    if call.keeps:
        call.device.kept(KeptRuns).own(results[-1])
    return results


@_call.def_abstract_eval
def _abstract(*_: Any, call: FlatCall, axes: Axes) -> list[Any]:
    extents = tuple(axis.size for axis in axes)
    avals = [
        _core.ShapedArray((*extents, *outline.shape), outline.dtype) for outline in call.outlines
    ]
    return [*avals, _core.ShapedArray(extents, TICKET)] if call.keeps else avals


def _lowered(ctx: Any, *operands: Any, call: FlatCall, axes: Axes) -> Any:
    """A callback from compiled code."""
    _check(call, axes, ctx.avals_in)

    @api_boundary
    def called(*operands: Any) -> Any:
        return tuple(run(call, axes, operands))

    results, _, _ = _mlir.emit_python_callback(
        ctx, called, None, list(operands), ctx.avals_in, ctx.avals_out, has_side_effect=False
    )
    return results


def _check(call: FlatCall, axes: Axes, avals: Sequence[Any]) -> None:
    """Raises the errors of a run while JAX compiles, so that the callback does not raise them."""
    tensors = avals[:-1] if call.is_derivative else avals
    content = [hollow(_element(axes, k, aval)) for k, aval in enumerate(tensors)]
    with call.device:
        call.flat.check(call.form, call.arguments(content))


def _tangents(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: FlatCall, axes: Axes
) -> tuple[list[Any], list[Any]]:
    """The primals are the call; the tangents are its pushforward at the same arguments."""
    count = len(primals) - call.is_derivative
    moving = [k for k in range(count) if not _is_zero(tangents[k])]
    results = bind(replace(call, keeps=True), primals, axes)
    *outputs, ticket = results
    floats = tuple(outline.dtype.kind in "fV" for outline in call.outlines)
    form = DerivativeForm(call.form, tuple(k in moving for k in range(count)), floats)
    outlines = tuple(
        outline for outline, is_float in zip(call.outlines, floats, strict=True) if is_float
    )
    moved = iter(
        bind(
            _derived(call, call.flat.pushed, form, outlines),
            [*primals[:count], *(tangents[k] for k in moving), ticket],
            _with_members(axes, [*range(count), *moving, None]),
        )
    )
    dots = [
        next(moved) if is_float else _zero(x) for x, is_float in zip(outputs, floats, strict=True)
    ]
    return (results, [*dots, _zero(ticket)]) if call.keeps else (outputs, dots)


def _transposed(cotangents: Sequence[Any], *operands: Any, call: FlatCall, axes: Axes) -> list[Any]:
    """The cotangents of the mapped inputs of a derivative, from those of its results."""
    flat = call.flat
    assert isinstance(flat, LinearMap)
    *tensors, ticket = operands
    own, mapped = flat.taken_apart(call.form, tensors)
    wanted = [k for k, x in enumerate(mapped) if _ad.is_undefined_primal(x)]
    moving = [k for k, bar in enumerate(cotangents) if not _is_zero(bar)]
    bars: list[Any] = [None] * len(operands)
    for k in wanted:
        bars[len(own) + k] = _ad.Zero(mapped[k].aval)
    if not moving:
        return bars
    other = flat.transpose
    form = flat.narrowed(call.form, wanted, moving)
    outlines = tuple(_element(axes, len(own) + k, mapped[k].aval) for k in wanted)
    gradients = bind(
        _derived(call, other, form, outlines),
        [*own, *(cotangents[k] for k in moving), ticket],
        _with_members(axes, [*range(len(own)), *(None for _ in moving), len(operands) - 1]),
    )
    for k, gradient in zip(wanted, gradients, strict=True):
        shared = tuple(n for n, axis in enumerate(axes) if not axis.members[len(own) + k])
        bars[len(own) + k] = jnp.sum(gradient, shared) if shared else gradient
    return bars


def _derived(
    call: FlatCall, flat: LinearMap, form: DerivativeForm, outlines: tuple[Outline, ...]
) -> FlatCall:
    number = flat.forms.number(form)
    return replace(call, flat=flat, form=number, outlines=outlines, keeps=False)


def _batched(
    operands: Sequence[Any], dims: Sequence[int | None], *, call: FlatCall, axes: Axes
) -> tuple[list[Any], list[int]]:
    """One callback for the whole batch, which calls the function once per element."""
    pairs = list(zip(operands, dims, strict=True))
    size = next(x.shape[d] for x, d in pairs if d is not None)
    moved = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in pairs]
    axis = BatchAxis(size, tuple(d is not None for d in dims))
    results = bind(call, moved, (axis, *axes))
    return results, [0] * len(results)


def _pruned(used: Sequence[bool], equation: Any) -> tuple[list[bool], Any]:
    """Removes a call whose results are unused, or only its unused ticket."""
    call: FlatCall = equation.params["call"]
    inputs = len(equation.invars)
    if not any(used):
        return [False] * inputs, None
    if call.keeps and not used[-1]:
        params = {**equation.params, "call": replace(call, keeps=False)}
        equation = equation.replace(outvars=equation.outvars[:-1], params=params)
    return [True] * inputs, equation


_mlir.register_lowering(_call, _lowered)
_ad.primitive_jvps[_call] = _tangents
_ad.primitive_transposes[_call] = _transposed
_batching.primitive_batchers[_call] = _batched
_partial_eval.dce_rules[_call] = _pruned


def _is_zero(derivative: Any) -> bool:
    return type(derivative) is _ad.Zero


def _zero(x: Any) -> Any:
    """The symbolic zero for a value without a derivative or with a zero one."""
    aval = _core.ShapedArray(x.shape, x.dtype)
    # JAX 0.4.30 still uses the old name.
    to_tangent = getattr(aval, "to_tangent_aval", None) or aval.at_least_vspace
    return _ad.Zero(to_tangent())


def _with_members(axes: Axes, sources: Sequence[int | None]) -> Axes:
    """The axes for new operands, given the positions of the old ones; `None` has all axes."""
    return tuple(
        BatchAxis(axis.size, tuple(k is None or axis.members[k] for k in sources)) for axis in axes
    )


def _element(axes: Axes, operand: int, aval: Any) -> Outline:
    """The outline of an operand for one element of the batch."""
    count = sum(axis.members[operand] for axis in axes)
    return Outline(tuple(aval.shape[count:]), aval.dtype)
