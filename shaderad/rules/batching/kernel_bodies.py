"""A kernel -> the kernel of a batch: one more Index in front, by which mapped arrays are indexed.

    y[i] = u * x[i]      ys[k, i] = us[k] * xs[k, i]

Every array that the kernel writes is mapped. A mapped uniform is an array with one element per k,
which a thread reads once. A function that accesses mapped arrays takes k as its first parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from shaderad.ir import nodes
from shaderad.ir.nodes import Buffer, Expr, Function, Kernel, Stmt
from shaderad.ir.types import BOOL, INT, Access, BufferType
from shaderad.ir.verifier import verified
from shaderad.ir.walk import (
    Block,
    all_expressions,
    called,
    made_name,
    map_statement,
    reachable,
    reads,
    rewrite_expression,
    touched_buffers,
    writes,
)
from shaderad.rules.nodes import Pull


def active_name(kernel: Kernel) -> str:
    """The name of the array of bools that are true where the threads of a batch of `kernel` run."""
    return made_name("active", [b.name for b in kernel.buffers])


@lru_cache(maxsize=256)
def batched_kernel(kernel: Kernel, mapped: frozenset[str], *, has_active: bool) -> Kernel:
    """The kernel of a batch.

    Args:
        kernel: The kernel of one element.
        mapped: The names of its inputs and uniforms that are mapped.
        has_active: True if a thread runs only where the array of `active_name` is true.
    """
    buffers = {b.name for b in kernel.buffers if b.access is not Access.IN or b.name in mapped}
    index = nodes.Var(type=INT, name=made_name("batch", _names(kernel)))
    body = _Bodies(frozenset(buffers), index).block(kernel.body)
    uniforms = [u for u in kernel.uniforms if u.name in mapped]
    local_by_name = {u.name: made_name(u.name, _names(kernel)) for u in uniforms}
    body = (
        *(_read(u, local_by_name[u.name], index) for u in uniforms),
        *_renamed(body, local_by_name),
    )
    columns = [_array(u.name, u.path, u.type, u.span) for u in uniforms]
    if has_active:
        active = active_name(kernel)
        columns.append(_array(active, (active,), BOOL, kernel.span))
        holds = nodes.Load(type=BOOL, buffer=active, indices=(index,))
        body = (nodes.If(condition=holds, then=body),)
    batch = replace(
        kernel,
        index_names=(index.name, *kernel.index_names),
        buffers=(*(_with_axis(b) if b.name in buffers else b for b in kernel.buffers), *columns),
        uniforms=tuple(u for u in kernel.uniforms if u.name not in mapped),
        body=body,
        local_types=kernel.local_types | {local_by_name[u.name]: u.type for u in uniforms},
    )
    verified(batch)
    return batch


def _names(kernel: Kernel) -> set[str]:
    """Every name that the kernel or one of its functions uses."""
    functions = [g for f in reachable(kernel.body) for g in _family(f)]
    inner = {name for f in functions for name in (*f.local_types, *(p.name for p in f.parameters))}
    declared = (b.name for b in (*kernel.buffers, *kernel.uniforms))
    return {*inner, *declared, *kernel.index_names, *kernel.local_types,
            *reads(kernel.body), *writes(kernel.body)}  # fmt: skip


def _with_axis(b: Buffer) -> Buffer:
    return replace(b, type=replace(b.type, rank=b.type.rank + 1))


def _array(name: str, path: tuple[str, ...], element: Any, span: nodes.Span) -> Buffer:
    return Buffer(name=name, path=path, type=BufferType(Access.IN, element), span=span)


def _read(u: nodes.Uniform, local: str, index: Expr) -> Stmt:
    value = nodes.Load(type=u.type, buffer=u.name, indices=(index,), span=u.span)
    return nodes.Assign(name=local, value=value, span=u.span)


def _renamed(body: Block, name_by_old: dict[str, str]) -> Block:
    """`body`, which reads and assigns the new names."""

    def variable(e: Expr) -> Expr:
        if isinstance(e, nodes.Var) and e.name in name_by_old:
            return replace(e, name=name_by_old[e.name])
        return e

    def statement(s: Stmt) -> Stmt:
        new = map_statement(s, lambda e: rewrite_expression(e, variable), block)
        if isinstance(new, nodes.Assign) and new.name in name_by_old:
            return replace(new, name=name_by_old[new.name])
        return new

    def block(inner: Block) -> Block:
        return tuple(map(statement, inner))

    return block(body) if name_by_old else body


@dataclass
class _Bodies:
    """Bodies whose accesses to the arrays `buffers` begin with `index`."""

    buffers: frozenset[str]
    index: nodes.Var
    _new: dict[Function, Function] = field(default_factory=dict[Function, Function])

    def block(self, body: Block) -> Block:
        return tuple(map(self._statement, body))

    def _statement(self, s: Stmt) -> Stmt:
        new: Any = map_statement(s, lambda e: rewrite_expression(e, self._expression), self.block)
        if isinstance(new, nodes.BackwardDiff):
            return self._call(new)
        is_access = isinstance(new, nodes.Store | nodes.Accumulate | nodes.AccumulateGradient)
        return self._access(new) if is_access else new

    def _expression(self, e: Expr) -> Expr:
        if isinstance(e, nodes.Load):
            return self._access(e)
        if isinstance(e, nodes.Length) and e.buffer in self.buffers:
            return replace(e, axis=e.axis + 1)
        return self._call(e) if isinstance(e, nodes.Call | nodes.ForwardDiff) else e

    def _access(self, access: Any) -> Any:
        if access.buffer not in self.buffers:
            return access
        return replace(access, indices=(self.index, *access.indices))

    def _call(self, call: Any) -> Any:
        if not self._is_changed(call.function):
            return call
        return replace(call, function=self.function(call.function), args=(self.index, *call.args))

    def function(self, f: Function) -> Function:
        """`f`, which accesses mapped arrays, with the index as its first parameter."""
        if f not in self._new:
            changes = self._changes(f)
            self._new[f] = new = replace(f, **changes)
            # After the function itself, which its derivatives may call.
            for name, own in (("backward", f.backward), ("forward", f.forward)):
                if own is not None:
                    object.__setattr__(new, name, self.function(own))
        return self._new[f]

    def _changes(self, f: Function) -> dict[str, Any]:
        parameter = nodes.Parameter(name=self.index.name, type=INT)
        changes: dict[str, Any] = {"parameters": (parameter, *f.parameters),
                                   "body": self.block(f.body)}  # fmt: skip
        if isinstance(f, Pull):
            changes |= {"primal": self.function(f.primal),
                        "wanted": tuple(k + 1 for k in f.wanted)}  # fmt: skip
        return changes

    def _is_changed(self, f: Function) -> bool:
        """True if a call of `f`, or of a derivative of it, accesses a mapped array."""
        return any(name in self.buffers for g in _family(f) for name in _accessed(g.body))


def _accessed(body: Sequence[Stmt]) -> Iterator[str]:
    yield from touched_buffers(body)
    yield from (e.buffer for e in all_expressions(body) if isinstance(e, nodes.Length))


def _family(f: Function) -> list[Function]:
    """`f`, its derivatives, and every function that they call."""
    family: dict[Function, None] = {}
    waiting = [f]
    while waiting:
        g = waiting.pop()
        if g not in family:
            family[g] = None
            own = (g.backward, g.forward, g.primal if isinstance(g, Pull) else None)
            waiting += [*called(g.body), *(h for h in own if h is not None)]
    return list(family)
