"""Kernels that are called wrongly, and the check that a wrong call is answered well.

A wrong call is a line of text, evaluated with what stands here. The answer must be an error of
ours with the code named, the place in the source where there is one, and the values that matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3

X = np.arange(1, 5, dtype=np.float32)


@sad.struct
class Particle:
    mass: float
    place: float3
    kind: int


@sad.struct
class Cloud:
    points: sad.In[float3]
    gain: float


@sad.kernel
def square(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i]


@sad.kernel
def numbered(i: sad.Index, start: int, y: sad.Out[float]):
    y[i] = float(start + i)


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * w[i]


@sad.kernel
def total(i: sad.Index, x: sad.In[float], t: sad.Add[float]):
    t[0] += x[i] * x[i]


@sad.kernel
def alone(x: sad.In[float], t: sad.Add[float]):
    t[0] += x[0]


@sad.kernel
def two(i: sad.Index, x: sad.In[float], y: sad.Out[float], n: sad.Out[int]):
    y[i] = x[i]
    n[i] = i


@sad.kernel
def vectors(i: sad.Index, v: sad.In[float3], y: sad.Out[float]):
    y[i] = v[i].x


@sad.kernel
def integers(i: sad.Index, n: sad.In[int], y: sad.Out[int]):
    y[i] = n[i]


@sad.kernel
def unsigned(i: sad.Index, n: sad.In[sad.uint], y: sad.Out[sad.uint]):
    y[i] = n[i]


@sad.kernel
def flags(i: sad.Index, b: sad.In[bool], y: sad.Out[bool]):
    y[i] = b[i]


@sad.kernel
def halves(i: sad.Index, x: sad.In[sad.half], y: sad.Out[sad.half]):
    y[i] = x[i]


@sad.kernel
def particles(i: sad.Index, p: sad.In[Particle], y: sad.Out[float]):
    y[i] = p[i].mass


@sad.kernel
def one_particle(i: sad.Index, p: Particle, y: sad.Out[float]):
    y[i] = p.mass


@sad.kernel
def cloud(i: sad.Index, c: Cloud, y: sad.Out[float]):
    y[i] = c.points[i].x * c.gain


@sad.kernel
def uniforms(i: sad.Index, v: float3, n: int, b: bool, y: sad.Out[float]):
    y[i] = v.x * float(n) if b else 0.0


@sad.kernel
def constant(i: sad.Index, n: sad.Const[int], y: sad.Out[float]):
    y[i] = float(n)


@sad.kernel
def grid(i: sad.Index, j: sad.Index, x: sad.In[float, 2], y: sad.Out[float, 2]):
    y[i, j] = x[i, j]


PARTICLE = Particle(1.0, (1, 2, 3), 4)
CLOUD = Cloud([[1.0, 2.0, 3.0]], 2.0)


def check(text: str, code: str, *says: str, **names: Any) -> None:
    """Evaluates `text`, which must fail with `code` and say `says`.

    Words that begin with ``^`` stand under the carets; without any the error has no place.
    """
    with pytest.raises(sad.Error) as caught:
        evaluate(text, names)
    failure = caught.value
    said = " ".join([failure.message, failure.label, failure.note, failure.help])
    assert failure.code == code, str(failure)
    for words in says:
        assert words[0] == "^" or words in said, str(failure)
    shown = []
    if failure.span is not None and failure.span.text():
        text = failure.span.text()[failure.span.column : failure.span.end_column]
        shown = ["^" + text.partition("  #")[0]]
    assert shown == [words for words in says if words[0] == "^"], str(failure)


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """The value of `text`, read back from its device."""
    found = eval(text, {**globals(), **names})
    for one in found if isinstance(found, tuple) else (found,):
        if isinstance(one, sad.Array):
            one.numpy()
    return found
