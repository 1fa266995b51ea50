"""A kernel -> the kernel with tangents: what reverse mode needs for second derivatives.

Invariant: the new kernel holds no ``fwd_diff`` but of functions whose derivatives the user wrote,
so each of its derivatives is one of first order to the compiler.
"""

from __future__ import annotations

from shaderad.rules.pushing.kernels import PushedKernel, push_kernel

__all__ = ["PushedKernel", "push_kernel"]
