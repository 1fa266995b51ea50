"""Random structs with methods, functions, and functions with derivatives of their own."""

from __future__ import annotations

from shaderad.ir.types import (
    FLOAT,
    INT,
    Access,
    BufferType,
    LocalArray,
    Struct,
    Tuple,
    Type,
)
from tests.random_programs.choices import Choices
from tests.random_programs.expressions import Expressions, annotated
from tests.random_programs.scope import ArrayName, FunctionName, Names, Scope, Value
from tests.random_programs.spelling import FLOAT2, FLOAT2X2, FLOAT3, has_float, spell
from tests.random_programs.statements import INDENT, Statements

TABLE_EXTENTS = (5,)
_FIELD_TYPES: tuple[Type, ...] = (
    FLOAT, FLOAT3, INT, FLOAT2, LocalArray(FLOAT, 2), FLOAT2X2, LocalArray(FLOAT3, 2),
)  # fmt: skip


class Definitions:
    """Structs and functions, one after the other; each may use those before it."""

    def __init__(self, choices: Choices, names: Names) -> None:
        self.lines: list[str] = []
        self.structs: list[Struct] = []
        self.functions: list[FunctionName] = []
        self._choices = choices
        self._names = names

    def write(self) -> None:
        for _ in range(self._choices.below(3)):
            self._struct()
        for _ in range(self._choices.below(4)):
            kind = self._choices.weighted([
                (12, self._function), (5, self._with_derivatives), (1, self._own_access),
                (3, self._deposit),
            ])  # fmt: skip
            kind()

    def _scope(self, parameters: tuple[tuple[str, Type], ...], result: Type | None) -> Scope:
        values = [
            Value(name, t, is_bound=True) for name, t in parameters if not isinstance(t, BufferType)
        ]
        return Scope(self._names, list(self.functions), self.structs, values, result=result)

    # -- structs ------------------------------------------------------------------------------

    def _struct(self) -> None:
        name = self._names.fresh("S")
        options: list[Type] = [*_FIELD_TYPES, *self.structs]
        count = 1 + self._choices.below(3)
        # A float comes first, so that every struct can carry a derivative.
        fields = (("p0", FLOAT), *((f"p{k + 1}", self._choices.of(options)) for k in range(count)))
        made = Struct(name, fields)
        self.lines += ["", "", "@sad.struct", f"class {name}:"]
        self.lines += [f"{INDENT}{field}: {spell(t)}" for field, t in fields]
        self.structs.append(made)
        for _ in range(self._choices.below(2)):
            self._method(made)

    def _method(self, owner: Struct) -> None:
        name = self._names.fresh("m")
        result = self._choices.of([FLOAT, FLOAT3, owner])
        parameters = (("t", FLOAT), *((("k", INT),) if self._choices.chance(50) else ()))
        scope = self._scope(parameters, result)
        scope.values.append(Value("self", owner))
        text, scope = self._body(scope, 1 + self._choices.below(3), INDENT * 2)
        head = f"{INDENT}def {name}(self, {annotated(parameters)}) -> {spell(result)}:"
        self.lines += ["", head, *text]
        self.functions.append(FunctionName(name, parameters, result, owner=owner))

    # -- functions ----------------------------------------------------------------------------

    def _body(self, scope: Scope, fuel: int, indent: str = INDENT) -> tuple[list[str], Scope]:
        statements = Statements(self._choices, scope, fuel)
        statements.body(indent)
        if scope.result is not None:
            statements.lines.append(f"{indent}return {statements.result()}")
        return statements.lines, scope

    def _parameters(self) -> tuple[tuple[str, Type], ...]:
        options: list[Type] = [FLOAT, INT, FLOAT3, FLOAT2, LocalArray(FLOAT, 3), *self.structs]
        count = self._choices.below(3)
        more = (("abc"[k], self._choices.of(options)) for k in range(count))
        return (("t", FLOAT), *more)

    def _result(self) -> Type:
        options: list[Type] = [FLOAT, FLOAT, FLOAT3, INT, FLOAT2, LocalArray(FLOAT, 3),
                               FLOAT2X2, Tuple((FLOAT, FLOAT3)), *self.structs]  # fmt: skip
        return self._choices.of(options)

    def _function(self) -> None:
        name, parameters, result = self._names.fresh("f"), self._parameters(), self._result()
        arrays: list[ArrayName] = []
        if self._choices.chance(40):
            element: Type = self._choices.of([FLOAT, FLOAT3])
            arrays.append(ArrayName("w", BufferType(Access.IN, element), TABLE_EXTENTS))
        scope = self._scope(parameters, result)
        scope.arrays = arrays
        text, scope = self._body(scope, self._choices.below(5))
        every = (*((a.name, a.type) for a in arrays), *parameters)
        self._add(name, every, result, text, is_pure=scope.is_pure and not arrays)

    def _add(
        self,
        name: str,
        parameters: tuple[tuple[str, Type], ...],
        result: Type | None,
        text: list[str],
        *,
        is_pure: bool,
    ) -> None:
        arrow = "" if result is None else f" -> {spell(result)}"
        self.lines += ["", "", "@sad.function", f"def {name}({annotated(parameters)}){arrow}:"]
        self.lines += text
        plain = all(t in (FLOAT, FLOAT3, FLOAT2, INT) for _, t in parameters)
        extents = tuple(TABLE_EXTENTS if isinstance(t, BufferType) else () for _, t in parameters)
        made = FunctionName(name, parameters, result, None, is_pure and plain, extents)
        self.functions.append(made)

    def _deposit(self) -> None:
        """A function that only adds to an array."""
        name = self._names.fresh("f")
        parameters: tuple[tuple[str, Type], ...] = (
            ("acc", BufferType(Access.ADD, FLOAT)), ("t", FLOAT), ("k", INT),
        )  # fmt: skip
        scope = self._scope(parameters, None)
        scope.arrays = [ArrayName("acc", BufferType(Access.ADD, FLOAT), TABLE_EXTENTS)]
        text, _ = self._body(scope, self._choices.below(3))
        write = Expressions(self._choices, scope)
        text.append(f"{INDENT}acc[{write.index(5)}] += {write.value(FLOAT, 2)}")
        self._add(name, parameters, None, text, is_pure=False)

    # -- own derivatives ----------------------------------------------------------------------

    def _with_derivatives(self) -> None:
        """Any function, with the derivatives of a linear one: both modes tell the same."""
        name = self._names.fresh("f")
        vector = self._choices.of([FLOAT, FLOAT3])
        parameters = (
            ("t", FLOAT),
            ("a", vector),
            *((("k", INT),) if self._choices.chance(40) else ()),
        )
        result = self._choices.of([FLOAT, vector])
        text, scope = self._body(self._scope(parameters, result), self._choices.below(3))
        self._add(name, parameters, result, text, is_pure=scope.is_pure)
        by_t, by_a = (self._slope(parameters, name) for name in ("t", "a"))
        self._backward(name, parameters, result, by_t, by_a)
        self._forward(name, parameters, result, by_t, by_a)

    def _slope(self, parameters: tuple[tuple[str, Type], ...], by: str) -> str:
        """A float, made so that second derivatives do not depend on their order."""
        values = [
            Value(f"{n}.p" if has_float(t) else n, t)
            for n, t in parameters
            if not has_float(t) or (n == by and t == FLOAT)
        ]
        scope = Scope(self._names, [], [], values)
        return Expressions(self._choices, scope).value(FLOAT, 2)

    def _paired(self, parameters: tuple[tuple[str, Type], ...]) -> str:
        pairs = [
            f"{n}: sad.DifferentialPair[{spell(t)}]" if has_float(t) else f"{n}: {spell(t)}"
            for n, t in parameters
        ]
        return ", ".join(pairs)

    def _backward(
        self,
        name: str,
        parameters: tuple[tuple[str, Type], ...],
        result: Type,
        by_t: str,
        by_a: str,
    ) -> None:
        a = dict(parameters)["a"]
        to_t = "d_out" if result == FLOAT else "(d_out.x + d_out.y + d_out.z)"
        to_a = (
            f"{a}({to_t})" if result == FLOAT and a != FLOAT else ("d_out" if a != FLOAT else to_t)
        )
        self.lines += [
            "", "", f"@{name}.backward_derivative",
            f"def {name}_bwd({self._paired(parameters)}, d_out: {spell(result)}):",
            f"{INDENT}t.d += {by_t} * {to_t}",
            f"{INDENT}a.d += {by_a} * {to_a}",
        ]  # fmt: skip

    def _forward(
        self,
        name: str,
        parameters: tuple[tuple[str, Type], ...],
        result: Type,
        by_t: str,
        by_a: str,
    ) -> None:
        a = dict(parameters)["a"]
        from_t = f"{by_t} * t.d" if result == FLOAT else f"float3({by_t} * t.d)"
        from_a = (
            f"{by_a} * (a.d.x + a.d.y + a.d.z)"
            if result == FLOAT and a != FLOAT
            else (f"{by_a} * a.d")
        )
        args = ", ".join(f"{n}.p" if has_float(t) else n for n, t in parameters)
        self.lines += [
            "", "", f"@{name}.forward_derivative",
            f"def {name}_fwd({self._paired(parameters)}) -> sad.DifferentialPair[{spell(result)}]:",
            f"{INDENT}return sad.diff_pair({name}({args}), {from_t} + {from_a})",
        ]  # fmt: skip

    def _own_access(self) -> None:
        """A buffer access with a backward of its own; it has no forward, so no jvp either."""
        name = self._names.fresh("f")
        parameters: tuple[tuple[str, Type], ...] = (
            ("w", BufferType(Access.IN, FLOAT)), ("k", INT), ("t", FLOAT),
        )  # fmt: skip
        at = "k % len(w)"
        text = [f"{INDENT}return w[{at}] * t"]
        self._add(name, parameters, FLOAT, text, is_pure=False)
        factor = self._choices.of(("1.0", "0.5", "t.p"))
        self.lines += [
            "", "", f"@{name}.backward_derivative",
            f"def {name}_bwd(w: sad.DifferentialPair[sad.In[float]], k: int, "
            "t: sad.DifferentialPair[float], d_out: float):",
            f"{INDENT}w.d[k % len(w.p)] += {factor} * d_out",
            f"{INDENT}t.d += w.p[k % len(w.p)] * d_out",
        ]  # fmt: skip
