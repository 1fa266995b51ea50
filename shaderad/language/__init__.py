"""Kernels, functions, structs and types as Python objects; no body is read here."""
