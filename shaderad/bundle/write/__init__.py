"""Kernels and graphs of a file -> code, manifest and header in a folder."""
