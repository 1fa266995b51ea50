"""Kernels in Slang of the user's own: `sad.slang_kernel`."""
