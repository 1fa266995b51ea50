"""Derivatives of kernel calls, by the backward and forward entry points of the kernel.

A second derivative is a first derivative of the pushed kernel (`rules/pushing`),
``push(f)(x, x_dot) = (y, J x_dot)``, and so on for higher orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shaderad.ir import arrays
from shaderad.ir import building as b
from shaderad.ir.arrays import Value
from shaderad.rules.arrays.layout import Derivatives
from shaderad.rules.arrays.subgraphs import selected
from shaderad.rules.transforms import push_kernel

Named = dict[str, Value]
"""Values by the names of kernel parameters."""

# results = kernel(operands)     results_dot by <kernel>_fwd      operands_bar by <kernel>_bwd


def push_call(node: arrays.KernelCall, dots: Derivatives) -> Derivatives:
    wanted = [name for name, t in node.written if b.is_differentiable(t.element)]
    dot_by_name = _push(node, _named(node.names, dots), wanted)
    dots = [dot_by_name.get(name) for name, _ in node.written]
    return [*dots, *(None for _ in node.results[len(dots) :])]


def pull_call(node: arrays.KernelCall, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    names = [name for name, _ in node.written]
    results_bar = _named(names, bars[: len(names)])
    return list(map(_pull(node, results_bar, selected(node.names, wanted)).get, node.names))


# x_bar = J^T y_bar        x_bar_dot = J^T y_bar_dot + d/dx <y_bar, J x_dot>
#                                    = x_bar of push(f) for the cotangents (y_bar_dot, y_bar)


def push_pull(node: arrays.KernelPull, dots: Derivatives) -> Derivatives:
    call, bars = _parts(node)
    count = len(call.names)
    x_dots = _named(call.names, dots[:count])
    cotangents = _named(node.derivative_names, dots[count:])
    if x_dots:
        call, dot_of = _with_tangents(call, x_dots)
        cotangents |= {dot_of[name]: bar for name, bar in bars.items()}
    return list(_pull(call, cotangents, node.wanted).values())


# With the cotangent z of x_bar:  y_bar_bar = J z
#                                 x_bar = d/dx <y_bar, J z>
#                                       = x_bar of push(f) at (x, z) for the cotangents (0, y_bar)


def pull_pull(node: arrays.KernelPull, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    call, y_bars = _parts(node)
    count = len(call.names)
    z = _named(node.wanted, bars)
    y_bar_bars = _push(call, z, selected(node.derivative_names, wanted[count:]))
    x_names = selected(call.names, wanted[:count])
    x_bars: Named = {}
    if x_names:
        pushed, dot_of = _with_tangents(call, z)
        x_bars = _pull(pushed, {dot_of[name]: bar for name, bar in y_bars.items()}, x_names)
    return [*map(x_bars.get, call.names), *map(y_bar_bars.get, node.derivative_names)]


# y_dot = J x_dot is a result of push(f), so its derivatives are those of push(f).


def push_push(node: arrays.KernelPush, dots: Derivatives) -> Derivatives:
    pushed, dot_of = _with_tangents(*_parts(node))
    wanted = [dot_of[name] for name in node.wanted]
    return list(_push(pushed, _named(pushed.names, dots), wanted).values())


def pull_push(node: arrays.KernelPush, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    pushed, dot_of = _with_tangents(*_parts(node))
    cotangents = _named([dot_of[name] for name in node.wanted], bars)
    return list(map(_pull(pushed, cotangents, selected(pushed.names, wanted)).get, pushed.names))


# -- the nodes --------------------------------------------------------------------------------


def _push(call: arrays.KernelCall, dots: Named, wanted: Sequence[str]) -> Named:
    """Tangents of the results `wanted`."""
    return _derivatives(arrays.KernelPush, call, dots, wanted)


def _pull(call: arrays.KernelCall, bars: Named, wanted: Sequence[str]) -> Named:
    """Gradients of the operands `wanted`."""
    return _derivatives(arrays.KernelPull, call, bars, wanted)


def _derivatives(
    kind: type[arrays.KernelPush | arrays.KernelPull],
    call: arrays.KernelCall,
    derivatives: Named,
    wanted: Sequence[str],
) -> Named:
    node = kind(
        operands=(*call.operands, *derivatives.values()),
        call=call,
        derivative_names=tuple(derivatives),
        wanted=tuple(wanted),
        span=call.span,
    )
    return dict(zip(wanted, node.results, strict=True))


def _with_tangents(
    call: arrays.KernelCall, dots: Named
) -> tuple[arrays.KernelCall, Mapping[str, str]]:
    """The call of the pushed kernel at tangents `dots`, and the names of tangents by primal."""
    kernel = push_kernel(call.kernel, frozenset(dots))
    written = [(kernel.dots[name], t) for name, t in call.written if name in kernel.dots]
    pushed = replace(
        call,
        kernel=kernel,
        operands=(*call.operands, *dots.values()),
        names=(*call.names, *(kernel.dots[name] for name in dots)),
        written=(*call.written, *written),
    )
    return pushed, kernel.dots


def _parts(node: arrays.KernelPull | arrays.KernelPush) -> tuple[arrays.KernelCall, Named]:
    """The call at the operands of `node`, and its cotangents or tangents."""
    count = len(node.call.names)
    call = replace(node.call, operands=node.operands[:count])
    return call, dict(zip(node.derivative_names, node.operands[count:], strict=True))


def _named(names: Sequence[str], values: Derivatives) -> Named:
    """The derivatives that are not zero, by name."""
    pairs = zip(names, values, strict=True)
    return {name: value for name, value in pairs if value is not None}
