"""Whole random programs: a kernel, what it uses, and what it is called with."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from hypothesis import strategies as st

from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    SAMPLER,
    Access,
    BufferType,
    Pointer,
    Struct,
    TextureType,
    Type,
)
from tests.random_programs.choices import Choices, Draw
from tests.random_programs.expressions import annotated
from tests.random_programs.functions import TABLE_EXTENTS, Definitions
from tests.random_programs.inputs import Argument, values_of
from tests.random_programs.scope import ArrayName, Names, Scope, Value
from tests.random_programs.spelling import FLOAT2, FLOAT2X2, FLOAT3, FLOAT3X3, FLOAT4, INT2
from tests.random_programs.statements import INDENT, Statements, own_values

_HEAD = '''"""A random program."""

from __future__ import annotations

import math

import shaderad as sad
from shaderad import float2, float2x2, float2x3, float3, float3x2, float3x3, float4, float4x2
from shaderad import float2x4, float3x4, float4x3, float4x4, int2, int3
'''
KERNEL = "kernel"
POINTED_COUNT = 4


@dataclass(frozen=True)
class Program:
    """A module with one kernel, and how it is called."""

    source: str
    dim: tuple[int, ...]
    arguments: tuple[Argument, ...]
    seed: int
    """Of the arguments' numbers."""
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    def values(self, nudge: float = 0.0) -> tuple[Any, ...]:
        return values_of(self.arguments, self.seed, nudge)

    def kernel(self) -> Any:
        """The kernel; its source is known to `linecache`, where the front end looks."""
        name = f"<random program {abs(hash(self.source))}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        module = ModuleType("random_program")
        exec(compile(self.source, name, "exec", dont_inherit=True), module.__dict__)
        return getattr(module, KERNEL)

    @property
    def call(self) -> dict[str, Any]:
        """The call keywords. Indices that lie outside are no errors here."""
        return {"dim": self.dim, "shapes": self.shapes, "bounds": "ignore"}


