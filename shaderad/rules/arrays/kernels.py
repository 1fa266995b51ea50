"""Derivatives of kernel calls, by the backward and forward entry points of the kernel.

A derivative of such a derivative is one of the pushed kernel (`rules/pushing`),
``push(f)(x, x_dot) = (y, J x_dot)``, and so on for higher orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shaderad.ir import arrays
from shaderad.ir.arrays import Value
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.layout import Derivatives
from shaderad.rules.transforms import push_kernel

Named = list[tuple[str, Value]]
"""Values by the names of kernel parameters."""

# results = kernel(operands)     results_dot by <kernel>_fwd      operands_bar by <kernel>_bwd


def push_call(node: arrays.KernelCall, dots: Derivatives) -> Derivatives:
    wanted = [name for name, t in node.written if b.is_differentiable(t.element)]
    dot_by_name = dict(zip(wanted, _push(node, _named(node.names, dots), wanted), strict=True))
    return [dot_by_name.get(name) for name, _ in node.written]


def pull_call(node: arrays.KernelCall, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    names = _selected(node.names, wanted)
    pulled = _pull(node, _named([name for name, _ in node.written], bars), names)
    bar_by_name = dict(zip(names, pulled, strict=True))
    return [bar_by_name.get(name) for name in node.names]


# x_bar = J^T y_bar        x_bar_dot = J^T y_bar_dot + d/dx <y_bar, J x_dot>
#                                    = x_bar of push(f) for the cotangents (y_bar_dot, y_bar)


def push_pull(node: arrays.KernelPull, dots: Derivatives) -> Derivatives:
    call, bars = _parts(node)
    count = len(call.names)
    x_dots = _named(call.names, dots[:count])
    bars_dot = _named(node.given, dots[count:])
    if not x_dots:
        return list(_pull(call, bars_dot, node.wanted))
    pushed, dot_of = _with_tangents(call, x_dots)
    cotangents = [*bars_dot, *((dot_of[name], bar) for name, bar in bars)]
    return list(_pull(pushed, cotangents, node.wanted))


# With the cotangent z of x_bar:  y_bar_bar = J z
#                                 x_bar = d/dx <y_bar, J z>
#                                       = x_bar of push(f) at (x, z) for the cotangents (0, y_bar)


def pull_pull(node: arrays.KernelPull, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    call, y_bars = _parts(node)
    count = len(call.names)
    z = _named(node.wanted, bars)
    y_names = _selected(node.given, wanted[count:])
    y_bar_bars = dict(zip(y_names, _push(call, z, y_names), strict=True))
    x_names = _selected(call.names, wanted[:count])
    x_bars: dict[str, Value] = {}
    if x_names:
        pushed, dot_of = _with_tangents(call, z)
        pulled = _pull(pushed, [(dot_of[name], bar) for name, bar in y_bars], x_names)
        x_bars = dict(zip(x_names, pulled, strict=True))
    return [*map(x_bars.get, call.names), *map(y_bar_bars.get, node.given)]


# y_dot = J x_dot is a result of push(f), so its derivatives are those of push(f).


def push_push(node: arrays.KernelPush, dots: Derivatives) -> Derivatives:
    call, x_dots = _parts(node)
    pushed, dot_of = _with_tangents(call, x_dots)
    return list(_push(pushed, _named(pushed.names, dots), [dot_of[name] for name in node.wanted]))


def pull_push(node: arrays.KernelPush, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    call, x_dots = _parts(node)
    pushed, dot_of = _with_tangents(call, x_dots)
    names = _selected(pushed.names, wanted)
    cotangents = _named([dot_of[name] for name in node.wanted], bars)
    bar_by_name = dict(zip(names, _pull(pushed, cotangents, names), strict=True))
    return [bar_by_name.get(name) for name in pushed.names]


# -- the nodes --------------------------------------------------------------------------------


def _push(call: arrays.KernelCall, dots: Named, wanted: Sequence[str]) -> tuple[Value, ...]:
    """Tangents of the results `wanted`."""
    names, values = _unzipped(dots)
    node = arrays.KernelPush(operands=(*call.operands, *values), call=call, given=names,
                             wanted=tuple(wanted), span=call.span)  # fmt: skip
    return node.results


def _pull(call: arrays.KernelCall, bars: Named, wanted: Sequence[str]) -> tuple[Value, ...]:
    """Gradients of the operands `wanted`."""
    names, values = _unzipped(bars)
    node = arrays.KernelPull(operands=(*call.operands, *values), call=call, given=names,
                             wanted=tuple(wanted), span=call.span)  # fmt: skip
    return node.results


def _with_tangents(
    call: arrays.KernelCall, dots: Named
) -> tuple[arrays.KernelCall, Mapping[str, str]]:
    """The call of the pushed kernel at tangents `dots`, and the names of tangents by primal."""
    names, values = _unzipped(dots)
    kernel = push_kernel(call.kernel, frozenset(names))
    written = [(kernel.dots[name], t) for name, t in call.written if name in kernel.dots]
    pushed = replace(
        call,
        kernel=kernel,
        operands=(*call.operands, *values),
        names=(*call.names, *(kernel.dots[name] for name in names)),
        written=(*call.written, *written),
    )
    return pushed, kernel.dots


def _parts(node: arrays.KernelPull | arrays.KernelPush) -> tuple[arrays.KernelCall, Named]:
    """The call at the operands of `node`, and its cotangents or tangents."""
    count = len(node.call.names)
    call = replace(node.call, operands=node.operands[:count])
    return call, list(zip(node.given, node.operands[count:], strict=True))


def _named(names: Sequence[str], values: Derivatives) -> Named:
    """The derivatives that are not zero, by name."""
    pairs = zip(names, values, strict=True)
    return [(name, value) for name, value in pairs if value is not None]


def _unzipped(named: Named) -> tuple[tuple[str, ...], tuple[Value, ...]]:
    return tuple(name for name, _ in named), tuple(value for _, value in named)


def _selected(names: Sequence[str], wanted: Sequence[bool]) -> list[str]:
    return [name for name, is_wanted in zip(names, wanted, strict=True) if is_wanted]
