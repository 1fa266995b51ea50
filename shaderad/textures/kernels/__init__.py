"""Kernels and functions in the kernel language that implement textures."""
