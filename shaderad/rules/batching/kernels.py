"""Batching of kernel calls and their derivatives: one launch with one more Index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from shaderad.diagnostics import error
from shaderad.ir import arrays
from shaderad.ir.arrays import KernelCall
from shaderad.ir.nodes import Kernel
from shaderad.ir.pointers import POINTED, is_pooled
from shaderad.rules.batching.kernel_bodies import active_name, batched_kernel
from shaderad.rules.batching.operands import Batch, Operand, flags_of, mapped
from shaderad.rules.nodes import PushedKernel


def batch_call(node: KernelCall, operands: Sequence[Operand], batch: Batch) -> list[Operand]:
    return mapped(_call(node, operands, batch).results)


# x_bar = J(x, w)^T y_bar      x_bars[k] = J(xs[k], w)^T y_bars[k]
# An operand whose derivative is read or computed is mapped: each element of the batch has its own.


def batch_pull(node: arrays.KernelPull, operands: Sequence[Operand], batch: Batch) -> list[Operand]:
    return _derivative(node, operands, batch, node.wanted)


def batch_push(node: arrays.KernelPush, operands: Sequence[Operand], batch: Batch) -> list[Operand]:
    return _derivative(node, operands, batch, node.derivative_names)


def _derivative(
    node: arrays.KernelPull | arrays.KernelPush,
    operands: Sequence[Operand],
    batch: Batch,
    names: Collection[str],
) -> list[Operand]:
    count = len(node.call.names)
    call = _call(node.call, operands[:count], batch, names)
    derivatives = map(batch.spread, operands[count:])
    return mapped(replace(node, call=call, operands=(*call.operands, *derivatives)).results)


def _call(
    call: KernelCall, operands: Sequence[Operand], batch: Batch, names: Collection[str] = ()
) -> KernelCall:
    """The call for the whole batch; the operands in `names` are always mapped."""
    flag_by_name = dict(zip(call.names, flags_of(operands), strict=True))
    mapped_names = {name for name, is_mapped in flag_by_name.items() if is_mapped} | {*names}
    mapped_names |= _partners(call.kernel, mapped_names, call.names)
    _check(call, mapped_names)
    values = batch.flagged(operands, [name in mapped_names for name in call.names])
    kernel = batched_kernel(call.kernel, frozenset(mapped_names), has_active=bool(batch.passed))
    return replace(
        call,
        operands=(*values, *batch.passed),
        names=(*call.names, *(active_name(call.kernel) for _ in batch.passed)),
        kernel=kernel,
        dim=(batch.extent, *call.dim),
        written=tuple((name, batch.type_of(t)) for name, t in call.written),
    )


def _partners(kernel: Kernel, mapped_names: set[str], names: Sequence[str]) -> set[str]:
    """The tangents of mapped arrays and the primals of mapped tangents, which share indices."""
    if not isinstance(kernel, PushedKernel):
        return set()
    pairs = [{x, dot} for x, dot in kernel.dots.items() if dot in names]
    return {name for pair in pairs if mapped_names & pair for name in pair}


def _check(call: KernelCall, mapped_names: set[str]) -> None:
    """Raises SR0399 for kernels that cannot be batched."""
    kernel = call.kernel
    if kernel.is_built:
        raise error("SR0399", call.span, kernel=kernel.name, why="it was loaded from a build")
    for x in (*kernel.buffers, *kernel.uniforms):
        if x.name in mapped_names and (POINTED in x.path or is_pooled(x.type)):
            path = ".".join(part for part in x.path if part != POINTED)
            why = f"it reads `{path}`, which is mapped, through a pointer"
            raise error("SR0399", call.span, kernel=kernel.name, why=why)
