"""Slang programs that evaluate many ops at once: value, tangent, cotangents, second derivatives.

A workgroup takes one trial, each thread one sample. Operands, tangents and cotangents lie in one
buffer of words, trial by trial and sample by sample in the order of `Trial.inputs`; results in
another, as `Trial.outputs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shaderad.ir import ops
from shaderad.ir.types import DOUBLE, FLOAT
from shaderad.lower.artifact import Access, Binding, Program

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


def call(kind: str, trial: Trial, names: Sequence[str]) -> str:
    if trial.op is ops.SELECT:
        names = (f"{names[0]} > 0", *names[1:])
    if trial.exponent is not None:
        names = (*names, str(trial.exponent))
    if trial.op is ops.DIV:
        return f"quotientOf({', '.join(names)})"
    spelled = ops.slang_function(trial.op, DOUBLE if kind == "double" else FLOAT)
    if "{" in spelled:
        return spelled.format(*names)
    return f"{spelled}({', '.join(names)})"


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

    def variables(self, trial: Trial, name: str, primal: str) -> str:
        """Declares pairs with zero differentials, and lists them."""
        for k, shape in enumerate(trial.shapes):
            zero = f"{type_name(self.kind, shape)}({self.kind}(0))"
            self.lines.append(f"    var {name}{k} = diffPair({primal}{k}, {zero});")
        return ", ".join(f"{name}{k}" for k in range(len(trial.shapes)))

    @staticmethod
    def pairs(primal: str, tangent: str, count: range) -> str:
        return ", ".join(f"diffPair({primal}{k}, {tangent}{k})" for k in count)

    def write(self, value: str, shape: Shape) -> None:
        self.lines += [f"    put(to, {value}{e});" for e in elements(shape)]


def _function(kind: str, number: int, trial: Trial) -> str:
    names = [f"a{k}" for k in range(len(trial.shapes))]
    parameters = [f"{type_name(kind, s)} {n}" for s, n in zip(trial.shapes, names, strict=True)]
    # Not `no_diff`: Slang crashes on the forward derivative of a function that has such
    # parameters and itself calls `fwd_diff`.
    tangents = [f"{type_name(kind, s)} t{k}" for k, s in enumerate(trial.shapes)]
    pairs = ", ".join(f"diffPair({n}, t{k})" for k, n in enumerate(names))
    result = type_name(kind, trial.result)
    return f"""
[Differentiable]
{result} f{number}({", ".join(parameters)})
{{
    return {call(kind, trial, names)};
}}

[Differentiable]
{result} g{number}({", ".join(parameters + tangents)})
{{
    return fwd_diff(f{number})({pairs}).d;
}}
"""


def _statements(kind: str, number: int, trial: Trial, with_second: bool) -> str:
    text = _Text(kind, number)
    count = range(len(trial.shapes))
    for prefix in "xtu":
        for k, shape in zip(count, trial.shapes, strict=True):
            text.read(f"{prefix}{k}", shape)
    text.read("bar", trial.result)
    xs = ", ".join(f"x{k}" for k in count)
    text.write(f"f{number}({xs})", trial.result)
    text.lines.append(f"    let forward = fwd_diff(f{number})({text.pairs('x', 't', count)});")
    text.write("forward.d", trial.result)
    arguments = text.variables(trial, "p", "x")
    text.lines.append(f"    bwd_diff(f{number})({arguments}, bar);")
    for k, shape in zip(count, trial.shapes, strict=True):
        text.write(f"p{k}.d", shape)
    if with_second:
        fixed = text.variables(trial, "s", "t")
        dual = text.pairs("x", "u", count)
        text.lines.append(f"    let second = fwd_diff(g{number})({dual}, {fixed});")
        text.write("second.d", trial.result)
        arguments = text.variables(trial, "q", "x")
        text.lines.append(f"    bwd_diff(g{number})({arguments}, {fixed}, bar);")
        for k, shape in zip(count, trial.shapes, strict=True):
            text.write(f"q{k}.d", shape)
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
    functions = "".join(_function(kind, n, t) for n, t in enumerate(trials))
    statements = "\n".join(_statements(kind, n, t, with_second) for n, t in enumerate(trials))
    calls = "\n".join(_branches(kind, trials, with_second))
    text = f"""
import shaderad;
import safe_math;
{"import double_math;" if kind == "double" else ""}
[[vk::binding(0, 0)]] StructuredBuffer<uint> words;
[[vk::binding(1, 0)]] RWStructuredBuffer<uint> results;
{_WORDS[kind]}{functions}
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
        bindings=(Binding(0, "words", Access.READ), Binding(1, "results", Access.WRITE)),
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
