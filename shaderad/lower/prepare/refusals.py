"""Checks for kernels that cannot be lowered or differentiated, before any Slang is written.

Driver compilers keep nested blocks on a stack of fixed size, and some do not check for overflow:
lavapipe ends the process beyond 80 blocks (LP_MAX_TGSI_NESTING).
"""

from __future__ import annotations

from operator import itemgetter

from shaderad.bodies.injective import is_injective, repeated_write
from shaderad.bodies.structured import structured
from shaderad.diagnostics import Span, error
from shaderad.ir import nodes
from shaderad.ir.types import Access, Kind, is_differentiable, scalars
from shaderad.ir.walk import blocks, children, reachable, statements
from shaderad.lower.prepare.strategy import Strategies
from shaderad.rules.nodes import primal_name

DEPTH_LIMIT = 64
"""The library and derivatives add blocks up to the driver's 80."""


def check_kernel(kernel: nodes.Kernel) -> None:
    """Checks that the element types of Add, Min and Max have atomics.

    Raises:
        LanguageError: SR0282.
    """
    for b in kernel.buffers:
        kinds = {s.kind for s in scalars(b.type.element)}
        is_sum = b.access in (Access.ADD, Access.MIN, Access.MAX)
        if is_sum and kinds & {Kind.HALF, Kind.DOUBLE, Kind.BOOL}:
            raise error("SR0282", b.span, array=b.name, type=b.type, help=_instead(b.access, kinds))


def _instead(access: Access, kinds: set[Kind]) -> str:
    """The way to accumulate elements that have no atomics."""
    if Kind.DOUBLE in kinds:
        reduction = {Access.ADD: "sum", Access.MIN: "min", Access.MAX: "max"}[access]
        return (
            "write a `sad.Out` with one double for each thread, and reduce it: "
            f"`sad.{reduction}(y)` keeps 64 bits"
        )
    wanted = "int" if Kind.BOOL in kinds else "float"
    return f"accumulate in `{wanted}` and convert the result"


def check_writes(
    kernel: nodes.Kernel,
    body: tuple[nodes.Stmt, ...],
    elsewhere: frozenset[str],
    at_zero: tuple[str, ...] = (),
) -> None:
    """Checks that a differentiated kernel writes each Out element once.

    Args:
        kernel: The kernel.
        body: Its statements before differentiation.
        elsewhere: Arrays that are written at other indices than the thread's own.
        at_zero: The Index names, in a dispatch of at most one thread.

    Raises:
        DerivativeError: SR0414 (Out written at indices that may repeat), SR0425 (an element
            written twice).
    """
    stores = [s for f in reachable(body) for s in statements(f.body) if isinstance(s, nodes.Store)]
    repeating = {s.buffer for s in stores if not s.is_unique}
    uniforms = frozenset(u.name for u in kernel.uniforms)
    for b in kernel.buffers:
        is_float = is_differentiable(b.type.element)
        if b.access is not Access.OUT or b.name not in elsewhere or not is_float:
            continue
        is_once = is_injective(body, b.name, kernel.index_names, uniforms, at_zero)
        if b.name in repeating or not is_once:
            raise error("SR0414", b.span, array=b.name, kernel=primal_name(kernel))
        again = repeated_write(body, b.name, kernel.index_names, uniforms)
        if again is not None:
            raise error("SR0425", again.span, array=b.name, kernel=primal_name(kernel))


def check_strategies(kernel: nodes.Kernel, strategies: Strategies) -> None:
    """Checks that gradients of doubles, which have no atomic add, are not scattered.

    Raises:
        DerivativeError: SR0416.
    """
    for b in kernel.buffers:
        kinds = {s.kind for s in scalars(b.type.element)}
        if Kind.DOUBLE in kinds and "scattered" in strategies.by_name.get(b.name, ""):
            raise error("SR0416", b.span, array=b.name, type=b.type)


# -- nesting depth after inlining --------------------------------------------------------------


_Depth = tuple[int, Span | None]
"""A number of blocks, and the place of the innermost one."""
_FLAT: _Depth = (0, None)


def check_depth(body: tuple[nodes.Stmt, ...], span: Span | None) -> None:
    """Checks that drivers can compile the nesting of `body`.

    Raises:
        LanguageError: SR0288.
    """
    depth, innermost = _Depths().of(body)
    if depth > DEPTH_LIMIT:
        raise error("SR0288", innermost or span, depth=depth, limit=DEPTH_LIMIT)


class _Depths:
    """The depths of bodies; each function is measured once."""

    def __init__(self) -> None:
        self._by_function: dict[nodes.Function, _Depth] = {}

    def of(self, body: tuple[nodes.Stmt, ...]) -> _Depth:
        return max(map(self._node, body), key=itemgetter(0), default=_FLAT)

    def _node(self, node: nodes.Expr | nodes.Stmt) -> _Depth:
        depths = [self._node(child) for child in children(node)]
        if isinstance(node, nodes.Conditional | nodes.Logical):
            # The first operand lies outside of the branch.
            depths[1:] = [_inside(depth, node.span) for depth in depths[1:]]
        elif isinstance(node, nodes.Stmt):
            depths += [_inside(self.of(block), node.span) for block in blocks(node)]
        if isinstance(node, nodes.Call | nodes.ForwardDiff | nodes.BackwardDiff):
            depths.append(self._function(node.function))
        return max(depths, key=itemgetter(0), default=_FLAT)

    def _function(self, f: nodes.Function) -> _Depth:
        if f not in self._by_function:
            types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
            self._by_function[f] = self.of(structured(f.body, f.result, types).body)
        return self._by_function[f]


def _inside(depth: _Depth, span: Span) -> _Depth:
    return (depth[0] + 1, depth[1] or (span if span.line else None))
