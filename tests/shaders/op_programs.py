"""Slang programs that evaluate many ops at once: value, tangent, cotangents, second derivatives.

A workgroup takes one trial, each thread one sample. Operands, tangents and cotangents lie in one
buffer of words, trial by trial and sample by sample in the order of `Trial.inputs`; results in
another, as `Trial.outputs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shaderad.compiler.artifact import Binding, BindingAccess, Program
from shaderad.ir import ops
from tests.shaders.op_functions import Functions

Shape = tuple[int, ...]
WORDS_BY_KIND = {"float": 1, "half": 1, "double": 2}
FEATURE_BY_KIND = {
    "float": frozenset[str](),
    "half": frozenset({"half"}),
    "double": frozenset({"double"}),
}
WORKGROUP = 64


@dataclass(frozen=True)
class Trial:
    """One op on operands of given shapes."""

    op: ops.Op
    shapes: tuple[Shape, ...]
    result: Shape
    exponent: int | None = None
    """The constant of `powi`."""

    def __str__(self) -> str:
        shapes = ",".join("x".join(map(str, s)) or "1" for s in self.shapes)
        return f"{self.op.name}[{shapes}]" + ("" if self.exponent is None else f"^{self.exponent}")

    @property
    def inputs(self) -> tuple[Shape, ...]:
        """Operands, tangents, a second set of tangents, the cotangent."""
        return (*self.shapes, *self.shapes, *self.shapes, self.result)

    @property
    def outputs(self) -> tuple[Shape, ...]:
        """Value, tangent, cotangents; second derivative forward, and in reverse."""
        return (self.result, self.result, *self.shapes, self.result, *self.shapes)


def size(shapes: Sequence[Shape]) -> int:
    return sum(int(np.prod(s)) for s in shapes)


def type_name(kind: str, shape: Shape) -> str:
    return kind + "x".join(map(str, shape))


def elements(shape: Shape) -> list[str]:
    """Subscripts of the components, row by row."""
    return ["".join(f"[{k}]" for k in index) for index in np.ndindex(*shape)]


class _Text:
    """The statements of one trial, which read and write words in order."""

    def __init__(self, kind: str, number: int) -> None:
        self.kind = kind
        self.number = number
        self.lines: list[str] = []

    def read(self, name: str, shape: Shape) -> str:
        self.lines.append(f"    {type_name(self.kind, shape)} {name};")
        self.lines += [f"    {name}{e} = take(at);" for e in elements(shape)]
        return name

    def write(self, value: str, shape: Shape) -> None:
        self.lines += [f"    put(to, {value}{e});" for e in elements(shape)]


def _statements(
    kind: str, number: int, trial: Trial, functions: Functions, with_second: bool
) -> str:
    spelled = functions.spelled(
        trial.op, kind, trial.shapes, trial.result, trial.exponent, with_second=with_second
    )
    text = _Text(kind, number)
    count = range(len(trial.shapes))
    names = {prefix: [f"{prefix}{k}" for k in count] for prefix in "xtu"}
    for prefix in "xtu":
        for name, shape in zip(names[prefix], trial.shapes, strict=True):
            text.read(name, shape)
    text.read("bar", trial.result)

    def call(function: str, *given: str) -> str:
        return f"{function}({', '.join(given)})"

    x, t, u = (names[prefix] for prefix in "xtu")
    text.write(call(spelled.value, *x), trial.result)
    text.lines.append(f"    let forward = {call(spelled.push, *x, *t)};")
    text.write("forward.item1", trial.result)
    text.lines.append(f"    let pulled = {call(spelled.pull, *x, 'bar')};")
    for k, shape in enumerate(trial.shapes):
        text.write(f"pulled.item{k}", shape)
    if with_second:
        fixed = [f"{type_name(kind, s)}({kind}(0))" for s in trial.shapes]
        text.lines.append(f"    let second = {call(spelled.second_push, *x, *t, *u, *fixed)};")
        text.write("second.item1", trial.result)
        text.lines.append(f"    let moved = {call(spelled.second_pull, *x, *t, 'bar')};")
        for k, shape in enumerate(trial.shapes):
            text.write(f"moved.item{k}", shape)
    body = "\n".join(text.lines)
    return f"void trial{number}(inout uint at, inout uint to)\n{{\n{body}\n}}\n"


_WORDS = {
    "float": """
float take(inout uint at) { return asfloat(words[at++]); }
void put(inout uint to, float value) { results[to++] = asuint(value); }
""",
    "half": """
half take(inout uint at) { return half(asfloat(words[at++])); }
void put(inout uint to, half value) { results[to++] = asuint(float(value)); }
""",
    # Through 64-bit words: naga knows neither `asdouble` nor the bits of a double as two words.
    "double": """
double take(inout uint at)
{
    at += 2;
    return bit_cast<double>(uint64_t(words[at - 2]) | (uint64_t(words[at - 1]) << 32));
}
void put(inout uint to, double value)
{
    let bits = bit_cast<uint64_t>(value);
    results[to++] = uint(bits & 0xffffffffull);
    results[to++] = uint(bits >> 32);
}
""",
}


def program(kind: str, trials: Sequence[Trial], with_second: bool) -> Program:
    """A program that runs all `trials`; without second derivatives their outputs are left out."""
    functions = Functions()
    statements = "\n".join(
        _statements(kind, n, t, functions, with_second) for n, t in enumerate(trials)
    )
    calls = "\n".join(_branches(kind, trials, with_second))
    text = f"""
import shaderad;
import safe_math;
{"import double_math;" if kind == "double" else ""}
[[vk::binding(0, 0)]] StructuredBuffer<uint> words;
[[vk::binding(1, 0)]] RWStructuredBuffer<uint> results;
{_WORDS[kind]}{functions.text}
{statements}
[shader("compute")]
[numthreads({WORKGROUP}, 1, 1)]
void tryOps(uint3 group : SV_GroupID, uint3 thread : SV_GroupThreadID)
{{
    uint at;
    uint to;
{calls}
}}
"""
    return Program(
        name="tryOps",
        slang=text,
        workgroup=(WORKGROUP, 1, 1),
        bindings=(
            Binding(0, "words", BindingAccess.READ),
            Binding(1, "results", BindingAccess.WRITE),
        ),
        features=FEATURE_BY_KIND[kind],
    )


def _branches(kind: str, trials: Sequence[Trial], with_second: bool) -> Iterator[str]:
    """One branch a trial: drivers compile long straight code in more than linear time."""
    words = WORDS_BY_KIND[kind]
    at = to = 0
    for n, trial in enumerate(trials):
        taken, given = words * size(trial.inputs), words * output_size(trial, with_second)
        yield f"    if (group.x == {n})"
        yield "    {"
        yield f"        at = {at} + thread.x * {taken};"
        yield f"        to = {to} + thread.x * {given};"
        yield f"        trial{n}(at, to);"
        yield "    }"
        at += taken * WORKGROUP
        to += given * WORKGROUP


def output_size(trial: Trial, with_second: bool) -> int:
    shapes = trial.outputs if with_second else trial.outputs[: 2 + len(trial.shapes)]
    return size(shapes)
