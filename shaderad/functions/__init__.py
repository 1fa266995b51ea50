"""The functions on arrays: each composes nodes of a graph, traced or run at once."""
