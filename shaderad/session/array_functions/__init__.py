"""The operators on arrays: each composes nodes of a graph, whether it is traced or run at once."""
