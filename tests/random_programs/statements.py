"""Random statements: assignments in part and whole, branches, loops, jumps, writes to arrays."""

from __future__ import annotations

from collections.abc import Sequence

from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    Access,
    BufferType,
    LocalArray,
    Scalar,
    Tuple,
    Type,
    Vector,
    tangent,
)
from tests.random_programs.choices import Choices
from tests.random_programs.expressions import Expressions
from tests.random_programs.scope import ArrayName, FunctionName, Scope, Value
from tests.random_programs.spelling import (
    FLOAT2,
    FLOAT2X2,
    FLOAT2X3,
    FLOAT3,
    FLOAT3X3,
    FLOAT4,
    INT2,
    INT3,
    has_float,
    spell,
)

INDENT = "    "
_LOOP_DEPTH = 3


def local_types(choices: Choices, scope: Scope) -> Type:
    """The type of a new local name."""
    arrays: list[Type] = [LocalArray(FLOAT, 3), LocalArray(FLOAT, 2), LocalArray(FLOAT2, 2),
                          LocalArray(INT, 3), LocalArray(LocalArray(FLOAT, 2), 2)]  # fmt: skip
    arrays += [LocalArray(s, 2) for s in scope.structs]
    return choices.weighted([
        (8, FLOAT), (3, INT), (3, FLOAT3), (2, FLOAT2), (1, FLOAT4), (1, BOOL), (1, FLOAT2X2),
        (1, FLOAT3X3), (1, FLOAT2X3), (1, INT3), (1, INT2),
        *((3, s) for s in scope.structs), *((1, a) for a in arrays),
    ])  # fmt: skip


