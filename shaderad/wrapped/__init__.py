"""Functions on arrays as functions of the flat lists of host arrays that other libraries give.

`shaderad.torch` and `shaderad.jax` share this room, which imports neither library.
"""
