"""The strategy by which each gradient is summed: `exclusive`, `uniform` or `scattered`.

exclusive: every read is at the thread's own index. The element is an argument of the body and
    its cotangent is stored once, without an atomic.
uniform: an element that every thread reads on every path, at an index that does not depend on
    the thread. It is an argument, too; cotangents are summed in registers, then over the group.
scattered: all other reads; each adds to memory atomically.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shaderad.bodies.loops import trip_count
from shaderad.bodies.outputs import AlreadyRead, is_own
from shaderad.bodies.scattered import are_fixed, is_fixed
from shaderad.ir.nodes import (
    Accumulate,
    Assert,
    Assign,
    Chooser,
    Conditional,
    Evaluate,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Logical,
    Return,
    Stmt,
    Store,
    Var,
)
from shaderad.ir.types import Access, Kind, Type, byte_count, is_differentiable, scalars
from shaderad.ir.walk import all_expressions, called, children, reads, rewrite_body, writes

_HOISTED_WORDS = 24
"""Maximum words of uniform elements in registers; further ones are summed in memory."""


@dataclass(frozen=True, kw_only=True)
class Hoisted:
    """An element that the entry point reads and passes to the body as argument `name`."""

    name: str
    buffer: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Strategies:
    """The strategy of each wanted In buffer and uniform; uniforms are always `uniform`."""

    exclusive: dict[str, Hoisted]
    uniform: tuple[Hoisted, ...]
    by_name: dict[str, str]
    unread: frozenset[str] = frozenset()
    """The hoisted elements that no derivative depends on."""

    @property
    def hoisted(self) -> tuple[Hoisted, ...]:
        """All elements that become arguments."""
        return (*self.exclusive.values(), *self.uniform)

    def types(self, kernel: Kernel) -> dict[str, Type]:
        """The types of hoisted elements by name."""
        return {h.name: kernel.buffer(h.buffer).type.element for h in self.hoisted}

    def apply(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """`body` with its hoisted reads replaced by the arguments."""
        return rewrite_body(body, self._replaced)

    def _replaced(self, e: Expr) -> Expr:
        if not isinstance(e, Load):
            return e
        at_index = (h for h in self.uniform if (h.buffer, h.indices) == (e.buffer, e.indices))
        hoisted = self.exclusive.get(e.buffer) or next(at_index, None)
        if hoisted is None:
            return e
        value = Var(type=e.type, name=hoisted.name, span=e.span)
        return AlreadyRead(
            type=e.type, span=e.span, value=value, buffer=e.buffer, indices=e.indices
        )


NOTHING_HOISTED = Strategies(exclusive={}, uniform=(), by_name={})


def choose(kernel: Kernel, body: tuple[Stmt, ...], wanted: frozenset[str]) -> Strategies:
    """The strategies of `kernel`, whose outputs are resolved in `body`."""
    taken = reads(body) | writes(body) | {u.name for u in kernel.uniforms}
    taken |= set(kernel.index_names)
    functions = [f for f in called(body) if not isinstance(f, Chooser)]
    in_functions = {b for f in functions for b in f.buffers}
    loads: dict[str, list[Load]] = {b.name: [] for b in kernel.buffers}
    for e in all_expressions(body):
        if isinstance(e, Load):
            loads[e.buffer].append(e)
    exclusive: dict[str, Hoisted] = {}
    by_name = {u.name: "uniform" for u in kernel.uniforms if u.name in wanted}
    for b in kernel.buffers:
        is_float = is_differentiable(b.type.element)
        if b.access is not Access.IN or b.name not in wanted or not is_float:
            continue
        by_name[b.name] = "scattered"
        are_own = [is_own(e.indices, kernel.index_names) for e in loads[b.name]]
        if are_own and all(are_own) and b.name not in in_functions:
            name = _fresh("_".join((b.name, *kernel.index_names)), taken)
            indices = loads[b.name][0].indices
            exclusive[b.name] = Hoisted(name=name, buffer=b.name, indices=indices)
            by_name[b.name] = "exclusive"
    candidates = {name for name, strategy in by_name.items() if strategy == "scattered"}
    uniform = tuple(_uniform(kernel, body, candidates, taken))
    for h in uniform:
        hoisted = {u.indices for u in uniform if u.buffer == h.buffer}
        is_whole = all(e.indices in hoisted for e in loads[h.buffer])
        is_uniform = is_whole and h.buffer not in in_functions
        by_name[h.buffer] = "uniform" if is_uniform else "uniform and scattered"
    return Strategies(exclusive=exclusive, uniform=uniform, by_name=by_name)


def _uniform(
    kernel: Kernel, body: tuple[Stmt, ...], candidates: set[str], taken: set[str]
) -> Iterator[Hoisted]:
    fixed = {u.name for u in kernel.uniforms} - writes(body)
    seen: set[tuple[str, tuple[Expr, ...]]] = set()
    words = 0
    for load in _loads_of_every_thread(body, fixed):
        buffer, indices = load.buffer, load.indices
        is_candidate = buffer in candidates and are_fixed(indices, fixed)
        if not is_candidate or (buffer, indices) in seen:
            continue
        if Kind.HALF in {s.kind for s in scalars(load.type)}:
            continue
        words += byte_count(load.type) // 4
        if words > _HOISTED_WORDS:
            return
        seen.add((buffer, indices))
        parts = (i.name if isinstance(i, Var) else str(getattr(i, "value", "")) for i in indices)
        yield Hoisted(
            name=_fresh("_".join((buffer, *parts)), taken), buffer=buffer, indices=indices
        )


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _loads_of_every_thread(body: tuple[Stmt, ...], fixed: set[str]) -> Iterator[Load]:
    """The loads that every thread makes, whatever its data, or none: by the uniforms `fixed`."""
    for s in body:
        if isinstance(s, Return):
            yield from _unconditional(s)
            return
        if isinstance(s, Assign | Store | Accumulate | Evaluate | Assert):
            yield from _unconditional(s)
        elif isinstance(s, For) and (trip_count(s) or 0) > 0 and not s.exits:
            yield from _loads_of_every_thread(s.body, fixed)
        elif isinstance(s, If) and is_fixed(s.condition, fixed) and not s.otherwise:
            yield from _loads_of_every_thread(s.then, fixed)


def _unconditional(node: Expr | Stmt) -> Iterator[Load]:
    parts = children(node)
    # Only the first operand of these is always evaluated.
    for part in parts[:1] if isinstance(node, Conditional | Logical) else parts:
        yield from _unconditional(part)
    if isinstance(node, Load) and is_differentiable(node.type):
        yield node