class Statements:
    """Writes statements into `lines` until their fuel is spent."""

    def __init__(self, choices: Choices, scope: Scope, fuel: int) -> None:
        self.lines: list[str] = []
        self._choices = choices
        self._scope = scope
        self._write = Expressions(choices, scope)
        self._fuel = fuel
        self._unique_done: set[str] = set()

    def body(self, indent: str = INDENT) -> None:
        """Statements one after the other, as many as the fuel allows."""
        while self._fuel > 0:
            self._statement(indent)

    def _block(self, indent: str) -> None:
        """One to three statements."""
        start = len(self.lines)
        for _ in range(1 + self._choices.below(3)):
            if self._fuel > 0:
                self._statement(indent)
        if len(self.lines) == start:
            self._assign_or_pass(indent)

    def _assign_or_pass(self, indent: str) -> None:
        count = len(self.lines)
        self._assign(indent)
        if len(self.lines) == count:
            self._line(indent, "pass")

    def _line(self, indent: str, text: str) -> None:
        self.lines.append(indent + text)

    def _statement(self, indent: str) -> None:
        self._fuel -= 1
        deep = self._scope.loop_depth
        can_loop = deep < _LOOP_DEPTH
        kind = self._choices.weighted([
            (6, self._new), (6, self._assign), (4, self._assign_part), (3, self._augment),
            (4, self._if), (5 if can_loop else 0, self._for), (2 if can_loop else 0, self._while),
            (1 if can_loop else 0, self._sum_loop), (5, self._write_array), (1, self._swap),
            (8 if deep else 2, self._jump), (1, self._unpack), (1, self._effect),
            (1, self._copy_and_change), (1, self._assert), (1, self._print), (1, self._pull),
            (2 if can_loop else 0, self._share),
        ])  # fmt: skip
        kind(indent)

    def _depth(self) -> int:
        """Of a right-hand side. Deep ones take the compiler long and add little."""
        return 3 if self._choices.chance(25) else 2

    def _share(self, indent: str) -> None:
        """A local that is used both before a block and by a call inside of it."""
        able = self._write.callable(FLOAT)
        if not able:
            self._new(indent)
            return
        shared = self._declare(FLOAT, self._write.value(FLOAT, 2), indent)
        total = self._declare(FLOAT, f"{shared} * {self._write.leaf(FLOAT)}", indent)
        k = self._scope.names.fresh("k")
        heads = (f"if {self._write.condition(2)}:", f"for {k} in range(2):")
        self._line(indent, self._choices.of(heads))
        call = self._write.call_of(self._choices.of(able), 2, shared)
        self._line(indent + INDENT, f"{total} += {call}")

    # -- assignments --------------------------------------------------------------------------

    def _name(self, letter: str) -> str:
        names = self._scope.names
        if self._choices.chance(8):
            found = names.troubled(self._choices.below(64))
            if found is not None:
                return found
        return names.fresh(letter)

    def _declare(self, t: Type, text: str, indent: str) -> str:
        name = self._name("v")
        is_typed = t == FLOAT or self._choices.chance(10)
        self._line(indent, f"{name}: {spell(t)} = {text}" if is_typed else f"{name} = {text}")
        self._scope.values.append(Value(name, t, is_bound=True, is_own=True))
        return name

    def _new(self, indent: str) -> None:
        t = local_types(self._choices, self._scope)
        self._declare(t, self._write.value(t, self._depth()), indent)

    def _bound(self) -> list[Value]:
        return [v for v in self._scope.values if v.is_bound]

    def _assign(self, indent: str) -> None:
        found = self._bound()
        if not found:
            self._new(indent)
            return
        value = self._choices.of(found)
        self._line(indent, f"{value.text} = {self._damped(value.type)}")

    def _damped(self, t: Type) -> str:
        if isinstance(t, Scalar) and t != FLOAT:
            return self._write.value(t, 2)
        return self._write.damped(t, self._depth())

    def _assign_part(self, indent: str) -> None:
        found = [v for v in self._scope.values if v.is_own and not isinstance(v.type, Scalar)]
        if not found:
            self._assign(indent)
            return
        value = self._choices.of(found)
        text, t = self._write.place(value)
        if t in (FLOAT, INT) and self._choices.chance(40):
            self._line(indent, f"{text} += {self._damped(t)}")
        else:
            self._line(indent, f"{text} = {self._damped(t)}")

    def _augment(self, indent: str) -> None:
        found = [v for v in self._bound() if v.type in (FLOAT, FLOAT3, FLOAT2, INT, FLOAT2X2)]
        if not found:
            self._new(indent)
            return
        value = self._choices.of(found)
        t = value.type
        if t != INT and self._choices.chance(40):
            self._line(indent, f"{value.text} *= {self._write.damped(FLOAT, 2)}")
            return
        self._line(indent, f"{value.text} {self._choices.of(('+=', '-='))} {self._damped(t)}")

    def _swap(self, indent: str) -> None:
        found = self._bound()
        pairs = [(a, b) for a in found for b in found if a.type == b.type and a.text < b.text]
        if not pairs:
            self._assign(indent)
            return
        a, b = self._choices.of(pairs)
        right = (
            f"{b.text}, {a.text}"
            if self._choices.chance(60)
            else (f"{self._damped(a.type)}, {a.text}")
        )
        self._line(indent, f"{a.text}, {b.text} = {right}")

    def _unpack(self, indent: str) -> None:
        able = [f for f in self._scope.functions if isinstance(f.result, Tuple)]
        calls = [(f, self._write.call(f.result, 2)) for f in able[:1] if f.result is not None]
        if not calls or calls[0][1] is None:
            self._unpack_vector(indent)
            return
        function, text = calls[0]
        assert isinstance(function.result, Tuple)
        names = [self._scope.names.fresh("v") for _ in function.result.elements]
        self._line(indent, f"{', '.join(names)} = {text}")
        for name, t in zip(names, function.result.elements, strict=True):
            self._scope.values.append(Value(name, t, is_bound=True, is_own=True))

    def _unpack_vector(self, indent: str) -> None:
        names = [self._scope.names.fresh("v") for _ in range(3)]
        self._line(indent, f"{', '.join(names)} = {self._write.value(FLOAT3, 2)}")
        self._scope.values += [Value(n, FLOAT, is_bound=True, is_own=True) for n in names]

    def _copy_and_change(self, indent: str) -> None:
        """Values copy: changing the copy must leave the first as it was."""
        found = [v for v in self._scope.values if not isinstance(v.type, Scalar)]
        if not found:
            self._new(indent)
            return
        value = self._choices.of(found)
        name = self._declare(value.type, value.text, indent)
        text, t = self._write.place(Value(name, value.type))
        self._line(indent, f"{text} = {self._damped(t)}")

    def _assert(self, indent: str) -> None:
        self._line(indent, f'assert {self._write.condition(1)} or True, "never"')

    def _print(self, indent: str) -> None:
        """What is printed changes no value and no derivative."""
        found = self._bound()
        text = self._choices.of(found).text if found else "'here'"
        self._line(indent, f"print({text}, {self._write.damped(FLOAT, 1)})")

    # -- branches and loops -------------------------------------------------------------------

    def _if(self, indent: str) -> None:
        self._line(indent, f"if {self._write.condition(1)}:")
        with self._scope.block():
            self._block(indent + INDENT)
        if self._choices.chance(20):
            self._line(indent, f"elif {self._write.condition(1)}:")
            with self._scope.block():
                self._block(indent + INDENT)
        if self._choices.chance(40):
            self._line(indent, "else:")
            with self._scope.block():
                self._block(indent + INDENT)

    def _for(self, indent: str) -> None:
        kind = self._choices.below(5)
        name = self._scope.names.fresh("k")
        deep = self._scope.loop_depth
        most = (5, 4, 3)[deep]
        is_unrolled = kind == 4 and deep < 2
        self._line(indent, f"for {name} in {self._range(kind, most, is_unrolled)}:")
        with self._scope.block(is_loop=True):
            self._scope.values.append(Value(name, INT))
            self._block(indent + INDENT)

    def _range(self, kind: int, most: int, is_unrolled: bool) -> str:
        count = self._choices.below(most + 1)
        if is_unrolled:
            return f"sad.static_range({min(count, 3)})"
        if kind == 0:
            return f"range({count})"
        number = self._write.value(INT, 1)
        if kind == 1 and self._choices.chance(50):
            # Enough that not all states are kept.
            return f"range(({number}) % {most if self._scope.loop_depth else 23})"
        if kind == 1:
            return f"sad.range(({number}) % {most}, limit={max(most - 1, 1)})"
        if kind == 2:
            return f"sad.range({number}, limit={max(count, 1)})"
        step = self._choices.of(("1", "2", "-1", "-2"))
        return f"sad.range({number}, {self._write.value(INT, 1)}, {step}, limit={max(count, 1)})"

    def _while(self, indent: str) -> None:
        name = self._scope.names.fresh("n")
        self._line(indent, f"{name} = 0")
        self._scope.values.append(Value(name, INT))
        more = f" and {self._write.condition(1)}" if self._choices.chance(60) else ""
        most = 1 + self._choices.below(4)
        condition = f"{name} < {most}{more}"
        limited = f"sad.limit({condition}, {most})" if self._choices.chance(50) else condition
        self._line(indent, f"while {limited}:")
        with self._scope.block(is_loop=True):
            self._line(indent + INDENT, f"{name} += 1")
            self._block(indent + INDENT)

    def _sum_loop(self, indent: str) -> None:
        """A loop without a limit: it only adds up floats that it does not read again."""
        total = self._scope.names.fresh("v")
        number, name = self._write.value(INT, 1), self._scope.names.fresh("k")
        self._line(indent, f"{total} = {self._write.leaf(FLOAT)}")
        self._line(indent, f"for {name} in range(({number}) % 5):")
        self._scope.values.append(Value(name, INT))
        self._line(indent + INDENT, f"{total} += {self._write.value(FLOAT, self._depth())}")
        adds = [a for a in self._scope.arrays if a.type.access is Access.ADD]
        if adds and self._choices.chance(60):
            self._accumulate(self._choices.of(adds), indent + INDENT)
        self._scope.values.pop()
        self._scope.values.append(Value(total, FLOAT, is_bound=True, is_own=True))

    def _pull(self, indent: str) -> None:
        """``bwd_diff`` of a function; what it gives are values like any other."""
        scope = self._scope
        able: list[FunctionName] = []
        for f in scope.functions:
            floats = [t for _, t in f.parameters if has_float(t)]
            if not f.is_pure or f.owner is not None or f.result is None:
                continue
            if has_float(f.result) and floats and all(tangent(t) == t for t in floats):
                able.append(f)
        if not able:
            self._assign(indent)
            return
        function = self._choices.of(able)
        assert function.result is not None
        args: list[str] = []
        found: list[Value] = []
        for _, t in function.parameters:
            value = self._write.value(t, 1)
            if not has_float(t):
                args.append(value)
                continue
            name = scope.names.fresh("p")
            self._line(indent, f"{name} = sad.diff_pair({value})")
            args.append(name)
            found.append(Value(f"{name}.d", t))
        cotangent = self._write.leaf(function.result)
        self._line(indent, f"sad.bwd_diff({function.name})({', '.join([*args, cotangent])})")
        for value in found:
            self._declare(value.type, value.text, indent)

    def _jump(self, indent: str) -> None:
        """``break``, ``continue`` or ``return`` behind a condition."""
        scope = self._scope
        kind = self._choices.below(4)
        if not scope.loop_depth and kind < 3:
            self._assign(indent)
            return
        self._line(indent, f"if {self._write.condition(1)}:")
        if kind == 3:
            self._return(indent + INDENT)
            return
        if self._choices.chance(30):
            self._assign_or_pass(indent + INDENT)
        self._line(indent + INDENT, "continue" if kind == 1 else "break")

    def _return(self, indent: str) -> None:
        scope = self._scope
        if scope.result is None:
            outs = [v for v in scope.values if "[" in v.text]
            if outs and self._choices.chance(60):
                own = self._choices.of(outs)
                self._line(indent, f"{own.text} = {self._damped(own.type)}")
            self._line(indent, "return")
            return
        self._line(indent, f"return {self.result()}")

    def result(self) -> str:
        """What a function returns."""
        t = self._scope.result
        assert t is not None
        if isinstance(t, Tuple):
            return ", ".join(self._damped(e) for e in t.elements)
        return self._damped(t)

    # -- arrays -------------------------------------------------------------------------------

    def _write_array(self, indent: str) -> None:
        written = [a for a in self._scope.arrays if a.type.access is not Access.IN]
        if not written:
            self._assign(indent)
            return
        self.write_array(self._choices.of(written), indent)

    def write_array(self, array: ArrayName, indent: str = INDENT) -> None:
        """Writes, adds to, or takes the minimum or maximum with one element."""
        if array.type.access is Access.OUT:
            self._write_elsewhere(array, indent)
        elif array.type.access is Access.ADD:
            self._accumulate(array, indent)
        else:
            self._extreme(array, indent)

    def _write_elsewhere(self, array: ArrayName, indent: str) -> None:
        """Once an element: at a permuted index, or at a multiple of the thread's own."""
        scope = self._scope
        if scope.loop_depth or array.name in self._unique_done or not scope.is_kernel:
            self._assign(indent)
            return
        self._unique_done.add(array.name)
        count = array.extents[0] // scope.dim[0] if len(array.extents) == 1 else 1
        own = scope.indices[0]
        if len(array.extents) == 2:
            at = f"{scope.indices[1]}, {own}"
        elif count == 1:
            at = f"sad.unique({scope.dim[0] - 1} - {own})"
        else:
            at = f"{own} * {count} + {self._choices.below(count)}"
        self._line(indent, f"{array.name}[{at}] = {self._damped(array.type.element)}")

    def _accumulate(self, array: ArrayName, indent: str) -> None:
        indices = ", ".join(self._write.index(n) for n in array.extents)
        text, t = f"{array.name}[{indices}]", array.type.element
        if not isinstance(t, Scalar) and self._choices.chance(40):
            text, t = self._write.place(Value(text, t))
        sign = self._choices.of(("+=", "-="))
        if not isinstance(t, Scalar | Vector):
            sign = "+="
        self._line(indent, f"{text} {sign} {self._write.value(t, self._depth())}")

    def _extreme(self, array: ArrayName, indent: str) -> None:
        if not self._scope.is_kernel:
            self._assign(indent)
            return
        word = array.type.access.value.lower()
        place = f"{array.name}[{self._write.index(array.extents[0])}]"
        value = self._write.value(array.type.element, self._depth())
        self._line(indent, f"{place} = sad.{word}({place}, {value})")

    def _effect(self, indent: str) -> None:
        """A call of a function that adds to an array."""
        able = [f for f in self._scope.functions if f.result is None]
        for function in able:
            fits = all(
                not isinstance(t, BufferType)
                or any(a.type == t and a.extents == function.extents[k] for a in self._scope.arrays)
                for k, (_, t) in enumerate(function.parameters)
            )
            if fits:
                self._line(indent, self._write.call_of(function, 2))
                return
        self._augment(indent)


def own_values(outs: Sequence[ArrayName], indices: tuple[str, ...]) -> list[Value]:
    """Outs at the thread's own index, which are local values."""
    at = ", ".join(indices)
    return [Value(f"{o.name}[{at}]", o.type.element, is_bound=True, is_own=True) for o in outs]
