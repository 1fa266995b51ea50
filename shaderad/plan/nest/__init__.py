"""Kernels of plans as loop nests: data, and the functions that cut and write them."""
