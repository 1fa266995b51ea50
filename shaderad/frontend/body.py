"""The state of reading a function body: its scope, its statements so far, and its kernel (`Unit`).

Invariant: all code that reads a body goes through `BodyReader`; the readers of expressions and
statements hold no state of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from shaderad.diagnostics import Error, Span, error
from shaderad.frontend.conversions import expr
from shaderad.frontend.effects import has_effect
from shaderad.frontend.scope import Scope
from shaderad.frontend.slots import Slot
from shaderad.ir.nodes import Assign, Const, Expr, Function, Stmt, Var
from shaderad.ir.pointers import without_targets
from shaderad.ir.types import BufferType, Pair, Struct, Type
from shaderad.language.captures import Captures
from shaderad.language.host import PythonFunction, UserFunction
from shaderad.language.structs import StructInfo, info_of
from shaderad.language.values import Host, PythonNumber, Value, describe


@dataclass(frozen=True)
class Readers:
    """The entry points of the readers, which call each other through the body."""

    expression: Callable[[BodyReader, ast.expr, bool], Value]
    block: Callable[[BodyReader, list[ast.stmt]], None]
    specialise: Callable[[Unit, UserFunction, tuple[Slot, ...], Span], Function]


@dataclass
class Unit:
    """A kernel that is being read, with the functions, structs and arrays that it uses."""

    readers: Readers
    captures: Captures = field(default_factory=Captures)
    functions: dict[tuple[UserFunction, tuple[Slot, ...]], Function] = field(
        default_factory=dict[tuple[UserFunction, tuple[Slot, ...]], Function]
    )
    in_progress: list[UserFunction] = field(default_factory=list[UserFunction])
    deriving: list[tuple[UserFunction, Function]] = field(
        default_factory=list[tuple[UserFunction, Function]]
    )
    """Functions whose custom derivatives are being read."""
    structs: dict[Struct, type] = field(default_factory=dict[Struct, type])
    arrays: dict[str, BufferType] = field(default_factory=dict[str, BufferType])
    """The arrays of the kernel, by name."""

    def register(self, structs: dict[Struct, type], span: Span) -> None:
        """Registers the classes of structs, for looking up methods by type.

        Raises:
            LanguageError: SR0246 where two classes in one kernel share a name.
        """
        cls_by_name = {t.name: cls for t, cls in self.structs.items()}
        for t, cls in structs.items():
            if cls_by_name.get(t.name, cls) is not cls:
                raise error("SR0246", span, name=t.name)
            self.structs[t] = cls
            cls_by_name[t.name] = cls

    def struct_info(self, t: Struct) -> StructInfo | None:
        annotated = without_targets(t)
        cls = self.structs.get(annotated) if isinstance(annotated, Struct) else None
        return None if cls is None else info_of(cls)


class BodyReader:
    """Reads one function body into statements."""

    def __init__(self, unit: Unit, function: PythonFunction, scope: Scope) -> None:
        self.unit = unit
        self.function = function
        self.scope = scope
        self.index_names: tuple[str, ...] = ()
        self.is_kernel = False
        self.result: Type | None = None
        """The result type; `None` until a ``return`` or an annotation gives one."""
        self.returns_somewhere = False
        self.buffers: dict[str, BufferType] = {}
        """Arrays that the body or anything it calls touches, in order of first use."""
        self.can_hoist = True
        """True if a statement emitted before the current expression runs exactly when it does."""
        self._blocks: list[list[Stmt]] = [[]]

    # -- reading ------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span:
        return self.function.source.of(node)

    def error(self, code: str, node: ast.AST, **values: object) -> Error:
        return error(code, self.span(node), **values)

    def value(self, node: ast.expr) -> Value:
        """The value of an expression."""
        return self.unit.readers.expression(self, node, False)

    def target(self, node: ast.expr) -> Value:
        """The value of an expression on a left-hand side, where elements need not be readable."""
        return self.unit.readers.expression(self, node, True)

    def host_object(self, node: ast.expr) -> object:
        """The Python object that a dotted name from outside the body refers to, else `None`."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        if isinstance(node, ast.Name) and node.id in self.scope.names.bound:
            return None
        value = self.value(node)
        return value.object if isinstance(value, Host) else None

    def read_block(self, statements: list[ast.stmt]) -> tuple[Stmt, ...]:
        """The statements of a nested block."""
        return self.block_of(lambda: self.unit.readers.block(self, statements))

    def block_of(self, read: Callable[[], None]) -> tuple[Stmt, ...]:
        """The statements that `read` emits, as a nested block."""
        self._blocks.append([])
        read()
        return tuple(self._blocks.pop())

    # -- writing ------------------------------------------------------------------------------

    def emit(self, statement: Stmt) -> None:
        self._blocks[-1].append(statement)

    def finish(self) -> tuple[Stmt, ...]:
        """The statements of the whole body."""
        (body,) = self._blocks
        return tuple(body)

    def start_rebound(self) -> None:
        """Gives each parameter that the body rebinds a local of its own, unless it is fixed."""
        span = self.function.def_span
        for name in sorted(self.scope.names.bound & set(self.scope.parameters)):
            value = self.scope.parameters[name]
            if self.is_fixed(name):
                continue
            start = expr(value, span)
            local = self.scope.fresh(name)
            self.scope.local_name_by_name[name] = local
            # Not marked as assigned: until the body binds the name it is still the parameter.
            self.declare(local, start.type)
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

    def declare(self, name: str, t: Type) -> None:
        self.scope.types[name] = t

    def keep(self, value: Expr, base: str) -> Expr:
        """The value in a local of its own, so that two uses evaluate it once."""
        if is_simple(value):
            return value
        name = self.scope.fresh(base)
        self.declare(name, value.type)
        self.scope.assign(name)
        self.emit(Assign(name=name, value=value, span=value.span))
        return Var(type=value.type, name=name, span=value.span)

    def once(self, value: Expr, base: str, node: ast.expr) -> Expr:
        """The value for several uses, in a local if a statement may precede the expression.

        Raises:
            LanguageError: SR0244 where none may, and the value has effects.
        """
        if is_simple(value) or self.can_hoist:
            return self.keep(value, base)
        if has_effect(value):
            raise self.error("SR0244", node)
        return value

    @contextmanager
    def conditional(self) -> Generator[None]:
        """Reads an operand that runs conditionally or repeatedly: nothing is hoisted from it."""
        outer, self.can_hoist = self.can_hoist, False
        try:
            yield
        finally:
            self.can_hoist = outer


def is_simple(value: Expr) -> bool:
    """True if evaluating the value twice costs and reports nothing."""
    return isinstance(value, Var | Const)
