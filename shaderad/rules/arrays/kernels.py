"""Derivatives of kernel calls: the kernel's own backward and forward entry points.

Kernels have no second derivative here (SR0451): what Slang differentiated is not differentiated
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from shaderad.diagnostics import error
from shaderad.ir import arrays
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.layout import Derivatives

# results = kernel(operands)     results_dot by <kernel>_fwd      operands_bar by <kernel>_bwd


def push_kernel(node: arrays.KernelCall, dots: Derivatives) -> Derivatives:
    given = [(name, dot) for name, dot in zip(node.names, dots, strict=True) if dot is not None]
    wanted = [name for name, t in node.written if b.is_differentiable(t.element)]
    made = arrays.KernelPush(
        operands=(*node.operands, *(dot for _, dot in given)),
        call=node,
        given=tuple(name for name, _ in given),
        wanted=tuple(wanted),
        span=node.span,
    )
    by_name = dict(zip(wanted, made.results, strict=True))
    return [by_name.get(name) for name, _ in node.written]


def pull_kernel(node: arrays.KernelCall, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    names = [name for name, is_wanted in zip(node.names, wanted, strict=True) if is_wanted]
    given = [(n, bar) for (n, _), bar in zip(node.written, bars, strict=True) if bar is not None]
    made = arrays.KernelPull(
        operands=(*node.operands, *(bar for _, bar in given)),
        call=node,
        wanted=tuple(names),
        given=tuple(name for name, _ in given),
        span=node.span,
    )
    by_name = dict(zip(names, made.results, strict=True))
    return [by_name.get(name) for name in node.names]


def refuse(node: arrays.Node, *_: object) -> NoReturn:
    """Raises SR0451: the derivative of a derivative of a kernel."""
    raise error("SR0451", node.span)
