"""Batching of kernel calls and their derivatives: one launch with one more Index.

Some kernels cannot have another axis: those that were built or are in Slang, those that follow
pointers to what is mapped, and those whose gradient by a texture each element needs for itself. A
loop calls them for one element at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from shaderad.diagnostics import error
from shaderad.ir import arrays
from shaderad.ir.arrays import ArrayType, Graph, KernelCall, Node, Value, with_operands
from shaderad.ir.nodes import Kernel
from shaderad.ir.pointers import POINTED, is_pooled
from shaderad.ir.types import INT, TextureType
from shaderad.rules.batching.kernel_bodies import active_name, batched_kernel
from shaderad.rules.batching.operands import Batch, Operand, mapped, shared
from shaderad.rules.nodes import PushedKernel


def batch_call(node: KernelCall, operands: Sequence[Operand], batch: Batch) -> list[Operand]:
    mapped_names = _mapped_names(node, operands, ())
    if not _has_axes(node.kernel, mapped_names):
        return _looped(node, node, operands, batch)
    results = _call(node, operands, batch, mapped_names).results
    count = len(node.written)
    return [*mapped(results[:count]), *shared(results[count:])]


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
    mapped_names = _mapped_names(node.call, operands, names)
    if not _has_axes(node.call.kernel, mapped_names):
        return _looped(node, node.call, operands, batch)
    call = _call(node.call, operands[:count], batch, mapped_names)
    derivatives = map(batch.spread, operands[count:])
    return mapped(replace(node, call=call, operands=(*call.operands, *derivatives)).results)


def _mapped_names(
    call: KernelCall, operands: Sequence[Operand], names: Collection[str]
) -> set[str]:
    """The operands with the axis of the batch; those in `names` always have it."""
    pairs = zip(call.names, operands, strict=False)
    mapped_names = {name for name, x in pairs if x.is_mapped} | {*names}
    return mapped_names | _partners(call.kernel, mapped_names, call.names)


def _call(
    call: KernelCall, operands: Sequence[Operand], batch: Batch, mapped_names: Collection[str]
) -> KernelCall:
    """The call for the whole batch."""
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


def _looped(
    node: Node, call: KernelCall, operands: Sequence[Operand], batch: Batch
) -> list[Operand]:
    """The results of `node`, for one element of the batch after the other.

    Raises:
        LanguageError: SR0399 in a loop that some elements have left, which may report nothing.
    """
    if batch.passed:
        raise error("SR0399", call.span, kernel=call.kernel.name)
    # Constants and sizes stay in the body: kernels get the size of a texture as a number.
    inner = [x.value if _is_literal(x) else Value(v.type)
             for v, x in zip(node.operands, operands, strict=True)]  # fmt: skip
    pairs = [(v, x) for v, x in zip(inner, operands, strict=True) if not _is_literal(x)]
    constants = [(v, x.value) for v, x in pairs if not x.is_mapped]
    rows = [(v, x.value) for v, x in pairs if x.is_mapped]
    inputs = (Value(ArrayType(INT, ())), *(v for v, _ in (*constants, *rows)))
    loop = arrays.Loop(
        operands=tuple(x for _, x in (*constants, *rows)),
        body=Graph(inputs, with_operands(node, tuple(inner)).results),
        count=batch.extent,
        carry_count=0,
        constant_count=len(constants),
        span=node.span,
    )
    return mapped(loop.results)


def _partners(kernel: Kernel, mapped_names: set[str], names: Sequence[str]) -> set[str]:
    """The tangents of mapped arrays and the primals of mapped tangents, which share indices."""
    if not isinstance(kernel, PushedKernel):
        return set()
    pairs = [{x, dot} for x, dot in kernel.dots.items() if dot in names]
    return {name for pair in pairs if mapped_names & pair for name in pair}


def _is_literal(x: Operand) -> bool:
    """True for what is computed from nothing."""
    return x.value.producer is not None and not x.value.producer.operands and not x.is_mapped


def _has_axes(kernel: Kernel, mapped_names: Collection[str]) -> bool:
    """True if a kernel can read the arrays `mapped_names` with another axis in front."""
    if not kernel.has_body:
        return False
    return not any(
        POINTED in x.path or is_pooled(x.type) or isinstance(x.type, TextureType)
        for x in (*kernel.buffers, *kernel.uniforms)
        if x.name in mapped_names
    )
