"""Kernels as users would write them: each module has `kernel` and `inputs(size)`."""
