"""What kernels do not say, and what users are told who write a case as it stands.

Kernels say all but one case of their families, those that overwrite memory with values: the same
mathematics. The refusals below are what users read who write these cases with shared memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import shaderad as sad
from shaderad import float2
from tests.conformance.programs import custom, inplace

LEFT_OUT = {
    "warp-atomic-slot": "a thread cannot read a counter that others add to: the slot it gets "
    "would differ from run to run, and from the primal to the backward dispatch, which computes "
    "the primal again; compaction is an operation on arrays",
}
"""Cases without a program, and why."""


@dataclass(frozen=True)
class Refusal:
    """A case as other systems write it."""

    attempt: Callable[[], Any]
    code: str
    sentence: str
    """Part of what the user reads."""


X = np.ones(2, np.float32)


@sad.kernel
def count_slots(i: sad.Index, x: sad.In[float], counter: sad.Add[int], out: sad.Out[float]):
    counter[0] += 1
    out[counter[0]] = sad.sqrt(x[i])


@sad.function
def advance(a: float2, b: float2):
    a.x = a.x * b.x + sad.sin(a.x)


@sad.kernel
def change_argument(i: sad.Index, x: sad.In[float2], y: sad.In[float2], o: sad.Out[float2]):
    a = x[i]
    advance(a, y[i])
    o[i] = a


@sad.kernel
def square_in_place(i: sad.Index, x: sad.In[float]):
    x[i] = x[i] * x[i]


@sad.kernel
def square_and_overwrite(i: sad.Index, a: sad.In[float], b: sad.Out[float]):
    b[i] = a[i] * a[i]
    a[i] = 1.0


@sad.kernel
def scale_in_place(i: sad.Index, a: sad.In[float], b: sad.In[float]):
    a[i] *= b[i]


@sad.kernel
def add_in_place(i: sad.Index, a: sad.In[float], b: sad.In[float]):
    a[i] += b[i] * b[i]


@sad.kernel
def overwrite_element(i: sad.Index, x: sad.In[float]):
    x[0] = 0.0


@sad.kernel
def depend_on_last(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    for k in range(1):
        y[k + 1] = y[k] * y[k]


READ_ONLY = "it is read only: write to an `sad.Out` array"
NOT_PASSED = "written arrays are not passed: the call returns them"

REFUSED_AS_WRITTEN = {
    "warp-atomic-slot": Refusal(
        lambda: count_slots(X, dim=2), "SR0208", "it only takes `+=` and `-=`"
    ),
    "slang-inout-param": Refusal(
        lambda: change_argument(np.ones((2, 2)), np.ones((2, 2)), dim=2), "SR0205", "copy it first"
    ),
    "fut-for-inplace-square": Refusal(lambda: square_in_place(X, dim=2), "SR0208", READ_ONLY),
    "fut-truedep-1d": Refusal(
        lambda: depend_on_last(X, dim=1, shapes={"y": 2}),
        "SR0281",
        "keep the value in a local name, or compute it in a separate kernel and read it as In",
    ),
    "fut-consume0": Refusal(lambda: overwrite_element(X, dim=2), "SR0208", READ_ONLY),
    "warp-war-intra": Refusal(lambda: square_and_overwrite(X, dim=2), "SR0208", READ_ONLY),
    "warp-war-inter": Refusal(lambda: inplace.square(X, y=X, dim=2), "SR0365", NOT_PASSED),
    "warp-dead-write": Refusal(lambda: inplace.cube(X, y=X, dim=2), "SR0365", NOT_PASSED),
    "own-inplace-square": Refusal(lambda: square_in_place(X, dim=2), "SR0208", READ_ONLY),
    "own-array-imul": Refusal(lambda: scale_in_place(X, X, dim=2), "SR0208", READ_ONLY),
    "warp-array-iadd": Refusal(lambda: add_in_place(X, X, dim=2), "SR0208", READ_ONLY),
}
"""What users read who write these cases with shared memory instead of values."""

NO_FORWARD = "add one with `@{}.forward_derivative`, or use `vjp`"

REFUSED_FORWARD = {
    "warp-custom-grad-clip": Refusal(
        lambda: sad.jvp(custom.clip, (X,), (X,), dim=2),
        "SR0412",
        NO_FORWARD.format("clip_gradient"),
    ),
    "fut-with-vjp": Refusal(
        lambda: sad.jvp(custom.use_result, (2.5,), (1.0,), dim=1),
        "SR0412",
        NO_FORWARD.format("double"),
    ),
}
"""Cases that have only a backward derivative of their own: jvp is refused, not guessed."""
