"""Random array graphs, their derivatives included, held against their evaluation in NumPy."""
