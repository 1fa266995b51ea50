"""Numbers the writes of a thread to Min and Max arrays, so that a tie has one argmin write.

The number hashes the place of the write, the counters of the loops around it, and the places of the
calls that lead to it. A function that writes such an array gets the number of its call as its last
parameter. It is the same in every mode, and does not depend on the order in which writes run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, Function, Kernel, Stmt
from shaderad.ir.types import UINT, Access, Type, is_differentiable
from shaderad.ir.walk import Block, called, map_statement, new_local, rewrite_expression, statements

# Odd multiplier of Knuth's multiplicative hashing (TAOCP vol. 3, section 6.4).
_MULTIPLIER = 0x9E3779B1


@dataclass(frozen=True, kw_only=True)
class NumberedAccumulate(nodes.Accumulate):
    """A Min or Max write with its number, a uint."""

    number: Expr


@dataclass
class _NumberedFunctions:
    """Functions that write Min or Max arrays, with the number of the call as last parameter."""

    extremes: frozenset[str]
    numbered: dict[Function, Function] = field(default_factory=dict[Function, Function])

    def writes(self, f: Function) -> bool:
        return not self.extremes.isdisjoint(f.buffers)

    def of(self, f: Function) -> Function:
        if f not in self.numbered:
            types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
            numbering = _Numbering(self, types)
            key = new_local("write_number", UINT, types)
            body = numbering.block(f.body, key)
            parameters = (*f.parameters, nodes.Parameter(name=key.name, type=UINT))
            self.numbered[f] = replace(f, parameters=parameters, body=body, local_types=types)
        return self.numbered[f]


@dataclass
class _Numbering:
    """Numbers the writes of one body; `key` is the hash of the current run of a block."""

    functions: _NumberedFunctions
    local_types: dict[str, Type]
    site_count: int = 0

    def block(self, body: Block, key: Expr) -> Block:
        return tuple(new for s in body for new in self._statement(s, key))

    def _statement(self, s: Stmt, key: Expr) -> Block:
        if isinstance(s, nodes.For | nodes.While):
            return self._loop(s, key) if self._competes(s) else (s,)
        s = map_statement(s, lambda e: self._calls(e, key), lambda block: self.block(block, key))
        if isinstance(s, nodes.Accumulate) and s.buffer in self.functions.extremes:
            own = {f.name: getattr(s, f.name) for f in fields(s)}
            return (NumberedAccumulate(**own, number=_mixed(key, self._site())),)
        return (s,)

    def _competes(self, loop: nodes.For | nodes.While) -> bool:
        """True if an iteration may write a Min or Max array, itself or through a call."""
        return any(self.functions.writes(f) for f in called((loop,))) or any(
            isinstance(s, nodes.Accumulate) and s.buffer in self.functions.extremes
            for s in statements(loop.body)
        )

    def _loop(self, s: nodes.For | nodes.While, key: Expr) -> Block:
        counter = new_local("write_step", UINT, self.local_types)
        inner = new_local("write_number", UINT, self.local_types)
        if isinstance(s, nodes.For):
            start, stop, step = (self._calls(e, key) for e in s.bounds)
            s = replace(s, start=start, stop=stop, step=step)
        else:
            s = replace(s, condition=self._calls(s.condition, _mixed(key, counter)))
        following = nodes.Apply(
            type=UINT, op=ops.ADD, args=(counter, nodes.Const(type=UINT, value=1))
        )
        head = (
            nodes.Assign(name=counter.name, value=following),
            nodes.Assign(name=inner.name, value=_mixed(key, counter)),
        )
        reset = nodes.Assign(name=counter.name, value=nodes.Const(type=UINT, value=0))
        return (reset, replace(s, body=(*head, *self.block(s.body, inner))))

    def _calls(self, e: Expr, key: Expr) -> Expr:
        return rewrite_expression(e, lambda part: self._call(part, key))

    def _call(self, e: Expr, key: Expr) -> Expr:
        if not isinstance(e, nodes.Call) or not self.functions.writes(e.function):
            return e
        number = _product(nodes.Apply(type=UINT, op=ops.BIT_XOR, args=(key, self._site())))
        return replace(e, function=self.functions.of(e.function), args=(*e.args, number))

    def _site(self) -> nodes.Const:
        self.site_count += 1
        return nodes.Const(type=UINT, value=self.site_count)


def _mixed(key: Expr, part: Expr) -> Expr:
    if isinstance(key, nodes.Const) and isinstance(part, nodes.Const):
        return nodes.Const(type=UINT, value=int(key.value) ^ int(part.value))
    return _product(nodes.Apply(type=UINT, op=ops.BIT_XOR, args=(key, part)))


def _product(mixed: nodes.Apply) -> Expr:
    """`mixed` times the multiplier: spreads small numbers, so that others can be mixed in."""
    key, part = mixed.args
    if isinstance(key, nodes.Const) and isinstance(part, nodes.Const):
        value = (int(key.value) ^ int(part.value)) * _MULTIPLIER % 2**32
        return nodes.Const(type=UINT, value=value)
    return nodes.Apply(
        type=UINT, op=ops.MUL, args=(mixed, nodes.Const(type=UINT, value=_MULTIPLIER))
    )


def numbered(kernel: Kernel) -> Kernel:
    """`kernel` with its writes to Min and Max arrays of floats numbered, in functions too.

    Functions with derivatives of their own write none (SR0248).
    """
    extremes = frozenset(
        b.name
        for b in kernel.buffers
        if b.access in (Access.MIN, Access.MAX) and is_differentiable(b.type.element)
    )
    if not extremes:
        return kernel
    types = dict(kernel.local_types)
    body = _Numbering(_NumberedFunctions(extremes), types).block(
        kernel.body, nodes.Const(type=UINT, value=0)
    )
    return replace(kernel, body=body, local_types=types)
