"""Forward mode on kernel IR: a kernel -> the kernel with tangents.

Second derivatives are the adjoint of that kernel.
"""

from __future__ import annotations

from shaderad.rules.pushing.kernels import push_kernel

__all__ = ["push_kernel"]
