"""Derivatives of kernel calls: the kernel's own backward and forward entry points.

Of a derivative of a kernel the derivative is one of the kernel with tangents, `push(f)`
(`rules/pushing`), with ``push(f)(x, x_dot) = (y, J x_dot)``, and so on.
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
"""Values by the names that a kernel has for them."""

# results = kernel(operands)     results_dot by <kernel>_fwd      operands_bar by <kernel>_bwd


def push_call(node: arrays.KernelCall, dots: Derivatives) -> Derivatives:
    wanted = [name for name, t in node.written if b.is_differentiable(t.element)]
    pushed = dict(zip(wanted, _push(node, _known(node.names, dots), wanted), strict=True))
    return [pushed.get(name) for name, _ in node.written]


def pull_call(node: arrays.KernelCall, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    names = _chosen(node.names, wanted)
    pulled = _pull(node, _known([name for name, _ in node.written], bars), names)
    found = dict(zip(names, pulled, strict=True))
    return [found.get(name) for name in node.names]


# x_bar = J^T y_bar              x_bar_dot = J^T y_bar_dot + d/dx <y_bar, J x_dot>
#                                          = of push(f), x_bar for the cotangents (y_bar_dot, y_bar)


def push_pull(node: arrays.KernelPull, dots: Derivatives) -> Derivatives:
    call, bars = _parts(node)
    count = len(call.names)
    moved = _known(call.names, dots[:count])
    bars_dot = _known(node.given, dots[count:])
    if not moved:
        return list(_pull(call, bars_dot, node.wanted))
    twice, dot_of = _with_tangents(call, moved)
    given = [*bars_dot, *((dot_of[name], bar) for name, bar in bars)]
    return list(_pull(twice, given, node.wanted))


# for the cotangent z of x_bar:  y_bar_bar = J z
#                                x_bar = d/dx <y_bar, J z>
#                                      = of push(f) at (x, z), x_bar for the cotangents (0, y_bar)


def pull_pull(node: arrays.KernelPull, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    call, y_bars = _parts(node)
    count = len(call.names)
    moved = _known(node.wanted, bars)
    asked = _chosen(node.given, wanted[count:])
    by_bar = dict(zip(asked, _push(call, moved, asked), strict=True))
    names = _chosen(call.names, wanted[:count])
    by_name: dict[str, Value] = {}
    if names:
        twice, dot_of = _with_tangents(call, moved)
        pulled = _pull(twice, [(dot_of[name], bar) for name, bar in y_bars], names)
        by_name = dict(zip(names, pulled, strict=True))
    return [*map(by_name.get, call.names), *map(by_bar.get, node.given)]


# y_dot = J x_dot                is a result of push(f): both its derivatives are those of push(f)


def push_push(node: arrays.KernelPush, dots: Derivatives) -> Derivatives:
    call, x_dots = _parts(node)
    twice, dot_of = _with_tangents(call, x_dots)
    return list(_push(twice, _known(twice.names, dots), [dot_of[name] for name in node.wanted]))


def pull_push(node: arrays.KernelPush, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
    call, x_dots = _parts(node)
    twice, dot_of = _with_tangents(call, x_dots)
    names = _chosen(twice.names, wanted)
    given = _known([dot_of[name] for name in node.wanted], bars)
    by_name = dict(zip(names, _pull(twice, given, names), strict=True))
    return [by_name.get(name) for name in twice.names]


# -- the nodes --------------------------------------------------------------------------------


def _push(call: arrays.KernelCall, dots: Named, wanted: Sequence[str]) -> tuple[Value, ...]:
    """Tangents of the results `wanted`."""
    names, values = _apart(dots)
    made = arrays.KernelPush(operands=(*call.operands, *values), call=call, given=names,
                             wanted=tuple(wanted), span=call.span)  # fmt: skip
    return made.results


def _pull(call: arrays.KernelCall, bars: Named, wanted: Sequence[str]) -> tuple[Value, ...]:
    """Gradients of the operands `wanted`."""
    names, values = _apart(bars)
    made = arrays.KernelPull(operands=(*call.operands, *values), call=call, given=names,
                             wanted=tuple(wanted), span=call.span)  # fmt: skip
    return made.results


def _with_tangents(
    call: arrays.KernelCall, dots: Named
) -> tuple[arrays.KernelCall, Mapping[str, str]]:
    """The call of the kernel with tangents, and its names for them."""
    names, values = _apart(dots)
    kernel = push_kernel(call.kernel, names)
    written = [(kernel.dots[name], t) for name, t in call.written if name in kernel.dots]
    twice = replace(
        call,
        kernel=kernel,
        operands=(*call.operands, *values),
        names=(*call.names, *(kernel.dots[name] for name in names)),
        written=(*call.written, *written),
    )
    return twice, kernel.dots


def _parts(node: arrays.KernelPull | arrays.KernelPush) -> tuple[arrays.KernelCall, Named]:
    """The call at the operands of `node`, and what is given besides."""
    count = len(node.call.names)
    call = replace(node.call, operands=node.operands[:count])
    return call, list(zip(node.given, node.operands[count:], strict=True))


def _known(names: Sequence[str], values: Derivatives) -> Named:
    pairs = zip(names, values, strict=True)
    return [(name, value) for name, value in pairs if value is not None]


def _apart(named: Named) -> tuple[tuple[str, ...], tuple[Value, ...]]:
    return tuple(name for name, _ in named), tuple(value for _, value in named)


def _chosen(names: Sequence[str], wanted: Sequence[bool]) -> list[str]:
    return [name for name, is_wanted in zip(names, wanted, strict=True) if is_wanted]
