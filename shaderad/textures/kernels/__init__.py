"""Kernels and functions in the kernel language that textures are made of."""
