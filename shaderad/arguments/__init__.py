"""The kinds of kernel arguments, one file each: what a call may pass, and what is bound for it.

Each file registers its kind, so importing this room makes all of them known.
"""

from shaderad.arguments import array, number, pointer, sampler, struct, texture

__all__ = ["array", "number", "pointer", "sampler", "struct", "texture"]
