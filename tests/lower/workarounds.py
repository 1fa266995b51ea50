"""Kernels that meet a fault of Slang, and how to take out what we emit against it.

A switch edits the text that lowering is about to hand over, or leaves out one step of lowering;
nothing else of the product changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from shaderad.frontend.decorators import KernelFunction
from shaderad.lower import kernels
from shaderad.lower.artifact import Program
from tests.lower.loop_cases import floats

Edit = tuple[str, str]
"""A pattern, and what stands in its place instead."""


@dataclass(frozen=True)
class Workaround:
    """A call that needs a workaround, and the emitted text without it."""

    kernel: KernelFunction
    args: tuple[Any, ...]
    edits: tuple[Edit, ...]
    wrong: str
    """What the oracle finds wrong without it: `result`, `gradient` or `tangent`."""
    keeps_loops: bool = False
    """Whether loops also stay in the body, where Slang differentiates them itself."""
    call: dict[str, Any] = field(default_factory=dict[str, Any])


def switch_off(edits: tuple[Edit, ...], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Emitted modules are edited from now on; the names of those that changed, as they come."""
    emitted = kernels.assemble
    changed: list[str] = []

    def assemble(*parts: Any) -> Program:
        program = emitted(*parts)
        text = program.slang
        for pattern, replacement in edits:
            text = re.sub(pattern, replacement, text)
        if text != program.slang:
            changed.append(program.name)
        return replace(program, slang=text)

    monkeypatch.setattr(kernels, "assemble", assemble)
    return changed


def leave_loops_in_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step of lowering that makes functions of loops does nothing from now on."""

    def untouched(_writer: Any, _stem: str, body: Any, _live: Any, *, is_reversed: bool) -> Any:
        return body

    monkeypatch.setattr(kernels, "outlined", untouched)


# Slang wants a bound on the loops that it differentiates.
WITH_BOUND = (r"for \((.+ < (?:min\(\w+, )?(\d+)\)?;)", r"[MaxIters(\2)] for (\1")


@sad.kernel
def runs_on(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    s = x[i]
    for _ in sad.range(n, limit=4):
        s = s * x[i] + 0.5
    y[i] = s


@sad.kernel
def reads_twice(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[0] * x[i] + 5.0 * x[0]


@sad.kernel
def limits(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.max(x[i], 1.0)


@sad.kernel
def squares(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] ** 2


@sad.kernel
def powers(i: sad.Index, x: sad.In[float], n: sad.In[float], y: sad.Out[float]):
    y[i] = 1e6 * sad.pow(x[i], n[i])


@sad.kernel
def remainders(i: sad.Index, x: sad.In[float], m: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] % m[i]


@sad.kernel
def starts_constant(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a = sad.LocalArray[float, 2]()
    if x[i] > 0.8:
        a[i % 2] = x[i] * x[i]
    y[i] = a[0] + a[1]


@sad.kernel
def trades_places(i: sad.Index, x: sad.In[float], n: sad.In[int], y: sad.Out[float]):
    a = float3(x[i])
    b = float3(x[i])
    if n[i] < 2:
        a.y = x[i] * x[i]
        b.z = x[i] * x[i]
    a, b = b, a
    if n[i] != 3:
        b.y = x[i]
        a.z = x[i] * x[i]
    a, b = b, a
    y[i] = a.x + 2.0 * a.y + 3.0 * a.z + 4.0 * b.x + 5.0 * b.y + 6.0 * b.z


_VECTOR = r"(\w+) = float3\("
WORKAROUNDS: dict[str, Workaround] = {
    "no step past the limit": Workaround(
        runs_on, (floats(3), 8), (WITH_BOUND, (r"min\((count_), 4\)", r"\1")), "result",
        keeps_loops=True, call={"bounds": "ignore"},
    ),
    "cotangents added to memory": Workaround(
        reads_twice, (floats(1),),
        ((r"(x_bar_words\[.+?\])\.add\(value\)", r"\1.store(value)"),), "gradient",
    ),
    "maxima of our own": Workaround(
        limits, (np.float32([np.nan, 1.0, 3.0]),), ((r"maxFirst\(", "max("),), "tangent",
    ),
    "whole powers as products": Workaround(
        squares, (np.float32([-3.0, 2.0]),), ((r"powi\((.+), 2\)", r"pow(\1, 2.0)"),), "tangent",
    ),
    "powers of our own": Workaround(
        powers, (np.float32([1e-7]), np.float32([1.0])), ((r"safePow\(", "pow("),), "tangent",
    ),
    "remainders of our own": Workaround(
        remainders, (np.float32([7.5, 3.0]), np.float32([2.0, 0.7])),
        ((r"floorModulo\(", "fmod("),), "tangent",
    ),
    "elements replaced by a function": Workaround(
        starts_constant, (np.float32([0.5, 1.0, 1.5]),),
        ((r"a = withElement\(a, (localIndex<.+?\d\)), (.+)\);", r"a[\1] = \2;"),), "tangent",
    ),
    "vectors replaced whole": Workaround(
        trades_places, (floats(4), np.int32([0, 1, 2, 3])),
        ((_VECTOR + r"\1\.x, (.+), \1\.z\);", r"\1.y = \2;"),
         (_VECTOR + r"\1\.x, \1\.y, (.+)\);", r"\1.z = \2;")), "gradient|tangent",
    ),
}  # fmt: skip
