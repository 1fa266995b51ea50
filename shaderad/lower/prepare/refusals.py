"""Checks for kernels that cannot be lowered or differentiated, before any Slang is written."""

from __future__ import annotations

from shaderad.bodies.injective import is_injective, repeated_write
from shaderad.diagnostics import error
from shaderad.ir.nodes import Kernel, Stmt, Store
from shaderad.ir.types import Access, Kind, is_differentiable, scalars
from shaderad.ir.walk import reachable, statements
from shaderad.lower.prepare.strategy import Strategies
from shaderad.rules.nodes import primal_name


def check_kernel(kernel: Kernel) -> None:
    """Checks that the element types of Add, Min and Max have atomics.

    Raises:
        LanguageError: SR0282.
    """
    for b in kernel.buffers:
        kinds = {s.kind for s in scalars(b.type.element)}
        is_sum = b.access in (Access.ADD, Access.MIN, Access.MAX)
        if is_sum and kinds & {Kind.HALF, Kind.DOUBLE, Kind.BOOL}:
            raise error("SR0282", b.span, array=b.name, type=b.type)


def check_writes(
    kernel: Kernel, body: tuple[Stmt, ...], elsewhere: frozenset[str], at_zero: tuple[str, ...] = ()
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
    stores = [s for f in reachable(body) for s in statements(f.body) if isinstance(s, Store)]
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


def check_strategies(kernel: Kernel, strategies: Strategies) -> None:
    """Checks that gradients of doubles, which have no atomic add, are not scattered.

    Raises:
        DerivativeError: SR0416.
    """
    for b in kernel.buffers:
        kinds = {s.kind for s in scalars(b.type.element)}
        if Kind.DOUBLE in kinds and "scattered" in strategies.by_name.get(b.name, ""):
            raise error("SR0416", b.span, array=b.name, type=b.type)
