"""A kernel -> the kernel with tangents: forward mode, and what second derivatives are pulled of."""

from __future__ import annotations

from shaderad.rules.pushing.kernels import push_kernel

__all__ = ["push_kernel"]
