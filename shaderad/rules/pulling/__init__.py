"""Bodies, functions and kernels -> their adjoints: reverse mode as a transformation of the IR.

An adjoint runs forward, keeping what partial derivatives need, then goes back over what it ran and
adds cotangents in place.
"""

from __future__ import annotations

from shaderad.rules.pulling.bodies import pull_function, pull_kernel_body, split_function
from shaderad.rules.pulling.functions import Functions
from shaderad.rules.pulling.nodes import Adjoint, Cotangent, Leap, Place, ReverseFor
from shaderad.rules.pulling.uniformity import uniform_additions

__all__ = [
    "Adjoint",
    "Cotangent",
    "Functions",
    "Leap",
    "Place",
    "ReverseFor",
    "pull_function",
    "pull_kernel_body",
    "split_function",
    "uniform_additions",
]
