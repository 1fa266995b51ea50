"""Scalar arithmetic on uniforms: one thread, one number out."""

from __future__ import annotations

import shaderad as sad
from tests.conformance.programs.program import over_kernel


@sad.kernel
def divide(i: sad.Index, a: float, b: float, y: sad.Out[float]):
    y[i] = a / b


@sad.kernel
def lighthouse(i: sad.Index, nu: float, g: float, w: float, t: float,
               y1: sad.Out[float], y2: sad.Out[float]):  # fmt: skip
    q = sad.tan(w * t)
    y1[i] = nu * q / (g - q)
    y2[i] = g * nu * q / (g - q)


PROGRAMS = {
    "fut-fdiv": over_kernel(divide, dim=1),
    "fut-lighthouse": over_kernel(lighthouse, "y1 y2", dim=1),
}
