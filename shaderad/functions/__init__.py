"""The functions on arrays that users call: each composes nodes of a graph."""
