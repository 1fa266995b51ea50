"""Reverse mode on kernel IR: bodies, functions and kernels -> their adjoints.

An adjoint has two sweeps. The forward sweep runs the primal and keeps the values that partial
derivatives need; the reverse sweep visits its statements last first and adds cotangents in place.
"""

from __future__ import annotations

from shaderad.rules.pulling.bodies import pull_function, pull_kernel_body, split_function
from shaderad.rules.pulling.functions import Adjoints
from shaderad.rules.pulling.nodes import Adjoint, Cotangent, InOut, Leap, ReverseFor
from shaderad.rules.pulling.uniformity import uniform_additions

__all__ = [
    "Adjoint",
    "Adjoints",
    "Cotangent",
    "InOut",
    "Leap",
    "ReverseFor",
    "pull_function",
    "pull_kernel_body",
    "split_function",
    "uniform_additions",
]
