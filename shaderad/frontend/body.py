"""The state of reading a function body: its scope, its statements so far, and its kernel (`Unit`).

Invariants: all code that reads a body goes through `BodyReader`; the readers of expressions and
statements hold no state of their own. A name has one type; `Scope.assigned` holds the names that
every path to the current point assigns, and is `None` where no path leads to it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce

from shaderad.diagnostics import Error, Span, error
from shaderad.frontend.conversions import coerce, expr
from shaderad.ir.nodes import Assign, Const, Expr, Function, Stmt, Var
from shaderad.ir.pointers import without_targets
from shaderad.ir.types import BufferType, Pair, Struct, Type
from shaderad.ir.walk import has_effect
from shaderad.language.host import PythonFunction, UserFunction
from shaderad.language.source import BoundNames
from shaderad.language.structs import StructInfo, info_of
from shaderad.language.values import Captures, Host, PythonNumber, Value, describe

Flow = frozenset[str] | None
"""The names assigned on every path to a point; `None` if it is unreachable."""


def join(*flows: Flow) -> Flow:
    """The names assigned where several paths meet."""
    reachable_flows = [f for f in flows if f is not None]
    return reduce(frozenset[str].intersection, reachable_flows) if reachable_flows else None


@dataclass
class LoopFlow:
    """The names assigned at each ``break`` and ``continue`` of a loop."""

    breaks: list[Flow] = field(default_factory=list[Flow])
    continues: list[Flow] = field(default_factory=list[Flow])


class Scope:
    """The local names of one function."""

    def __init__(self, names: BoundNames) -> None:
        self.names = names
        self.parameters: dict[str, Value] = {}
        self.types: dict[str, Type] = {}
        """Type of every IR local."""
        self.assigned: Flow = frozenset()
        self.loops: list[LoopFlow] = []
        self.loop_variables: list[str] = []
        """Variables of the enclosing loops that are IR loop variables."""
        self.numbers: dict[str, PythonNumber] = {}
        """Variables of the enclosing loops that are repeated, with their current number."""
        self.local_name_by_name: dict[str, str] = {}
        """IR name of each rebound parameter."""
        self._taken: set[str] = set(names.mentioned)

    def fresh(self, base: str) -> str:
        """A name like `base` that the function does not use."""
        number = 1
        while f"{base}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{base}_{number}")
        return f"{base}_{number}"

    def reserve(self, base: str) -> str:
        """`base` if it is free, else a fresh name like it."""
        if base in self._taken:
            return self.fresh(base)
        self._taken.add(base)
        return base

    def ir_name(self, name: str) -> str:
        """The IR name of a local."""
        return self.local_name_by_name.get(name, name)

    def assign(self, name: str) -> None:
        if self.assigned is not None:
            self.assigned |= {name}

    def is_assigned(self, name: str) -> bool:
        return self.assigned is None or name in self.assigned


@dataclass(frozen=True)
class Readers:
    """The entry points of the readers, which call each other through the body."""

    expression: Callable[[BodyReader, ast.expr, bool], Value]
    block: Callable[[BodyReader, list[ast.stmt]], None]


class Unit:
    """A kernel that is being read, with the functions, structs and arrays that it uses."""

    def __init__(self, readers: Readers) -> None:
        self.readers = readers
        self.captures = Captures()
        self.functions: dict[tuple[UserFunction, tuple[object, ...]], Function] = {}
        """The specialised functions, by the slots of their parameters."""
        self.in_progress: list[UserFunction] = []
        self.deriving: list[tuple[UserFunction, Function]] = []
        """Functions whose custom derivatives are being read."""
        self.structs: dict[Struct, type] = {}
        self.arrays: dict[str, BufferType] = {}
        """The arrays of the kernel, by name."""

    def register(self, structs: dict[Struct, type], span: Span) -> None:
        """Registers the classes of structs, for looking up methods by type."""
        cls_by_name = {t.name: cls for t, cls in self.structs.items()}
        for t, cls in structs.items():
            if cls_by_name.setdefault(t.name, cls) is not cls:
                raise error("SR0246", span, name=t.name)
            self.structs[t] = cls

    def struct_info(self, t: Struct) -> StructInfo | None:
        annotated = without_targets(t)
        cls = self.structs.get(annotated) if isinstance(annotated, Struct) else None
        return None if cls is None else info_of(cls)


class BodyReader:
    """Reads one function body into statements."""

    def __init__(self, unit: Unit, function: PythonFunction) -> None:
        self.unit = unit
        self.function = function
        self.scope = Scope(function.names)
        self.index_names: tuple[str, ...] = ()
        self.is_kernel = False
        self.result: Type | None = None
        """The result type; `None` until a ``return`` or an annotation gives one."""
        self.buffers: dict[str, BufferType] = {}
        """Arrays that the body or anything it calls touches, in order of first use."""
        self.can_hoist = True
        """True if a statement emitted before the current expression runs exactly when that does."""
        self._blocks: list[list[Stmt]] = [[]]

    # -- reading ------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span:
        return self.function.source.of(node)

    def error(self, code: str, node: ast.AST, **values: object) -> Error:
        return error(code, self.span(node), **values)

    def unknown_keyword(self, keyword: ast.keyword) -> Error:
        """SR0233 for a keyword argument that the callee does not have."""
        return self.error("SR0233", keyword.value, found=f"`{keyword.arg or '**'}=`")

    def check_count(self, node: ast.Call, name: str, *counts: int) -> None:
        """Raises SR0231 unless the call has one of `counts` arguments, and no keywords."""
        if node.keywords or len(node.args) not in counts:
            wanted = counts[0] if len(counts) == 1 else " or ".join(map(str, counts))
            raise self.error("SR0231", node, name=name, found=len(node.args), wanted=wanted)

    def value(self, node: ast.expr, *, is_target: bool = False) -> Value:
        """The value of an expression; on a left-hand side, elements need not be readable."""
        return self.unit.readers.expression(self, node, is_target)

    def coerced(self, node: ast.expr, t: Type) -> Expr:
        """The value of an expression as `t`, by implicit conversions."""
        return coerce(self.value(node), t, self.span(node))

    def host_object(self, node: ast.expr) -> object:
        """The Python object that a dotted name from outside the body refers to, else `None`."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        if isinstance(node, ast.Name) and node.id in self.scope.names.bound:
            return None
        value = self.value(node)
        return value.object if isinstance(value, Host) else None

    def read(self, nodes: list[ast.stmt]) -> None:
        """Emits the statements of `nodes` to the current block."""
        self.unit.readers.block(self, nodes)

    def read_block(self, nodes: list[ast.stmt]) -> tuple[Stmt, ...]:
        """The statements of a nested block."""
        with self.block() as block:
            self.read(nodes)
        return tuple(block)

    @contextmanager
    def block(self) -> Generator[list[Stmt]]:
        """Collects the statements that are emitted within it, as a nested block."""
        self._blocks.append([])
        yield self._blocks[-1]
        self._blocks.pop()

    def read_body(self) -> tuple[Stmt, ...]:
        """The statements of the whole body; rebound parameters become locals first."""
        self._start_rebound()
        self.read(self.function.tree.body)
        (body,) = self._blocks
        return tuple(body)

    # -- writing ------------------------------------------------------------------------------

    def emit(self, statement: Stmt) -> None:
        self._blocks[-1].append(statement)

    def _start_rebound(self) -> None:
        """Gives each parameter that the body rebinds a local of its own, unless it is fixed."""
        span = self.function.def_span
        for name in sorted(self.scope.names.bound & set(self.scope.parameters)):
            if self.is_fixed(name):
                continue
            start = expr(self.scope.parameters[name], span)
            local = self.scope.fresh(name)
            self.scope.local_name_by_name[name] = local
            # Not marked as assigned: until the body binds the name it is still the parameter.
            self.scope.types[local] = start.type
            self.emit(Assign(name=local, value=start, span=span))

    def is_fixed(self, name: str) -> bool:
        """True if the name is a parameter that cannot be rebound: an Index, array or pair."""
        value = self.scope.parameters.get(name)
        if value is None or name in self.scope.local_name_by_name:
            return False
        is_value = isinstance(value, PythonNumber) or (
            isinstance(value, Expr) and not isinstance(value.type, Pair)
        )
        return name in self.index_names or not is_value

    def check_bindable(self, target: ast.Name) -> None:
        """Raises SR0206 where the name is fixed."""
        if not self.is_fixed(target.id):
            return
        value = self.scope.parameters[target.id]
        why = "it is an Index" if target.id in self.index_names else f"it is {describe(value)}"
        if isinstance(value, Expr) and isinstance(value.type, Pair):
            why = f"it is a pair of the caller: add to `{target.id}.d`"
        raise self.error("SR0206", target, name=target.id, why=why)

    def in_local(self, value: Expr, base: str, span: Span) -> Var:
        """The value in a new local with a name like `base`."""
        name = self.scope.fresh(base)
        self.scope.types[name] = value.type
        self.scope.assign(name)
        self.emit(Assign(name=name, value=value, span=span))
        return Var(type=value.type, name=name, span=span)

    def keep(self, value: Expr, base: str) -> Expr:
        """The value in a local, so that two uses evaluate it once; variables as they are."""
        return value if isinstance(value, Var | Const) else self.in_local(value, base, value.span)

    def once(self, value: Expr, base: str, node: ast.expr) -> Expr:
        """The value for several uses, in a local if a statement may precede the expression."""
        if self.can_hoist:
            return self.keep(value, base)
        if has_effect(value):
            raise self.error("SR0244", node)
        return value

    @contextmanager
    def conditional(self) -> Generator[None]:
        """Reads an operand that runs conditionally or repeatedly, so nothing is hoisted from it."""
        outer, self.can_hoist = self.can_hoist, False
        try:
            yield
        finally:
            self.can_hoist = outer