class _Kernel:
    """Draws the parameters, then the body."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._names = Names()
        self._definitions = Definitions(choices, self._names)
        self._arguments: list[Argument] = []
        self._arrays: list[ArrayName] = []
        self._values: list[Value] = []
        self._parameters: list[str] = []
        self._shapes: dict[str, tuple[int, ...]] = {}

    def program(self) -> Program:
        choices = self._choices
        self._definitions.write()
        is_flat = choices.below(4) < 3
        self._dim = choices.of([(5,), (1,), (7,), (3,), (67,), (130,)] if is_flat else
                               [(3, 4), (1, 5), (9, 8)])  # fmt: skip
        self._indices = ("i",) if is_flat else ("i", "j")
        self._inputs()
        outs = self._outputs()
        scope = Scope(
            self._names,
            list(self._definitions.functions),
            self._definitions.structs,
            [*(Value(i, INT) for i in self._indices), *self._values],
            self._arrays,
            indices=self._indices,
            dim=self._dim,
            is_kernel=True,
        )
        scope.values += own_values(outs, self._indices)
        body = Statements(choices, scope, 1 + choices.below(8))
        body.body()
        for array in self._arrays:
            if array.type.access is not Access.IN and choices.chance(60):
                body.write_array(array)
        lines = [*body.lines, *self._last_writes(choices, scope, outs)]
        source = "\n".join([_HEAD, *self._definitions.lines, "", "", *self._head(), *lines]) + "\n"
        seed = choices.below(1000)
        return Program(source, self._dim, tuple(self._arguments), seed, self._shapes)

    def _head(self) -> list[str]:
        indices = [f"{i}: sad.Index" for i in self._indices]
        text = f"\n{INDENT}".join(f"{p}," for p in [*indices, *self._parameters])
        return ["@sad.kernel", f"def {KERNEL}(\n{INDENT}{text}\n):"]

    def _last_writes(self, choices: Choices, scope: Scope, outs: list[ArrayName]) -> list[str]:
        """Most results are written at the end; what happened before must reach some of them."""
        writer = Statements(choices, scope, 0)
        at = ", ".join(self._indices)
        made: list[str] = []
        for k, out in enumerate(outs):
            if k == 0 or choices.chance(60):
                scope.result = out.type.element
                made.append(f"{INDENT}{out.name}[{at}] = {writer.result()}")
        return made

    # -- parameters ---------------------------------------------------------------------------

    def _inputs(self) -> None:
        choices = self._choices
        self._array(FLOAT, self._dim)
        self._array(FLOAT, TABLE_EXTENTS)
        structs = self._definitions.structs
        elements: list[Type] = [FLOAT, FLOAT3, INT, FLOAT2, FLOAT2X2, FLOAT3X3, *structs]
        for _ in range(choices.below(4)):
            extents = choices.of([self._dim, TABLE_EXTENTS, (3,), (2, 3)])
            self._array(choices.of(elements), extents)
        for _ in range(choices.below(4)):
            self._uniform(choices.of([FLOAT, INT, FLOAT3, BOOL, FLOAT2X2, INT2, *structs]))
        if choices.chance(25):
            self._pointer()
        if choices.chance(25):
            self._texture()
        if choices.chance(20):
            name = self._names.fresh("c")
            self._parameters.append(f"{name}: sad.Const[int]")
            self._arguments.append(Argument(name, INT, constant=choices.below(4)))
            self._values.append(Value(name, INT, is_constant=True))

    def _array(self, element: Type, extents: tuple[int, ...]) -> None:
        t = BufferType(Access.IN, element, len(extents))
        name = self._names.fresh("x")
        if self._choices.chance(15) and isinstance(element, type(FLOAT3)):
            name = self._held(name, t, extents)
        else:
            self._add(name, t, extents)
        self._arrays.append(ArrayName(name, t, extents))

    def _pointer(self) -> None:
        """An array behind a pointer. Its length keeps it out of functions, which take arrays."""
        element, extents = self._choices.of([FLOAT, FLOAT3]), (POINTED_COUNT,)
        name, t = self._names.fresh("p"), Pointer(element)
        if self._choices.chance(50):
            read = self._held(name, t, extents)
        else:
            read = name
            self._add(name, t, extents)
        self._arrays.append(ArrayName(read, BufferType(Access.IN, element), extents))

    def _texture(self) -> None:
        for _ in range(1 + self._choices.below(2)):
            t = TextureType(Access.IN, self._choices.of([FLOAT, FLOAT4, FLOAT2]))
            name, extents = self._names.fresh("t"), self._choices.of([(2, 3), (1, 1), (4, 4)])
            self._add(name, t, extents)
            self._arrays.append(ArrayName(name, t, extents))
        self._add("filter", SAMPLER, ())

    def _add(self, name: str, t: Type, extents: tuple[int, ...]) -> None:
        """A parameter, and what it is called with."""
        self._parameters.append(annotated(((name, t),)))
        self._arguments.append(Argument(name, t, extents))

    def _held(self, name: str, t: Type, extents: tuple[int, ...]) -> str:
        """The array as a field of a struct parameter; how the kernel names it."""
        struct = Struct(self._names.fresh("H"), (("items", t), ("scale", FLOAT)))
        lines = ["", "", "@sad.struct", f"class {struct.name}:"]
        lines += [f"{INDENT}{annotated((f,))}" for f in struct.fields]
        self._definitions.lines += lines
        self._parameters.append(f"{name}: {struct.name}")
        self._arguments.append(Argument(name, struct, extents))
        self._values.append(Value(f"{name}.scale", FLOAT))
        return f"{name}.items"

    def _uniform(self, t: Type) -> None:
        name = self._names.fresh("u")
        self._add(name, t, ())
        self._values.append(Value(name, t, is_bound=True))

    def _outputs(self) -> list[ArrayName]:
        choices, rank = self._choices, len(self._dim)
        elements: list[Type] = [FLOAT, FLOAT3, INT, FLOAT2X2, FLOAT2, *self._definitions.structs]
        outs: list[ArrayName] = []
        for k in range(1 + choices.below(3)):
            element = FLOAT if k == 0 else choices.of(elements)
            outs.append(self._result("y", BufferType(Access.OUT, element, rank), self._dim))
        if choices.chance(25):
            self._elsewhere()
        if choices.chance(40):
            t: Type = choices.of([FLOAT, FLOAT3, INT])
            self._arrays.append(self._shaped("s", Access.ADD, t, TABLE_EXTENTS))
        if choices.chance(25):
            access = choices.of([Access.MIN, Access.MAX])
            self._arrays.append(self._shaped("e", access, choices.of([FLOAT, INT]), (2,)))
        return outs

    def _elsewhere(self) -> None:
        choices = self._choices
        if len(self._dim) == 2:
            extents = self._dim[::-1]
        else:
            extents = (self._dim[0] * choices.of([1, 2, 3]),)
        element: Type = choices.of([FLOAT, FLOAT3])
        self._arrays.append(self._shaped("z", Access.OUT, element, extents))

    def _shaped(
        self, letter: str, access: Access, element: Type, extents: tuple[int, ...]
    ) -> ArrayName:
        made = self._result(letter, BufferType(access, element, len(extents)), extents)
        self._shapes[made.name] = extents
        return made

    def _result(self, letter: str, t: BufferType, extents: tuple[int, ...]) -> ArrayName:
        name = self._names.fresh(letter)
        self._parameters.append(annotated(((name, t),)))
        return ArrayName(name, t, extents)


@st.composite
def programs(draw: Draw) -> Program:
    """A hypothesis strategy."""
    return _Kernel(Choices(draw)).program()
